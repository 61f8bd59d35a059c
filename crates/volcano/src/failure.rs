//! What a command says when it cannot do what was asked: what went wrong, for what, and what to do about it.

use std::fmt;
use std::process::ExitCode;
use volcano_plan::fault::Fault;

/// A command that could not do its work.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

/// The exit code for wrong usage or input, the same as that of a wrong command line.
const BAD_INPUT: u8 = 2;

impl Failure {
    /// Input that cannot be used.
    pub fn new(message: impl Into<String>) -> Self {
        Failure {
            message: message.into(),
            hint: None,
        }
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the process exits with.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(BAD_INPUT)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure {
            message: fault.message,
            hint: fault.hint,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nHint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
