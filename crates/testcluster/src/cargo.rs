//! Cargo from within cargo.

use std::env;
use std::process::Command;

/// What cargo tells the programs that it starts about themselves.
const ABOUT_US: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];

/// Cargo as a user starts it. The cargo that started this program has set variables about this very package; some build
/// scripts look at variables of those names (ring's does), and would have half of the dependencies built anew.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let is_about_us = |prefix: &str| name.to_str().is_some_and(|name| name.starts_with(prefix));
        if ABOUT_US.iter().any(|prefix| is_about_us(prefix)) {
            command.env_remove(&name);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_about_this_package_is_not_handed_on() {
        assert!(env::var_os("CARGO_PKG_NAME").is_some(), "cargo runs this test");
        let removed: Vec<_> = cargo()
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name.to_owned())
            .collect();
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(removed.iter().any(|known| known == name), "{name}");
        }
        assert!(removed.iter().all(|name| name != "CARGO_HOME" && name != "PATH"));
    }
}
