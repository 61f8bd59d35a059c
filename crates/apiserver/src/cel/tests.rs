use super::*;
use serde_json::json;

fn holds(text: &str, value: &Value) -> Result<bool, CelError> {
    let mut scope = Scope::new();
    scope.set("self", value);
    scope.set("object", value);
    Program::parse(text)?.holds(&scope)
}

#[test]
fn rules_of_the_projects_crds_hold_as_they_read() {
    let one = "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1";
    let any = "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)";
    let cases = [
        (one, json!({}), true),
        (one, json!({"exactMatch": {}, "labelMatch": {}}), false),
        (any, json!({}), false),
        (any, json!({"regexMatch": {"pattern": "a"}}), true),
    ];
    for (rule, value, expected) in cases {
        assert_eq!(holds(rule, &value), Ok(expected), "{rule} over {value}");
    }
}

#[test]
fn expressions_have_the_values_that_cel_gives_them() {
    let object = json!({
        "spec": {"schedulerName": "volcano", "n": 3, "f": 1.5, "list": [1, 2, 3], "names": ["a", "b"]},
        "metadata": {"annotations": {"volcano.sh/x": "1"}, "x-y": true},
        "items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}],
    });
    let cases = [
        (
            "has(object.spec.schedulerName) && object.spec.schedulerName in ['volcano', 'other']",
            true,
        ),
        ("'volcano.sh/x' in object.metadata.annotations", true),
        (
            "has(object.metadata.labels) && 'x' in object.metadata.labels",
            false,
        ),
        (
            "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && -7 / 2 == -3 && 7 % 3 == 1",
            true,
        ),
        ("!(1 > 2) && 1 <= 1 && 'a' < 'b' && 1 < 1.5", true),
        (
            "self.items.all(i, i.n > 0) && self.items.exists(i, i.name == 'b')",
            true,
        ),
        ("self.items.exists_one(i, i.n == 1)", true),
        ("self.items.filter(i, i.n > 1).map(i, i.name) == ['b']", true),
        (
            "self.spec.list.size() == 3 && size('abc') == 3 && size(self.metadata.annotations) == 1",
            true,
        ),
        (
            "self.spec.schedulerName.startsWith('vol') && self.spec.schedulerName.matches('^v.*o$')",
            true,
        ),
        (
            "self.spec.names.join('-') == 'a-b' && 'a,b'.split(',').size() == 2",
            true,
        ),
        ("self.spec.n > 2 ? true : self.missing", true),
        ("true || self.missing.x", true),
        ("self.missing.x || true", true),
        ("self.metadata.x__dash__y", true),
        ("self.spec.list[1] == 2 && {'a': 1}['a'] == 1", true),
        ("int('5') == 5 && string(5) == '5' && double(1) == 1.0", true),
        (
            "[1, 2] + [3] == self.spec.list && self.spec.list.sum() == 6 && self.spec.list.max() == 3",
            true,
        ),
        (r#""\u0041" == 'A' && r'\n'.size() == 2"#, true),
        ("null == null && self.spec.f == 1.5 // a remark", true),
    ];
    for (text, expected) in cases {
        assert_eq!(holds(text, &object), Ok(expected), "{text}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_an_error_that_says_so() {
    for (text, part) in [
        ("self.x == 1", "no such key: x"),
        ("nothing", "undeclared reference"),
        ("1 / 0 == 1", "division by zero"),
        ("'a' + 1 == 2", "no such overload"),
        ("1", "expected bool"),
        ("self.y()", "no such function"),
        ("[1].nope()", "no such function"),
        ("[1][5] == 1", "index out of bounds"),
        ("9223372036854775807 + 1 > 0", "overflow"),
    ] {
        let error = holds(text, &json!({})).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    for text in [
        "", "1 +", "(1", "'a", "a b", "self.", "#", "[1,,2]", "{1}", "'\\q'",
    ] {
        let error = Program::parse(text).unwrap_err();
        assert!(matches!(error, CelError::Syntax { .. }), "{text}: {error}");
    }
    let deep = format!("{}1{}", "(".repeat(500), ")".repeat(500));
    assert!(Program::parse(&deep).is_err());
    let long = "[1,2,3,4,5,6,7,8,9,10]";
    let nested = format!(
        "{long}.all(a, {long}.all(b, {long}.all(c, {long}.all(d, {long}.all(e, {long}.all(f, true))))))"
    );
    assert!(
        holds(&nested, &json!({}))
            .unwrap_err()
            .to_string()
            .contains("cost limit")
    );
}
