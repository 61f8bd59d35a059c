//! Rules for HyperNodes.

use serde_json::{Value, json};

use super::world::{World, refusal};

const PATH: &str = "/hypernodes/validate";

fn patterns(patterns: &[&str]) -> Value {
    let member = |pattern: &&str| json!({"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}});
    let members: Vec<Value> = patterns.iter().map(member).collect();
    json!({"metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}})
}

fn invalid(pattern: &str, fault: &str) -> String {
    format!(
        "[].spec.members.selector.regexMatch.pattern: Invalid value: \"{pattern}\": member regexMatch pattern is invalid: {fault}"
    )
}

#[test]
fn a_hypernode_has_members() {
    let expected = "[].spec.members: Invalid value: null: member must have at least one member";
    for spec in [json!({}), json!({"members": null}), json!({"members": []})] {
        let object = json!({"metadata": {"name": "h"}, "spec": spec});
        assert_eq!(World::new().refusal(PATH, &object), expected);
        assert_eq!(
            refusal(&World::new().update(PATH, &patterns(&["a"]), &object)),
            expected
        );
    }
    let exact = json!({"spec": {"members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]}});
    assert_eq!(World::new().refusal(PATH, &exact), "");
}

#[test]
fn patterns_can_be_read() {
    let good = ["node-[0-9]+", "^rack-(a|b)-.*$", r"n\d{1,3}", "x{2}?"];
    assert_eq!(World::new().refusal(PATH, &patterns(&good)), "");
    let cases = [
        ("a[b-", "error parsing regexp: missing closing ]: `[b-`"),
        ("(a", "error parsing regexp: missing closing ): `(a`"),
        ("a)b", "error parsing regexp: unexpected ): `a)b`"),
        (
            "*a",
            "error parsing regexp: missing argument to repetition operator: `*`",
        ),
        (
            "[z-a]",
            "error parsing regexp: invalid character class range: `z-a`",
        ),
    ];
    for (pattern, fault) in cases {
        assert_eq!(
            World::new().refusal(PATH, &patterns(&[pattern])),
            invalid(pattern, fault)
        );
    }
    let two = World::new().refusal(PATH, &patterns(&["(", "ok", ")"]));
    let expected = [
        invalid("(", "error parsing regexp: missing closing ): `(`"),
        invalid(")", "error parsing regexp: unexpected ): `)`"),
    ];
    assert_eq!(two, format!("[{}]", expected.join(", ")));
}

#[test]
fn a_pattern_that_grows_without_end_is_refused() {
    let refused = World::new().refusal(PATH, &patterns(&["(((a{100}){100}){100}){100}"]));
    assert_eq!(
        refused,
        invalid(
            "(((a{100}){100}){100}){100}",
            "Compiled regex exceeds size limit of 1048576 bytes."
        )
    );
}

#[test]
fn patterns_without_end_are_refused_with_the_limit() {
    let many: Vec<String> = (10_000..55_000)
        .map(|number| format!(r"\w{{9}}{number}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(
        World::new().refusal(PATH, &patterns(&many)),
        "[].spec.members: Forbidden: there may be at most 256 different patterns of 65536 bytes together, got 45000 of 450000 bytes"
    );
    let same = vec![r"\w{9}"; 45_000];
    assert_eq!(
        World::new().refusal(PATH, &patterns(&same)),
        "",
        "equal ones are one"
    );
}
