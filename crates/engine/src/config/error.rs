//! What is wrong with a configuration: where, what, and what to write instead.

use std::fmt;

/// The number of problems that are told of one text.
const MAX_ERRORS: usize = 100;

/// One problem of a configuration text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The line, counted from 1; absent if the problem is that something is missing from the whole text.
    pub line: Option<usize>,
    /// The column, counted from 1 in characters.
    pub column: Option<usize>,
    /// The way to the value, such as `tiers[0].plugins[2].arguments.binpack.weight`; empty for the whole text.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead, if that can be told.
    pub hint: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "line {line}, column {column}: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            _ => {}
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

/// All problems of a configuration text, in the order of their place; never empty. Printed one per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// Orders the problems by place and keeps the first of them, as a text without sense could have thousands. Those without one come first: they concern the text as a whole.
    pub(super) fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by_key(|error| (error.line, error.column));
        let more = errors.len().saturating_sub(MAX_ERRORS);
        if more > 0 {
            errors.truncate(MAX_ERRORS);
            let message = format!("and {more} more problems");
            errors.push(ConfigError {
                line: None,
                column: None,
                path: String::new(),
                message,
                hint: None,
            });
        }
        Self(errors)
    }

    /// The problems.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }

    /// The problems, taken out.
    #[must_use]
    pub fn into_inner(self) -> Vec<ConfigError> {
        self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
