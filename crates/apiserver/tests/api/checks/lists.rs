//! Lists: selectors, pages, versions.

use super::{Tally, World};
use serde_json::{Value, json};

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("lists").await;
    let other = w.namespace("lists-2").await;
    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    for (name, tier, kind) in [
        ("a", "1", "Opaque"),
        ("b", "2", "Opaque"),
        ("c", "2", "example.com/x"),
        ("d", "3", "Opaque"),
        ("e", "3", "Opaque"),
    ] {
        let secret = json!({"metadata": {"name": name, "labels": {"tier": tier, "set": "x"}}, "type": kind});
        let made = w.post(&secrets, &secret).await;
        assert_eq!(made.code, 201, "{made:?}");
    }
    w.post(
        &format!("/api/v1/namespaces/{other}/secrets"),
        &json!({"metadata": {"name": "z", "labels": {"set": "x"}}}),
    )
    .await;

    let all = w.get(&secrets).await;
    t.check(
        "a list is of its kind",
        all.body["kind"] == "SecretList" && all.body["apiVersion"] == "v1",
        &all.body["kind"],
    );
    t.check("a list has a version", !all.version().is_empty(), all.version());
    t.check(
        "a list is in the order of names",
        names(&all.body) == ["a", "b", "c", "d", "e"],
        names(&all.body),
    );
    let everywhere = w.get("/api/v1/secrets?labelSelector=set%3Dx").await;
    t.check(
        "a list goes over all namespaces",
        names(&everywhere.body).len() == 6,
        names(&everywhere.body),
    );
    for (selector, expected) in [
        ("tier=2", vec!["b", "c"]),
        ("tier!=2", vec!["a", "d", "e"]),
        ("tier in (1,3)", vec!["a", "d", "e"]),
        ("tier notin (1,3)", vec!["b", "c"]),
        ("tier", vec!["a", "b", "c", "d", "e"]),
        ("!tier", vec![]),
        ("tier=3,set=x", vec!["d", "e"]),
        ("tier>1", vec!["b", "c", "d", "e"]),
    ] {
        let encoded = selector
            .replace('=', "%3D")
            .replace(' ', "%20")
            .replace('!', "%21")
            .replace('>', "%3E");
        let list = w.get(&format!("{secrets}?labelSelector={encoded}")).await;
        t.check(
            &format!("labels select by {selector}"),
            names(&list.body) == expected,
            names(&list.body),
        );
    }
    let wrong = w.get(&format!("{secrets}?labelSelector=a%20b")).await;
    t.check(
        "a wrong label selector is refused",
        wrong.code == 400 && wrong.message().contains("unable to parse requirement"),
        &wrong.body,
    );
    for (selector, expected) in [
        ("metadata.name=b", vec!["b"]),
        ("metadata.name!=b", vec!["a", "c", "d", "e"]),
        ("type=example.com/x", vec!["c"]),
        ("type!=Opaque,metadata.name=c", vec!["c"]),
    ] {
        let encoded = selector.replace('=', "%3D").replace('!', "%21");
        let list = w.get(&format!("{secrets}?fieldSelector={encoded}")).await;
        t.check(
            &format!("fields select by {selector}"),
            names(&list.body) == expected,
            names(&list.body),
        );
    }
    let unknown = w.get(&format!("{secrets}?fieldSelector=data.a%3Db")).await;
    t.check(
        "a field that cannot be selected by is refused",
        unknown.code == 400 && unknown.message().contains("field label not supported: data.a"),
        &unknown.body,
    );

    let first = w.get(&format!("{secrets}?limit=2")).await;
    let next = first.body["metadata"]["continue"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    t.check(
        "a page has its size",
        names(&first.body) == ["a", "b"] && !next.is_empty(),
        &first.body["metadata"],
    );
    t.check(
        "a page says how many are left",
        first.body["metadata"]["remainingItemCount"] == 3,
        &first.body["metadata"],
    );
    w.post(&secrets, &json!({"metadata": {"name": "c0"}})).await;
    w.delete(&format!("{secrets}/d"), &Value::Null).await;
    let second = w.get(&format!("{secrets}?limit=2&continue={next}")).await;
    t.check(
        "the next page is of the same state",
        names(&second.body) == ["c", "d"],
        names(&second.body),
    );
    t.check(
        "pages have the same version",
        second.version() == first.version(),
        (second.version(), first.version()),
    );
    let next = second.body["metadata"]["continue"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let last = w.get(&format!("{secrets}?limit=2&continue={next}")).await;
    t.check(
        "the last page has no further",
        names(&last.body) == ["e"]
            && last.body["metadata"]["continue"]
                .as_str()
                .unwrap_or_default()
                .is_empty(),
        &last.body["metadata"],
    );
    let nonsense = w.get(&format!("{secrets}?limit=2&continue=nonsense")).await;
    t.check(
        "a wrong continuation is refused",
        nonsense.code == 400 && nonsense.message().contains("continue key is not valid"),
        &nonsense.body,
    );
    let selected = w.get(&format!("{secrets}?limit=1&labelSelector=set%3Dx")).await;
    t.check(
        "with a selector nothing is said of the rest",
        selected.body["metadata"].get("remainingItemCount").is_none(),
        &selected.body["metadata"],
    );

    let now = w.get(&secrets).await;
    t.check(
        "a new list has the new state",
        names(&now.body) == ["a", "b", "c", "c0", "e"],
        names(&now.body),
    );
    let then = w
        .get(&format!(
            "{secrets}?resourceVersion={}&resourceVersionMatch=Exact",
            first.version()
        ))
        .await;
    t.check(
        "an exact version is listed as it was",
        names(&then.body) == ["a", "b", "c", "d", "e"] && then.version() == first.version(),
        names(&then.body),
    );
    let newer = w
        .get(&format!(
            "{secrets}?resourceVersion={}&resourceVersionMatch=NotOlderThan",
            first.version()
        ))
        .await;
    t.check(
        "not older than is at least as new",
        newer.code == 200 && !names(&newer.body).is_empty(),
        newer.code,
    );
    let any = w.get(&format!("{secrets}?resourceVersion=0")).await;
    t.check(
        "version 0 is any state",
        any.code == 200 && !any.version().is_empty(),
        any.code,
    );
    let future = w
        .get(&format!(
            "{secrets}?resourceVersion=9000000000&resourceVersionMatch=NotOlderThan"
        ))
        .await;
    t.check(
        "a version that is not there yet times out",
        future.code == 504 && future.message().contains("Too large resource version"),
        &future.body,
    );
    let unmatched = w.get(&format!("{secrets}?resourceVersionMatch=Exact")).await;
    t.check(
        "a match wants a version",
        unmatched.code == 422
            && unmatched
                .message()
                .contains("resourceVersionMatch is forbidden unless resourceVersion is provided"),
        &unmatched.body,
    );
    let text = w.get(&format!("{secrets}?resourceVersion=abc")).await;
    t.refused(
        "a version is a number",
        &text,
        400,
        "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\"",
    );
    let zero = w
        .get(&format!("{secrets}?resourceVersion=0&resourceVersionMatch=Exact"))
        .await;
    t.check("version 0 is never exact", zero.code == 422, &zero.body);
    let initial = w
        .get(&format!(
            "{secrets}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        ))
        .await;
    t.check(
        "initial events are for watches",
        initial.code == 422,
        &initial.body,
    );
}
