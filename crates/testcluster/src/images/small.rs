//! Images of single programs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::{Config, run};

/// Where the package has the static busybox.
pub const BUSYBOX: &str = "/bin/busybox";

/// Waits, takes notice of ended children, and ends when it is told to.
pub const PAUSE_SOURCE: &str = r"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) { (void)signal; _exit(0); }
static void reap(int signal) { (void)signal; while (waitpid(-1, 0, WNOHANG) > 0) {} }

int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGCHLD, reap);
    for (;;) pause();
}
";

/// Names under which the `volcano` program is each of the system's programs.
const VOLCANO_NAMES: [&str; 4] = [
    "volcano",
    "vc-scheduler",
    "vc-controller-manager",
    "vc-webhook-manager",
];

/// The pause image.
pub fn pause(rootfs: &Path) -> anyhow::Result<Config> {
    let source = rootfs.with_file_name("pause.c");
    fs::write(&source, PAUSE_SOURCE).context("writing pause.c")?;
    run(Command::new("gcc")
        .args(["-static", "-Os", "-s", "-o"])
        .arg(rootfs.join("pause"))
        .arg(&source))?;
    Ok(Config {
        entrypoint: vec!["/pause".to_owned()],
        command: Vec::new(),
    })
}

/// The busybox image: the program, a link to it for each of its tools, and the few files that they read.
pub fn busybox(rootfs: &Path) -> anyhow::Result<Config> {
    for folder in [
        "bin", "dev", "etc", "proc", "root", "sys", "tmp", "usr/bin", "var",
    ] {
        let path = rootfs.join(folder);
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    }
    let program = rootfs.join("bin/busybox");
    fs::copy(BUSYBOX, &program).with_context(|| format!("copying {BUSYBOX}"))?;
    let tools = run(Command::new(&program).arg("--list"))?;
    for tool in tools.lines().filter(|tool| *tool != "busybox") {
        symlink("busybox", rootfs.join("bin").join(tool)).with_context(|| format!("linking {tool}"))?;
    }
    let users = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n";
    fs::write(rootfs.join("etc/passwd"), users).context("writing /etc/passwd")?;
    fs::write(rootfs.join("etc/group"), "root:x:0:\nnogroup:x:65534:\n").context("writing /etc/group")?;
    open_to_all(&rootfs.join("tmp"))?;
    Ok(Config {
        entrypoint: Vec::new(),
        command: vec!["sh".to_owned()],
    })
}

/// The `volcano` program under all its names, with the libraries that it is linked to.
pub fn volcano(rootfs: &Path, program: &Path) -> anyhow::Result<Config> {
    let first = rootfs.join(VOLCANO_NAMES[0]);
    fs::copy(program, &first).with_context(|| format!("copying {}", program.display()))?;
    for name in &VOLCANO_NAMES[1..] {
        fs::hard_link(&first, rootfs.join(name)).with_context(|| format!("linking {name}"))?;
    }
    for library in libraries(&run(Command::new("ldd").arg(program))?) {
        let place = rootfs.join(library.strip_prefix("/").unwrap_or(&library));
        let folder = place.parent().unwrap_or(rootfs);
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        fs::copy(&library, &place).with_context(|| format!("copying {}", library.display()))?;
    }
    let temporary = rootfs.join("tmp");
    fs::create_dir_all(&temporary).context("creating /tmp")?;
    open_to_all(&temporary)?;
    Ok(Config {
        entrypoint: vec!["/volcano".to_owned()],
        command: Vec::new(),
    })
}

/// The paths in what `ldd` prints: `libc.so.6 => /lib/libc.so.6 (0x…)`, or `/lib64/ld-linux.so.2 (0x…)`.
fn libraries(listing: &str) -> Vec<PathBuf> {
    let words = listing.split_whitespace();
    words
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .collect()
}

fn open_to_all(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)).context("opening /tmp to all")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_with_and_without_an_arrow() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let paths = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(libraries(listing), paths.map(PathBuf::from));
    }
}
