//! Where the objects are: files, directories, standard input.

use crate::failure::Failure;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use volcano_plan::source::Source;

/// The largest file that is read. A dump of 100,000 pods has about half of it.
const MAX_BYTES: u64 = 1 << 30;
/// File names that a directory is searched for.
const EXTENSIONS: &[&str] = &["yaml", "yml", "json"];

/// All files that the arguments name, directories replaced by what is in them.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        if is_stdin(path) && files.iter().any(|file| is_stdin(file)) {
            return Err(Failure::new("standard input (-) is named twice")
                .hint("name it once; one stream may hold several documents"));
        }
        if is_stdin(path) || !path.is_dir() {
            files.push(path.clone());
        } else {
            files.extend(directory(path)?);
        }
    }
    Ok(files)
}

/// Whether a path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn directory(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(format!("{}: cannot read the directory: {error}", path.display()))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| EXTENSIONS.contains(&e))
            && file.is_file()
        {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::new(format!(
            "{}: no *.yaml, *.yml or *.json files in this directory",
            path.display()
        ))
        .hint("subdirectories are not searched; name them with further -f"));
    }
    Ok(files)
}

/// Reads a file, or standard input for `-`.
pub fn open(path: &Path) -> Result<Source, Failure> {
    if is_stdin(path) {
        return from_reader("standard input", std::io::stdin().lock(), false);
    }
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        let failure = Failure::new(format!("{name}: {error}"));
        if error.kind() == std::io::ErrorKind::NotFound {
            return failure.hint("check the path; - reads standard input, a directory means all its files");
        }
        failure
    };
    let file = fs::File::open(path).map_err(unreadable)?;
    let json_by_name = path.extension().is_some_and(|extension| extension == "json");
    from_reader(&name, file, json_by_name)
}

fn from_reader(name: &str, reader: impl Read, json_by_name: bool) -> Result<Source, Failure> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("{name}: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(
            Failure::new(format!("{name}: larger than {} MiB", MAX_BYTES >> 20))
                .hint("split it into several files, each with its own -f"),
        );
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::new(format!(
            "{name}: not UTF-8 text: byte {}",
            error.utf8_error().valid_up_to() + 1
        ))
    })?;
    Ok(if json_by_name {
        Source::from_json(name, text)
    } else {
        Source::from_text(name, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_means_its_files_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.yaml", "c.yml", "notes.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let files = expand(&[folder.path().to_owned()]).unwrap();
        let names: Vec<_> = files
            .iter()
            .map(|f| f.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["a.yaml", "b.json", "c.yml"]);
        assert!(expand(&["-".into(), "-".into()]).is_err());
    }
}
