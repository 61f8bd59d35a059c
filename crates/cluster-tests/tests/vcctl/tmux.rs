//! A terminal that a test types into and reads: tmux, with a server of its own.

use std::process::Command;
use std::time::{Duration, Instant};
use volcano_testcluster::nodes::{Packages, ensure_program};

/// How long what a screen is waited for may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal. It ends when dropped.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a line of the shell in a new terminal.
    pub fn run(name: &str, line: &str) -> Terminal {
        ensure_program("tmux", "tmux", Packages::from_environment())
            .unwrap_or_else(|error| panic!("{error:#}"));
        let terminal = Terminal {
            socket: format!("volcano-{name}-{}", std::process::id()),
        };
        let size = ["-x", "130", "-y", "24"];
        terminal.tmux(&[&["new-session", "-d", "-s", "test"], &size[..], &[line]].concat());
        terminal
    }

    /// Types keys, in tmux's names.
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "test"], keys].concat());
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "test"])
    }

    /// Waits until the screen has all these texts.
    pub fn wait(&self, texts: &[&str]) -> String {
        self.wait_for(&format!("{texts:?}"), |screen| {
            texts.iter().all(|text| screen.contains(text))
        })
    }

    /// Waits until the screen is as it should be.
    pub fn wait_for(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "waited for {what}; the screen is\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-L", &self.socket, "-f", "/dev/null"])
            .args(words)
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "tmux {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = Command::new("tmux")
            .args(["-L", &self.socket, "kill-server"])
            .output();
    }
}
