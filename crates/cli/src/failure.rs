//! What a command says when it cannot do what was asked: what failed, on which object, and what to do about it.
//!
//! The message is one line of standard output that scripts read, in the words of the API server; the hint is ours, and
//! goes to standard error.

use std::fmt;
use std::io::ErrorKind;
use volcano_runtime::client::{CallError, ConnectError};

/// A command that did not get to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// Something went wrong.
    Told {
        /// What, for which object.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Whoever read the output has seen enough. Not an error.
    ClosedPipe,
    /// The user stopped it.
    Interrupted,
}

impl Failure {
    /// Something went wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Failure::Told {
            message: message.into(),
            hint: None,
        }
    }

    /// The same with advice; advice that is there already stays.
    #[must_use]
    pub fn hint(self, advice: impl Into<String>) -> Self {
        match self {
            Failure::Told { message, hint: None } => Failure::Told {
                message,
                hint: Some(advice.into()),
            },
            other => other,
        }
    }

    /// The same with words before the message.
    #[must_use]
    pub fn after(self, words: &str) -> Self {
        match self {
            Failure::Told { message, hint } => Failure::Told {
                message: format!("{words}{message}"),
                hint,
            },
            other => other,
        }
    }

    /// What a call to an API server said.
    pub fn of_call(server: &str, error: &CallError) -> Self {
        let failure = match error {
            CallError::Refused { message, .. } => Failure::new(message.clone()),
            CallError::NoAnswer(cause) => {
                Failure::new(format!("no answer from the API server {server}: {cause}"))
            }
            other => Failure::new(other.to_string()),
        };
        match advice(error) {
            Some(advice) => failure.hint(advice),
            None => failure,
        }
    }
}

/// What to do about a call that failed.
fn advice(error: &CallError) -> Option<&'static str> {
    let CallError::Refused { code, message, .. } = error else {
        return matches!(error, CallError::NoAnswer(_)).then_some(
            "is the cluster up, and is this its address? --kubeconfig, --context and --master choose another",
        );
    };
    Some(match code {
        // What the API server says about a kind that it does not have; about an object it says its name.
        404 if !message.contains('"') => {
            "the CustomResourceDefinitions are not installed: volcano crds | kubectl apply --server-side -f -"
        }
        404 if message.starts_with("queues.") => "vcctl queue list shows what there is",
        404 => "the list command shows what there is; is the namespace the right one?",
        401 => {
            "the credentials are not accepted: log in again, or choose others with --kubeconfig or --context"
        }
        403 => "ask an administrator for a role that allows it; docs/vcctl.md lists what each command needs",
        409 => "choose another name, or delete the one that is there",
        429 => "the API server is busy: try again in a moment",
        _ => return None,
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Told { message, .. } => message,
            Failure::ClosedPipe => "nobody reads the output",
            Failure::Interrupted => "interrupted",
        })
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let failure = Failure::new(error.to_string());
        match error {
            ConnectError::Kubeconfig { .. } => failure.hint(
                "kubectl config get-contexts shows the contexts; --kubeconfig and KUBECONFIG name the files",
            ),
            _ => failure,
        }
    }
}

impl From<std::io::Error> for Failure {
    /// Of writing to standard output.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::new(format!("cannot write to standard output: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, message: &str) -> CallError {
        CallError::Refused {
            code,
            reason: "Reason".to_owned(),
            message: message.to_owned(),
            retry_after: None,
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server_and_with_advice() {
        let cases = [
            (
                refused(404, "the server could not find the requested resource"),
                "volcano crds",
            ),
            (refused(404, "jobs.batch.volcano.sh \"x\" not found"), "namespace"),
            (
                refused(403, "jobs.batch.volcano.sh is forbidden: User \"u\" …"),
                "role",
            ),
            (refused(401, "Unauthorized"), "log in"),
        ];
        for (error, expected) in cases {
            let Failure::Told { message, hint } = Failure::of_call("https://k", &error) else {
                panic!("it is told");
            };
            assert!(!message.contains("Reason"), "{message}");
            assert!(
                hint.as_deref().is_some_and(|hint| hint.contains(expected)),
                "{hint:?}"
            );
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_named() {
        let error = CallError::NoAnswer("connection refused".to_owned());
        let Failure::Told { message, hint } = Failure::of_call("https://k", &error) else {
            panic!("it is told");
        };
        assert_eq!(
            message,
            "no answer from the API server https://k: connection refused"
        );
        assert!(hint.is_some_and(|hint| hint.contains("--context")));
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let closed = std::io::Error::from(ErrorKind::BrokenPipe);
        assert_eq!(Failure::from(closed), Failure::ClosedPipe);
    }
}
