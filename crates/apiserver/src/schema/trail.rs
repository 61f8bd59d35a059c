//! Where in an object a walk is. A link on the stack per level: a text is made only when there is something to tell.

use std::fmt;

/// A place, as a list of steps from the last to the first.
#[derive(Clone, Copy)]
pub struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Item(usize),
}

impl<'a> Trail<'a> {
    /// The object itself.
    pub const ROOT: Trail<'static> = Trail {
        parent: None,
        step: Step::Root,
    };

    /// A field of this place.
    pub fn field(&'a self, name: &'a str) -> Trail<'a> {
        Trail {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    /// An item of this place.
    pub fn item(&'a self, at: usize) -> Trail<'a> {
        Trail {
            parent: Some(self),
            step: Step::Item(at),
        }
    }

    /// It is the object itself.
    pub fn is_root(&self) -> bool {
        self.parent.is_none()
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else { return Ok(()) };
        parent.fmt(f)?;
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if parent.is_root() => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Item(at) => write!(f, "[{at}]"),
        }
    }
}
