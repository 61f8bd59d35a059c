//! Colours of phases and states, for people: never in what a script reads, and not where `NO_COLOR` is set.

use std::ffi::OsString;

/// A colour, as the sequence that turns it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(&'static str);

const GREEN: Colour = Colour("\x1b[32m");
const YELLOW: Colour = Colour("\x1b[33m");
const RED: Colour = Colour("\x1b[31m");
const GREY: Colour = Colour("\x1b[90m");
const OFF: &str = "\x1b[0m";

impl Colour {
    /// The text in this colour.
    pub fn paint(self, text: &str) -> String {
        format!("{}{text}{OFF}", self.0)
    }
}

/// Whether a terminal may show colours: <https://no-color.org>.
pub fn are_wanted(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let no_color = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = variable("TERM").is_some_and(|term| term == "dumb");
    !no_color && !dumb
}

/// The colour of a phase, a state or a status; none for what is not worth one.
pub fn of_state(state: &str) -> Option<Colour> {
    match state {
        "Running" | "Open" | "True" | "Ready" => Some(GREEN),
        "Pending" | "Inqueue" | "Restarting" | "Aborting" | "Terminating" | "Completing" | "Closing"
        | "SchedulingGated" | "ContainerCreating" | "PodInitializing" | "Warning" => Some(YELLOW),
        "Failed" | "Terminated" | "Aborted" | "Unknown" | "Closed" | "Error" | "CrashLoopBackOff"
        | "ImagePullBackOff" | "ErrImagePull" | "OOMKilled" | "NotReady" | "False" => Some(RED),
        "Completed" | "Succeeded" | "Succeed" => Some(GREY),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let with = |name: &'static str, value: &'static str| {
            move |asked: &str| (asked == name).then(|| OsString::from(value))
        };
        assert!(are_wanted(with("TERM", "xterm")));
        assert!(are_wanted(with("NO_COLOR", "")));
        assert!(!are_wanted(with("NO_COLOR", "1")));
        assert!(!are_wanted(with("TERM", "dumb")));
    }
}
