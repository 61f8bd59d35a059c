//! What commands print: tables that scripts read, whole objects, ages and times, colours for people.

pub mod age;
pub mod colour;
pub mod files;
pub mod objects;
pub mod table;
pub mod times;

pub use objects::{Format, ObjectWriter};
pub use table::{Column, Table};

use std::io::{self, BufWriter, IsTerminal as _, Write};

/// What a list without anything in it prints.
pub const NOTHING: &str = "No resources found\n";

/// Standard output. It is written when it is flushed, or when much has gathered.
pub struct Out {
    sink: BufWriter<Box<dyn Write + Send>>,
    colours: bool,
}

impl Out {
    /// With colours if a person looks at it.
    pub fn standard() -> Self {
        let stdout = io::stdout();
        let colours = stdout.is_terminal() && colour::are_wanted(|name| std::env::var_os(name));
        Out {
            sink: BufWriter::with_capacity(64 << 10, Box::new(stdout)),
            colours,
        }
    }

    /// Into something else.
    #[cfg(test)]
    pub fn to(sink: impl Write + Send + 'static) -> Self {
        Out {
            sink: BufWriter::new(Box::new(sink)),
            colours: false,
        }
    }

    /// Whether colours are shown.
    pub fn has_colours(&self) -> bool {
        self.colours
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Writes to standard error. If nobody reads that, there is nobody left to tell.
pub fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
