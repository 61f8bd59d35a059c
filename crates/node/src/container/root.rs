//! What a container sees as its file system.
//!
//! The host's files are the image. As root they lie under a layer of the container's own (overlayfs), one for each file
//! system of the host, so that what it writes stays with it and mount points can be made anywhere. Where layers are not to
//! be had (ordinary users, some sandboxes), the host's top directories are shown as they are; a directory that lacks a
//! mount point is then replaced by one that shows the same entries and has it. Either way nothing is made on the host.

use super::{Isolation, Mount, Source, Spec};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Where the host's root is while mounts are made.
const HOST: &str = "/.volcano-host";

/// File systems that can lie under a layer.
const LAYERED: &[&str] = &[
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "ramfs", "zfs", "overlay",
];

/// Devices that programs expect, and those of accelerators and fast networks. Disks and consoles are not shown.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
const DEVICES_BY_START: &[&str] = &[
    "nvidia",
    "dri",
    "kfd",
    "accel",
    "davinci",
    "infiniband",
    "fuse",
    "kvm",
    "net",
];

/// Makes the root of the container and enters it. Whether what it writes stays with it.
pub(super) fn assemble(spec: &Spec) -> Result<bool, String> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|errno| format!("mounts of its own: {errno}"))?;
    let root = spec.scratch.join("root");
    fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let mounted = Mounted::read()?;
    let layers = Layers {
        place: spec.scratch.join("layers"),
        root: root.clone(),
    };
    let mut view = View::default();
    let layered = spec.isolation == Isolation::Root && layers.add_root(&mut view);
    if layered {
        add_file_systems(&layers, &mounted, &mut view);
    } else {
        add_directories(&root, &mut view)?;
    }
    add_system(&root, spec, &mut view)?;
    enter(&root)?;
    let mut mounts: Vec<&Mount> = spec.mounts.iter().collect();
    mounts.sort_by_key(|mount| mount.target.components().count());
    for mount in mounts {
        view.place(mount)
            .map_err(|problem| format!("mount at {}: {problem}", mount.target.display()))?;
    }
    let _ = umount2(HOST, MntFlags::MNT_DETACH);
    let _ = fs::remove_dir(HOST);
    Ok(layered)
}

fn enter(root: &Path) -> Result<(), String> {
    let host = root.join(HOST.trim_start_matches('/'));
    fs::create_dir_all(&host).map_err(|error| format!("{}: {error}", host.display()))?;
    nix::unistd::pivot_root(root, &host).map_err(|errno| format!("root of its own: {errno}"))?;
    std::env::set_current_dir("/").map_err(|error| format!("root of its own: {error}"))
}

/// Where new entries stay with the container, by path. The longest path that a path begins with decides.
#[derive(Default)]
struct View(BTreeMap<PathBuf, bool>);

impl View {
    fn set(&mut self, path: &Path, own: bool) {
        self.0.insert(path.to_owned(), own);
    }

    fn is_own(&self, path: &Path) -> bool {
        let nearest = path.ancestors().find_map(|above| self.0.get(above));
        nearest.copied().unwrap_or(false)
    }

    /// Puts a mount at its path.
    fn place(&mut self, wanted: &Mount) -> Result<(), String> {
        let (source, is_directory) = match &wanted.source {
            Source::Memory { .. } => (PathBuf::new(), true),
            Source::Path(path) => {
                let path = Path::new(HOST).join(path.strip_prefix("/").unwrap_or(path));
                let about = fs::metadata(&path).map_err(|error| error.to_string())?;
                (path, about.is_dir())
            }
        };
        self.make_room(&wanted.target, is_directory)?;
        let none: Option<&str> = None;
        match &wanted.source {
            Source::Memory { bytes } => tmpfs(&wanted.target, *bytes, "1777")?,
            Source::Path(_) => mount(
                Some(&source),
                &wanted.target,
                none,
                MsFlags::MS_BIND | MsFlags::MS_REC,
                none,
            )
            .map_err(|errno| errno.to_string())?,
        }
        if wanted.read_only {
            read_only(&wanted.target)?;
        }
        let target = wanted.target.canonicalize().map_err(|error| error.to_string())?;
        // What is made in a volume, for a mount within it, is the volume's, and not the host's.
        self.set(&target, true);
        Ok(())
    }

    /// Makes what a mount needs below it.
    fn make_room(&mut self, target: &Path, is_directory: bool) -> Result<(), String> {
        if let Ok(about) = fs::metadata(target) {
            return match (about.is_dir(), is_directory) {
                (true, true) | (false, false) => Ok(()),
                (true, false) => Err("it is a directory, the volume's path is a file".to_owned()),
                (false, true) => Err("it is a file, the volume's path is a directory".to_owned()),
            };
        }
        let above = target.ancestors().skip(1).find(|above| above.exists());
        let above = above.ok_or("it is not absolute")?;
        let above = above.canonicalize().map_err(|error| error.to_string())?;
        if !self.is_own(&above) {
            self.open_up(&above)?;
        }
        let parent = if is_directory {
            Some(target)
        } else {
            target.parent()
        };
        if let Some(parent) = parent {
            fs::create_dir_all(parent).map_err(|error| error.to_string())?;
        }
        if !is_directory {
            fs::File::create(target).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Replaces a directory by one of the container's own with the same entries.
    fn open_up(&mut self, directory: &Path) -> Result<(), String> {
        // What is there now, not on the host: it may hold mounts of the container already.
        let spare = Path::new("/.volcano-spare");
        let none: Option<&str> = None;
        fs::create_dir_all(spare).map_err(|error| error.to_string())?;
        mount(
            Some(directory),
            spare,
            none,
            MsFlags::MS_BIND | MsFlags::MS_REC,
            none,
        )
        .map_err(|errno| errno.to_string())?;
        tmpfs(directory, None, "755")?;
        self.set(directory, true);
        let shown = show_entries(spare, directory, &[], |path| self.set(path, false));
        let _ = umount2(spare, MntFlags::MNT_DETACH);
        let _ = fs::remove_dir(spare);
        shown
    }
}

/// Layers of the container over file systems of the host.
struct Layers {
    place: PathBuf,
    root: PathBuf,
}

impl Layers {
    /// The host's root. In a container of others the scratch directory often is a layer already, which cannot hold
    /// further ones; memory can.
    fn add_root(&self, view: &mut View) -> bool {
        let root = Path::new("/");
        self.add(view, root, 0).is_ok()
            || (tmpfs(&self.place, None, "700").is_ok() && self.add(view, root, 0).is_ok())
    }

    /// Shows what is at a path, under a layer.
    fn add(&self, view: &mut View, path: &Path, number: usize) -> Result<(), String> {
        let (upper, work) = (
            self.place.join(format!("{number}/upper")),
            self.place.join(format!("{number}/work")),
        );
        for directory in [&upper, &work] {
            fs::create_dir_all(directory).map_err(|error| error.to_string())?;
        }
        // The top of the layer stands for the directory itself: it has its owner and mode.
        if let Ok(about) = fs::metadata(path) {
            let _ = fs::set_permissions(&upper, about.permissions());
            let _ = std::os::unix::fs::chown(
                &upper,
                Some(std::os::unix::fs::MetadataExt::uid(&about)),
                Some(std::os::unix::fs::MetadataExt::gid(&about)),
            );
        }
        let mut options = b"lowerdir=".to_vec();
        options.extend(escaped(path));
        options.extend(b",upperdir=");
        options.extend(escaped(&upper));
        options.extend(b",workdir=");
        options.extend(escaped(&work));
        let target = below(&self.root, path);
        mount(
            Some("overlay"),
            &target,
            Some("overlay"),
            MsFlags::empty(),
            Some(OsStr::from_bytes(&options)),
        )
        .map_err(|errno| errno.to_string())?;
        view.set(path, true);
        Ok(())
    }
}

/// The further file systems of the host, each at its path. One that cannot be shown is left out: it is not needed to run.
fn add_file_systems(layers: &Layers, mounted: &Mounted, view: &mut View) {
    for (number, (path, kind)) in mounted.0.iter().enumerate() {
        let target = below(&layers.root, path);
        let is_system = ["/proc", "/sys", "/dev"]
            .iter()
            .any(|system| path.starts_with(system));
        if is_system || path == Path::new("/") || kind == "autofs" || kind == "nsfs" || !target.exists() {
            continue;
        }
        if LAYERED.contains(&kind.as_str()) && target.is_dir() && layers.add(view, path, number + 1).is_ok() {
            continue;
        }
        let none: Option<&str> = None;
        if mount(Some(path), &target, none, MsFlags::MS_BIND, none).is_ok() {
            view.set(path, false);
        }
    }
}

/// The host's top directories as they are.
fn add_directories(root: &Path, view: &mut View) -> Result<(), String> {
    tmpfs(root, None, "755")?;
    view.set(Path::new("/"), true);
    show_entries(Path::new("/"), root, &["proc", "sys", "dev"], |path| {
        let path = path.strip_prefix(root).unwrap_or(path);
        view.set(&Path::new("/").join(path), false);
    })
}

/// Shows the entries of a directory in another one.
fn show_entries(from: &Path, to: &Path, but: &[&str], mut shown: impl FnMut(&Path)) -> Result<(), String> {
    let none: Option<&str> = None;
    let entries = fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
    for entry in entries.flatten() {
        let (name, source) = (entry.file_name(), entry.path());
        let target = to.join(&name);
        let Ok(kind) = entry.file_type() else { continue };
        if but.iter().any(|one| name == *one) || source == to || name.as_bytes().starts_with(b".volcano-") {
            continue;
        }
        if kind.is_symlink() {
            if let Ok(link) = fs::read_link(&source) {
                let _ = symlink(link, &target);
            }
            continue;
        }
        let made = if kind.is_dir() {
            fs::create_dir(&target)
        } else {
            fs::File::create(&target).map(drop)
        };
        made.map_err(|error| format!("{}: {error}", target.display()))?;
        if mount(
            Some(&source),
            &target,
            none,
            MsFlags::MS_BIND | MsFlags::MS_REC,
            none,
        )
        .is_ok()
        {
            shown(&target);
        }
    }
    Ok(())
}

/// Processes, devices, and what the kernel tells.
fn add_system(root: &Path, spec: &Spec, view: &mut View) -> Result<(), String> {
    let none: Option<&str> = None;
    let at = |name: &str| -> Result<PathBuf, String> {
        let path = root.join(name);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), &at("proc")?, Some("proc"), quiet, none)
        .map_err(|errno| format!("/proc: {errno}"))?;
    let shared = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some("/sys"), &at("sys")?, none, shared, none).map_err(|errno| format!("/sys: {errno}"))?;
    let devices = at("dev")?;
    tmpfs(&devices, None, "755")?;
    for (path, own) in [("/proc", false), ("/sys", false), ("/dev", true)] {
        view.set(Path::new(path), own);
    }
    let entries = fs::read_dir("/dev").map_err(|error| format!("/dev: {error}"))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let wanted =
            DEVICES.contains(&&*text) || DEVICES_BY_START.iter().any(|start| text.starts_with(start));
        let Ok(about) = entry.metadata() else { continue };
        if !wanted || about.is_symlink() {
            continue;
        }
        let target = devices.join(&name);
        let made = if about.is_dir() {
            fs::create_dir(&target)
        } else {
            fs::File::create(&target).map(drop)
        };
        if made.is_ok() {
            let _ = mount(Some(&entry.path()), &target, none, shared, none);
        }
    }
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
    ];
    for (name, to) in links
        .into_iter()
        .chain([("stderr", "/proc/self/fd/2"), ("ptmx", "pts/ptmx")])
    {
        let _ = symlink(to, devices.join(name));
    }
    let terminals = at("dev/pts")?;
    let options = Some("newinstance,ptmxmode=0666,mode=0620");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    if mount(Some("devpts"), &terminals, Some("devpts"), flags, options).is_err() {
        let _ = mount(Some("/dev/pts"), &terminals, none, shared, none);
    }
    tmpfs(&at("dev/shm")?, Some(spec.shm_bytes), "1777")
}

fn tmpfs(target: &Path, bytes: Option<u64>, mode: &str) -> Result<(), String> {
    let size = bytes.map(|bytes| format!(",size={bytes}")).unwrap_or_default();
    let options = format!("mode={mode}{size}");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        target,
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )
    .map_err(|errno| format!("memory: {errno}"))
}

/// Flags that the mount has must be named again, or an ordinary user may not change it.
fn read_only(target: &Path) -> Result<(), String> {
    let has = statvfs(target).map_err(|errno| errno.to_string())?.flags();
    let mut flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    for (one, as_mount) in [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ] {
        if has.contains(one) {
            flags |= as_mount;
        }
    }
    let none: Option<&str> = None;
    mount(none, target, none, flags, none).map_err(|errno| format!("read-only: {errno}"))
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// A path as an option of a mount: commas part options, colons layers.
fn escaped(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b',' | b':' | b'\\') {
            bytes.push(b'\\');
        }
        bytes.push(*byte);
    }
    bytes
}

/// The file systems of the host: where, and of which kind. Those above come first.
struct Mounted(Vec<(PathBuf, String)>);

impl Mounted {
    fn read() -> Result<Mounted, String> {
        let text = fs::read("/proc/self/mountinfo").map_err(|error| format!("mounts: {error}"))?;
        Ok(Mounted(mounted(&text)))
    }
}

fn mounted(text: &[u8]) -> Vec<(PathBuf, String)> {
    // Of several at a path the last one is seen.
    let mut found = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let dash = words.iter().position(|word| *word == b"-");
        let (Some(path), Some(kind)) = (words.get(4), dash.and_then(|dash| words.get(dash + 1))) else {
            continue;
        };
        let path = PathBuf::from(std::ffi::OsString::from_vec(unescaped(path)));
        found.insert(path, String::from_utf8_lossy(kind).into_owned());
    }
    found.into_iter().collect()
}

/// Blanks and the like are written as three octal digits.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, others @ ..] = rest {
        let octal = (*first == b'\\')
            .then(|| others.get(..3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[3..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_at_a_path_counts_and_those_above_come_first() {
        let text = b"36 35 98:0 / /mnt/a\\040b rw shared:1 - tmpfs none rw\n\
            20 1 8:1 / / rw - ext4 /dev/sda rw\n\
            37 36 98:1 / /mnt/a\\040b rw - xfs none rw\n\
            odd\n";
        let expected = [("/", "ext4"), ("/mnt/a b", "xfs")];
        let expected = expected.map(|(path, kind)| (PathBuf::from(path), kind.to_owned()));
        assert_eq!(mounted(text), expected);
    }

    #[test]
    fn the_nearest_directory_says_whose_new_entries_are() {
        let mut view = View::default();
        for (path, own) in [("/", true), ("/home", false), ("/home/a", true)] {
            view.set(Path::new(path), own);
        }
        for (path, own) in [
            ("/etc", true),
            ("/home/b", false),
            ("/home/a/c", true),
            ("/", true),
        ] {
            assert_eq!(view.is_own(Path::new(path)), own, "{path}");
        }
    }

    #[test]
    fn options_of_mounts_keep_odd_paths_whole() {
        assert_eq!(escaped(Path::new("/a,b:c\\d")), b"/a\\,b\\:c\\\\d");
    }
}
