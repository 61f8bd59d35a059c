//! Forms of names in Kubernetes, and what it says of a text that does not have them.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const NAME_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

/// The longest name part of a label's key, the longest value of one, and the longest DNS label.
const MAX_NAME: usize = 63;
/// The longest DNS subdomain.
const MAX_SUBDOMAIN: usize = 253;
/// The longest name of a port.
const MAX_PORT_NAME: usize = 15;

/// What lengths are counted in. Kubernetes says the one of labels and the other of names, and means bytes.
const BYTES: &str = "bytes";
const CHARACTERS: &str = "characters";

/// What keeps a text from being a key of labels: a name of 63 bytes, which a DNS subdomain and `/` may precede.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut parts = text.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(""), Some(name), None) => {
            faults.push("prefix part must be non-empty".to_owned());
            name
        }
        (Some(prefix), Some(name), None) => {
            faults.extend(
                subdomain_in(prefix, BYTES)
                    .iter()
                    .map(|fault| format!("prefix part {fault}")),
            );
            name
        }
        _ => {
            let rule = by_pattern(QUALIFIED_RULE, QUALIFIED, &NAME_EXAMPLES);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_NAME {
        faults.push(format!("name part {}", at_most(MAX_NAME, BYTES)));
    }
    if !is_name_part(name) {
        let rule = by_pattern(QUALIFIED_RULE, QUALIFIED, &NAME_EXAMPLES);
        faults.push(format!("name part {rule}"));
    }
    faults
}

/// What keeps a text from being the value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > MAX_NAME {
        faults.push(at_most(MAX_NAME, BYTES));
    }
    if !text.is_empty() && !is_name_part(text) {
        let rule = format!(
            "a valid label must be an empty string or {}",
            &QUALIFIED_RULE["must ".len()..]
        );
        faults.push(by_pattern(
            &rule,
            &format!("({QUALIFIED})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// What keeps a text from being a DNS label.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > MAX_NAME {
        faults.push(at_most(MAX_NAME, CHARACTERS));
    }
    if is_dns_label(text) {
        return faults;
    }
    faults.push(if text.split('.').all(is_dns_label) {
        "must not contain dots".to_owned()
    } else {
        by_pattern(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
            LABEL,
            &["my-name", "123-abc"],
        )
    });
    faults
}

/// What keeps a text from being a DNS subdomain, the form of most names of objects.
pub(crate) fn subdomain(text: &str) -> Vec<String> {
    subdomain_in(text, CHARACTERS)
}

fn subdomain_in(text: &str, unit: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > MAX_SUBDOMAIN {
        faults.push(at_most(MAX_SUBDOMAIN, unit));
    }
    if !text.split('.').all(is_dns_label) {
        faults.push(by_pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    faults
}

/// What keeps a text from being the name of a port.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > MAX_PORT_NAME {
        faults.push(at_most(MAX_PORT_NAME, CHARACTERS));
    }
    let lower = |b: &u8| b.is_ascii_lowercase();
    if text.is_empty() || !text.bytes().all(|b| lower(&b) || b.is_ascii_digit() || b == b'-') {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|b| lower(&b)) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

/// What keeps a text that is not empty from being the name of an environment variable.
pub(crate) fn env_name(text: &str) -> Vec<String> {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

fn is_name_part(text: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn is_dns_label(text: &str) -> bool {
    is_name_part(text)
        && !text
            .bytes()
            .any(|b| b.is_ascii_uppercase() || b == b'_' || b == b'.')
}

fn at_most(most: usize, unit: &str) -> String {
    format!("must be no more than {most} {unit}")
}

/// A rule with examples and its pattern, as Kubernetes words it.
fn by_pattern(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!(
        "{rule} (e.g. {}regex used for validation is '{pattern}')",
        examples.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUALIFIED_FAULT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const SUBDOMAIN_FAULT: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

    fn check(what: fn(&str) -> Vec<String>, cases: &[(&str, &[&str])]) {
        for (text, expected) in cases {
            assert_eq!(what(text), *expected, "{text:?}");
        }
    }

    #[test]
    fn qualified_names() {
        let long = "a".repeat(64);
        let two = format!("name part {QUALIFIED_FAULT}");
        let many = format!(
            "a valid label key {QUALIFIED_FAULT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        );
        let prefix = format!("prefix part {SUBDOMAIN_FAULT}");
        check(
            qualified_name,
            &[
                ("a", &[]),
                ("My.Name_1-x", &[]),
                ("example.com/My", &[]),
                (&long[..63], &[]),
                (&long, &["name part must be no more than 63 bytes"]),
                ("", &["name part must be non-empty", &two]),
                ("-a", &[&two]),
                ("a b", &[&two]),
                ("größe", &[&two]),
                ("/a", &["prefix part must be non-empty"]),
                ("A/a", &[&prefix]),
                ("a/b/c", &[&many]),
            ],
        );
    }

    #[test]
    fn label_values() {
        let fault = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
        let long = "a".repeat(64);
        check(
            label_value,
            &[
                ("", &[]),
                ("Mi", &[]),
                ("_a", &[fault]),
                ("a/b", &[fault]),
                (&long, &["must be no more than 63 bytes"]),
            ],
        );
    }

    #[test]
    fn labels_and_subdomains_of_the_dns() {
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let long = "a".repeat(64);
        check(
            dns_label,
            &[
                ("a-1", &[]),
                ("a.b", &["must not contain dots"]),
                ("A", &[label]),
                ("a_b", &[label]),
                ("a-", &[label]),
                (&long, &["must be no more than 63 characters"]),
            ],
        );
        let long = "a.".repeat(126) + "ab";
        check(
            subdomain,
            &[
                ("a.b-c.1", &[]),
                (&long[1..], &[SUBDOMAIN_FAULT]),
                (&long, &["must be no more than 253 characters"]),
                ("a..b", &[SUBDOMAIN_FAULT]),
                ("", &[SUBDOMAIN_FAULT]),
                ("a_b", &[SUBDOMAIN_FAULT]),
            ],
        );
    }

    #[test]
    fn names_of_ports_and_variables() {
        check(
            port_name,
            &[
                ("http", &[]),
                ("80", &["must contain at least one letter (a-z)"]),
                (
                    "Http_",
                    &["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"],
                ),
                ("a--b", &["must not contain consecutive hyphens"]),
                ("a-", &["must not begin or end with a hyphen"]),
                ("abcdefghijklmnop", &["must be no more than 15 characters"]),
            ],
        );
        let fault = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        check(
            env_name,
            &[
                ("A.b-1 c", &[]),
                ("a=b", &[fault]),
                ("é", &[fault]),
                ("a\n", &[fault]),
            ],
        );
    }
}
