//! The part of CEL that rules of CRDs and match conditions of webhooks are written in.
//!
//! Rules run on every write, over objects as they are: values are borrowed, nothing is converted. Expressions are
//! parsed once.

mod eval;
mod functions;
mod parse;
#[cfg(test)]
mod tests;

use parse::Expr;
use serde_json::Value;
use thiserror::Error;

/// Longest expression that is taken.
const LONGEST: usize = 16 << 10;

/// Why an expression has no value.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CelError {
    /// It cannot be read.
    #[error("syntax error at {at}: {problem}")]
    Syntax {
        /// Byte of the text.
        at: usize,
        /// What is wrong there.
        problem: String,
    },
    /// It cannot be evaluated.
    #[error("{0}")]
    Evaluation(String),
}

/// A parsed expression.
#[derive(Debug)]
pub struct Program(Expr);

/// The variables that an expression sees.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a>(Vec<(&'static str, &'a Value)>);

impl<'a> Scope<'a> {
    /// No variables.
    pub fn new() -> Self {
        Scope::default()
    }

    /// Adds one.
    pub fn set(&mut self, name: &'static str, value: &'a Value) {
        self.0.push((name, value));
    }
}

impl Program {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Program, CelError> {
        if text.len() > LONGEST {
            let problem = format!("an expression has at most {LONGEST} bytes");
            return Err(CelError::Syntax { at: LONGEST, problem });
        }
        parse::parse(text).map(Program)
    }

    /// Whether it is true.
    pub fn holds(&self, scope: &Scope<'_>) -> Result<bool, CelError> {
        match eval::evaluate(&self.0, &scope.0)? {
            eval::Val::Bool(flag) => Ok(flag),
            other => Err(CelError::Evaluation(format!(
                "expected bool, got {}",
                other.type_name()
            ))),
        }
    }

    /// Its text.
    pub fn text(&self, scope: &Scope<'_>) -> Result<String, CelError> {
        match eval::evaluate(&self.0, &scope.0)? {
            eval::Val::Str(text) => Ok(text.into_owned()),
            other => Err(CelError::Evaluation(format!(
                "expected string, got {}",
                other.type_name()
            ))),
        }
    }
}
