//! Files that show objects, changed all at once: readers see the old ones or the new ones, as with a kubelet.
//!
//! ```text
//! key     -> ..data/key
//! ..data  -> ..1            replaced by a rename
//! ..1/key
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// The link to what is shown.
const DATA: &str = "..data";

/// A file to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    path: PathBuf,
    bytes: Vec<u8>,
    mode: u32,
}

impl Entry {
    /// A file at a path within its volume.
    pub fn new(path: &str, bytes: Vec<u8>, mode: i32) -> Result<Entry, String> {
        let is_within = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_within || path.is_empty() || path.starts_with("..") {
            return Err(format!(
                "the path {path:?} must be within the volume and must not begin with \"..\""
            ));
        }
        let mode = u32::try_from(mode).ok().filter(|mode| *mode <= 0o777);
        Ok(Entry {
            path: path.into(),
            bytes,
            mode: mode.ok_or_else(|| format!("the mode of {path:?} must be between 0 and 0777"))?,
        })
    }
}

/// Makes a directory show these files and no others.
pub(crate) fn write(place: &Path, entries: &[Entry]) -> io::Result<()> {
    fs::create_dir_all(place)?;
    fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
    let data = place.join(DATA);
    let before = fs::read_link(&data).ok();
    if before.is_some() && shows(&data, entries) {
        return Ok(());
    }
    let number = before.as_deref().and_then(number).unwrap_or_default() + 1;
    let name = format!("..{number}");
    write_files(&place.join(&name), entries)?;
    let link = place.join("..data_tmp");
    let _ = fs::remove_file(&link);
    symlink(&name, &link)?;
    fs::rename(&link, &data)?;
    show_names(place, entries)?;
    if let Some(before) = before {
        let _ = fs::remove_dir_all(place.join(before));
    }
    Ok(())
}

fn number(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("..")?.parse().ok()
}

fn write_files(place: &Path, entries: &[Entry]) -> io::Result<()> {
    let _ = fs::remove_dir_all(place);
    fs::create_dir(place)?;
    for entry in entries {
        let path = place.join(&entry.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &entry.bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(entry.mode))?;
    }
    Ok(())
}

/// Whether these files are what is there.
fn shows(data: &Path, entries: &[Entry]) -> bool {
    let mut wanted = BTreeSet::new();
    for entry in entries {
        let path = data.join(&entry.path);
        let mode = fs::metadata(&path).map(|about| about.permissions().mode() & 0o777);
        if mode.ok() != Some(entry.mode) || fs::read(&path).ok().as_ref() != Some(&entry.bytes) {
            return false;
        }
        wanted.insert(path);
    }
    files(data).into_iter().all(|path| wanted.contains(&path))
}

fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// A link for the first part of every path.
fn show_names(place: &Path, entries: &[Entry]) -> io::Result<()> {
    let wanted: BTreeSet<_> = entries
        .iter()
        .filter_map(|entry| entry.path.components().next())
        .map(|part| part.as_os_str().to_owned())
        .collect();
    for entry in fs::read_dir(place)?.flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with("..") && !wanted.contains(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    for name in wanted {
        let link = place.join(&name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(&name), link)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, text: &str) -> Entry {
        Entry::new(path, text.as_bytes().to_vec(), 0o640).unwrap()
    }

    fn seen(place: &Path) -> Vec<(String, String)> {
        let mut seen: Vec<_> = files(place)
            .into_iter()
            .map(|path| {
                let name = path.strip_prefix(place).unwrap().to_string_lossy().into_owned();
                (name, fs::read_to_string(&path).unwrap())
            })
            .filter(|(name, _)| !name.starts_with(".."))
            .collect();
        seen.sort();
        seen
    }

    #[test]
    fn files_are_replaced_all_at_once_and_nothing_old_stays() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        write(place, &[entry("a", "1"), entry("d/b", "2"), entry("d/c", "3")]).unwrap();
        let first = fs::read_link(place.join(DATA)).unwrap();
        let texts = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect()
        };
        assert_eq!(seen(place), texts(&[("a", "1"), ("d/b", "2"), ("d/c", "3")]));
        assert_eq!(
            fs::metadata(place.join("a")).unwrap().permissions().mode() & 0o777,
            0o640
        );
        write(place, &[entry("a", "1"), entry("d/b", "2"), entry("d/c", "3")]).unwrap();
        assert_eq!(fs::read_link(place.join(DATA)).unwrap(), first);
        write(place, &[entry("d/b", "9")]).unwrap();
        assert_eq!(seen(place), texts(&[("d/b", "9")]));
        assert!(!place.join(first).exists());
    }

    #[test]
    fn no_path_leads_out_of_the_volume() {
        for path in ["", "/a", "../a", "a/../b", "..a", "."] {
            assert!(Entry::new(path, Vec::new(), 0o644).is_err(), "{path}");
        }
        assert!(Entry::new("a", Vec::new(), 0o1000).is_err());
    }
}
