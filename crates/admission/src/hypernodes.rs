//! `/hypernodes/validate`: a HyperNode has members, and patterns that can be read. The rest is in the schema.

use regex::RegexBuilder;
use regex_syntax::ast::ErrorKind;
use regex_syntax::ast::parse::Parser;
use serde_json::Value;
use volcano_api::names::admission::messages;
use volcano_api::topology::HyperNode;

use crate::Patch;
use crate::field::{Errors, Path};
use crate::review::{Context, Operation, Request, Verdict};

/// The largest compiled pattern: the scheduler takes no larger one.
const PATTERN_BYTES: usize = 1 << 20;

/// Judges a new HyperNode, or a change to one.
pub(crate) fn validate(_: &Context<'_>, request: &Request) -> Verdict {
    if !matches!(request.operation(), Operation::Create | Operation::Update) {
        return Ok(Patch::default());
    }
    let node: HyperNode = request.object()?;
    let at = Path::new("[].spec.members");
    let mut errors = Errors::default();
    if node.spec.members.is_empty() {
        errors.invalid(&at, Value::Null, messages::MEMBER_REQUIRED);
    }
    for pattern in node
        .spec
        .members
        .iter()
        .filter_map(|member| member.selector.regex_match.as_ref())
    {
        if let Some(fault) = pattern_fault(&pattern.pattern) {
            let place = at.child("selector.regexMatch.pattern");
            let rule = format!("member regexMatch pattern is invalid: {fault}");
            errors.invalid(&place, pattern.pattern.as_str(), &rule);
        }
    }
    match errors.aggregate() {
        Some(message) => Err(message.into()),
        None => Ok(Patch::default()),
    }
}

/// What is wrong with a pattern, in the words of RE2 where it has some.
fn pattern_fault(pattern: &str) -> Option<String> {
    let error = RegexBuilder::new(pattern)
        .size_limit(PATTERN_BYTES)
        .build()
        .err()?;
    let Err(fault) = Parser::new().parse(pattern) else {
        // The pattern is well formed, and too large or in need of tables that are not there.
        let text = error.to_string();
        return Some(text.lines().last().unwrap_or_default().trim().to_owned());
    };
    let span = fault.span();
    let (from, to) = (span.start.offset, span.end.offset);
    let part = |range: std::ops::Range<usize>| pattern.get(range).unwrap_or_default();
    let (words, shown) = match fault.kind() {
        ErrorKind::ClassUnclosed => ("missing closing ]".to_owned(), part(from..pattern.len())),
        ErrorKind::GroupUnclosed => ("missing closing )".to_owned(), pattern),
        ErrorKind::GroupUnopened => ("unexpected )".to_owned(), pattern),
        ErrorKind::RepetitionMissing => {
            let operator = pattern
                .get(from..)
                .and_then(|rest| rest.get(..1))
                .unwrap_or_default();
            ("missing argument to repetition operator".to_owned(), operator)
        }
        ErrorKind::ClassRangeInvalid => ("invalid character class range".to_owned(), part(from..to)),
        ErrorKind::EscapeUnrecognized => ("invalid escape sequence".to_owned(), part(from..to)),
        ErrorKind::EscapeUnexpectedEof => ("trailing backslash at end of expression".to_owned(), ""),
        ErrorKind::RepetitionCountInvalid => ("invalid repeat count".to_owned(), part(from..to)),
        other => (other.to_string(), part(from..to)),
    };
    Some(format!("error parsing regexp: {words}: `{shown}`"))
}
