//! `/hypernodes/validate`: a HyperNode has members, and patterns that can be read. The rest is in the schema.

use std::collections::BTreeSet;

use regex::RegexBuilder;
use regex_syntax::ast::ErrorKind;
use regex_syntax::ast::parse::Parser;
use serde_json::Value;
use volcano_api::names::admission::messages;
use volcano_api::topology::{HyperNode, MemberSpec};

use crate::Patch;
use crate::field::{Errors, Path};
use crate::review::{Context, Operation, Request, Verdict};

/// The largest compiled pattern: the scheduler takes no larger one.
const PATTERN_BYTES: usize = 1 << 20;
/// The most different patterns of a HyperNode. Each takes a while to compile, and the API server waits for seconds only.
const MAX_PATTERNS: usize = 256;
/// The most bytes that these have together.
const MAX_PATTERNS_BYTES: usize = 64 * 1024;

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
    match few_patterns(&node.spec.members) {
        Ok(patterns) => check_patterns(patterns.into_iter(), &at, &mut errors),
        Err(rule) => errors.forbidden(&at, &rule),
    }
    match errors.aggregate() {
        Some(message) => Err(message.into()),
        None => Ok(Patch::default()),
    }
}

/// The different patterns of the members, in their order, unless they are too many to be judged.
fn few_patterns(members: &[MemberSpec]) -> Result<Vec<&str>, String> {
    let mut seen = BTreeSet::new();
    let patterns = members
        .iter()
        .filter_map(|member| member.selector.regex_match.as_ref())
        .map(|selector| selector.pattern.as_str());
    let different: Vec<&str> = patterns.filter(|pattern| seen.insert(*pattern)).collect();
    let (count, bytes) = (
        different.len(),
        different.iter().map(|pattern| pattern.len()).sum::<usize>(),
    );
    if count > MAX_PATTERNS || bytes > MAX_PATTERNS_BYTES {
        return Err(format!(
            "there may be at most {MAX_PATTERNS} different patterns of {MAX_PATTERNS_BYTES} bytes together, got {count} of {bytes} bytes"
        ));
    }
    Ok(different)
}

/// Judges patterns, until there are more errors than are told.
fn check_patterns<'a>(mut patterns: impl Iterator<Item = &'a str>, at: &Path, errors: &mut Errors) {
    let place = at.child("selector.regexMatch.pattern");
    while !errors.is_full()
        && let Some(pattern) = patterns.next()
    {
        if let Some(fault) = pattern_fault(pattern) {
            let rule = format!("member regexMatch pattern is invalid: {fault}");
            errors.invalid(&place, pattern, &rule);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::MAX_ERRORS;
    use serde_json::{from_value, json};

    fn members(patterns: impl Iterator<Item = String>) -> Vec<MemberSpec> {
        let member = |pattern: String| json!({"selector": {"regexMatch": {"pattern": pattern}}});
        let members: Value = patterns.map(member).collect();
        from_value(members).unwrap()
    }

    #[test]
    fn equal_patterns_are_one() {
        let many = members((0..45_000).map(|number| format!("n{}", number % 2)));
        assert_eq!(few_patterns(&many), Ok(vec!["n0", "n1"]));
    }

    #[test]
    fn patterns_have_limits_that_are_told() {
        let rule = "there may be at most 256 different patterns of 65536 bytes together, got";
        let most = members((0..MAX_PATTERNS).map(|number| format!("n{number}")));
        assert_eq!(few_patterns(&most).map(|patterns| patterns.len()), Ok(256));
        let many = members((10_000..55_000).map(|number| format!(r"\w{{9}}{number}")));
        assert_eq!(
            few_patterns(&many),
            Err(format!("{rule} 45000 of {} bytes", 45_000 * 10))
        );
        let long = members(["a", "b"].map(|letter| letter.repeat(40_000)).into_iter());
        assert_eq!(few_patterns(&long), Err(format!("{rule} 2 of 80000 bytes")));
    }

    #[test]
    fn no_more_is_compiled_than_is_told() {
        let mut errors = Errors::default();
        let mut taken = 0;
        let endless = std::iter::repeat("(").inspect(|_| taken += 1);
        check_patterns(endless, &Path::new("x"), &mut errors);
        assert_eq!((taken, errors.count()), (MAX_ERRORS, MAX_ERRORS));
    }
}
