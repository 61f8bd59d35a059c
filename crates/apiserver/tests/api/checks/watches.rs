//! Watches.

use super::{Tally, World};
use serde_json::{Value, json};

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("watches").await;
    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    let secret = |name: &str, tier: &str| json!({"metadata": {"name": name, "labels": {"tier": tier}}});
    w.post(&secrets, &secret("a", "1")).await;
    let list = w.get(&secrets).await;
    let version = list.version();

    let mut events = w
        .watch(&format!("{secrets}?watch=true&resourceVersion={version}"))
        .await;
    t.check("a watch answers 200", events.code == 200, events.code);
    let b = w.post(&secrets, &secret("b", "1")).await;
    let added = events.next().await;
    t.check(
        "a new object is ADDED",
        added["type"] == "ADDED" && added["object"]["metadata"]["name"] == "b",
        &added,
    );
    t.check(
        "an event has the whole object",
        added["object"]["kind"] == "Secret"
            && added["object"]["apiVersion"] == "v1"
            && added["object"]["metadata"]["uid"] == b.uid().as_str(),
        &added,
    );
    let changed = w
        .merge(
            &format!("{secrets}/b"),
            &json!({"metadata": {"labels": {"tier": "2"}}}),
        )
        .await;
    let modified = events.next().await;
    t.check(
        "a change is MODIFIED, with its version",
        modified["type"] == "MODIFIED"
            && modified["object"]["metadata"]["resourceVersion"] == changed.version().as_str(),
        &modified,
    );
    w.delete(&format!("{secrets}/b"), &Value::Null).await;
    let deleted = events.next().await;
    t.check(
        "what goes is DELETED",
        deleted["type"] == "DELETED" && deleted["object"]["metadata"]["name"] == "b",
        &deleted,
    );
    let number = |event: &Value| {
        event["object"]["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or_default()
    };
    t.check(
        "its version is that of the deletion",
        number(&deleted) > number(&modified),
        &deleted,
    );

    let mut again = w
        .watch(&format!("{secrets}?watch=true&resourceVersion={version}"))
        .await;
    let told = [again.told().await, again.told().await, again.told().await];
    let expected = [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
        .map(|(kind, name)| (kind.to_owned(), name.to_owned()));
    t.check(
        "a watch goes on from any version that is known",
        told == expected,
        &told,
    );

    let mut selected = w
        .watch(&format!(
            "{secrets}?watch=true&resourceVersion={version}&labelSelector=tier%3D2"
        ))
        .await;
    let told = [selected.told().await, selected.told().await];
    let expected = [("ADDED", "b"), ("DELETED", "b")].map(|(kind, name)| (kind.to_owned(), name.to_owned()));
    t.check("what comes to match is ADDED", told == expected, &told);
    w.merge(
        &format!("{secrets}/a"),
        &json!({"metadata": {"labels": {"tier": "2"}}}),
    )
    .await;
    let left = w
        .merge(
            &format!("{secrets}/a"),
            &json!({"metadata": {"labels": {"tier": "3"}}}),
        )
        .await;
    let come = selected.next().await;
    let gone = selected.next().await;
    t.check("a label that comes to match adds", come["type"] == "ADDED", &come);
    t.check(
        "what no longer matches is DELETED",
        gone["type"] == "DELETED",
        &gone,
    );
    t.check(
        "as it was when it matched",
        gone["object"]["metadata"]["labels"]["tier"] == "2",
        &gone,
    );
    t.check(
        "at the version that it left with",
        gone["object"]["metadata"]["resourceVersion"] == left.version().as_str(),
        &gone,
    );

    let mut one = w
        .watch(&format!(
            "{secrets}?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Da"
        ))
        .await;
    t.check(
        "fields select events",
        one.told().await == ("MODIFIED".to_owned(), "a".to_owned()),
        (),
    );

    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    for name in ["a", "busy"] {
        w.post(&maps, &json!({"metadata": {"name": name}})).await;
    }
    let before = w.get(&maps).await.version();
    for number in 0..600 {
        let change = json!({"data": {"number": format!("{number}")}});
        w.merge(&format!("{maps}/busy"), &change).await;
    }
    w.merge(&format!("{maps}/a"), &json!({"data": {"x": "1"}})).await;
    let mut one = w
        .watch(&format!(
            "{maps}?watch=true&resourceVersion={before}&fieldSelector=metadata.name%3Da"
        ))
        .await;
    t.check(
        "an event is told at once, however many that are not wanted came before",
        one.told().await == ("MODIFIED".to_owned(), "a".to_owned()),
        (),
    );

    let mut state = w.watch(&format!("{secrets}?watch=true")).await;
    t.check(
        "without a version a watch begins with what is there",
        state.told().await == ("ADDED".to_owned(), "a".to_owned()),
        (),
    );
    let mut state = w.watch(&format!("{secrets}?watch=true&resourceVersion=0")).await;
    t.check(
        "with version 0 too",
        state.told().await == ("ADDED".to_owned(), "a".to_owned()),
        (),
    );

    let initial = format!(
        "{secrets}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut streamed = w.watch(&initial).await;
    t.check(
        "a streamed list has what is there",
        streamed.told().await == ("ADDED".to_owned(), "a".to_owned()),
        (),
    );
    let end = streamed.next().await;
    t.check(
        "it ends with a bookmark",
        end["type"] == "BOOKMARK"
            && end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true",
        &end,
    );
    t.check(
        "the bookmark is of the kind and has a version",
        end["object"]["kind"] == "Secret" && number(&end) > 0,
        &end,
    );
    w.post(&secrets, &secret("later", "1")).await;
    t.check(
        "then changes follow",
        streamed.told().await == ("ADDED".to_owned(), "later".to_owned()),
        (),
    );
    let mut from_bookmark = w
        .watch(&format!("{secrets}?watch=true&resourceVersion={}", number(&end)))
        .await;
    t.check(
        "a watch goes on from a bookmark",
        from_bookmark.told().await == ("ADDED".to_owned(), "later".to_owned()),
        (),
    );
    let unmatched = w
        .get(&format!("{secrets}?watch=true&sendInitialEvents=true"))
        .await;
    t.check(
        "a streamed list wants the match",
        unmatched.code == 422 && unmatched.message().contains("resourceVersionMatch"),
        &unmatched.body,
    );

    let mut old = w.watch(&format!("{secrets}?watch=true&resourceVersion=1")).await;
    let event = if old.code == 200 {
        old.next().await
    } else {
        json!({"object": {"code": old.code}})
    };
    t.check(
        "a version that is too old is told",
        event["object"]["code"] == 410 || event["type"] == "ADDED",
        &event,
    );

    let began = tokio::time::Instant::now();
    let mut short = w
        .watch(&format!(
            "{secrets}?watch=true&resourceVersion={}&timeoutSeconds=1",
            left.version()
        ))
        .await;
    while !short.next().await.is_null() {}
    t.check(
        "a watch ends when its time is over",
        began.elapsed().as_secs() < 20,
        began.elapsed(),
    );

    let mut endless = w
        .watch(&format!(
            "{maps}?watch=true&resourceVersion={}&timeoutSeconds=0",
            w.get(&maps).await.version()
        ))
        .await;
    w.post(&maps, &json!({"metadata": {"name": "late"}})).await;
    t.check(
        "no time at all is the usual time",
        endless.told().await == ("ADDED".to_owned(), "late".to_owned()),
        (),
    );

    let mut everywhere = w
        .watch(&format!(
            "/api/v1/secrets?watch=true&resourceVersion={}&fieldSelector=metadata.namespace%3D{ns}",
            left.version()
        ))
        .await;
    t.check(
        "a watch goes over all namespaces",
        everywhere.told().await.1 == "later",
        (),
    );

    in_forms(w, t, &secrets).await;
}

/// Tables and metadata alone.
async fn in_forms(w: &World, t: &mut Tally, secrets: &str) {
    let initial = format!(
        "{secrets}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let mut tables = w.watch_as(&initial, table).await;
    let first = tables.next().await;
    let columns: Vec<&str> = first["object"]["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|column| column["name"].as_str())
        .collect();
    t.check(
        "an event can be a table",
        first["type"] == "ADDED"
            && first["object"]["kind"] == "Table"
            && first["object"]["apiVersion"] == "meta.k8s.io/v1"
            && columns == ["Name", "Type", "Data", "Age"],
        &first,
    );
    let row = &first["object"]["rows"][0];
    t.check(
        "with the row of its object",
        row["cells"][0] == "a"
            && row["cells"][1] == "Opaque"
            && row["object"]["kind"] == "PartialObjectMetadata"
            && row["object"]["metadata"]["name"] == "a",
        row,
    );
    t.check(
        "its version is that of the object",
        first["object"]["metadata"]["resourceVersion"] == row["object"]["metadata"]["resourceVersion"],
        &first,
    );
    let second = tables.next().await;
    t.check(
        "columns are told once",
        second["object"]["rows"][0]["cells"][0] == "later"
            && second["object"].get("columnDefinitions") == Some(&Value::Null),
        &second,
    );
    let bookmark = tables.next().await;
    let row = &bookmark["object"]["rows"][0];
    t.check(
        "a bookmark is a table of nothing but a version",
        bookmark["type"] == "BOOKMARK"
            && bookmark["object"]["kind"] == "Table"
            && row["cells"][0] == ""
            && row["object"]["kind"] == "PartialObjectMetadata"
            && row["object"]["metadata"]
                == json!({"annotations": {"k8s.io/initial-events-end": "true"},
                    "resourceVersion": bookmark["object"]["metadata"]["resourceVersion"]}),
        &bookmark,
    );
    let mut whole = w
        .watch_as(&format!("{initial}&includeObject=Object"), table)
        .await;
    let first = whole.next().await;
    let object = &first["object"]["rows"][0]["object"];
    t.check(
        "a table can have whole objects in events",
        object["kind"] == "Secret" && object["type"] == "Opaque",
        &first,
    );
    let mut partials = w
        .watch_as(
            &initial,
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        )
        .await;
    let first = partials.next().await;
    t.check(
        "an event can have metadata alone",
        first["type"] == "ADDED"
            && first["object"]["kind"] == "PartialObjectMetadata"
            && first["object"]["apiVersion"] == "meta.k8s.io/v1"
            && first["object"]["metadata"]["name"] == "a"
            && first["object"].get("type").is_none(),
        &first,
    );
    partials.next().await;
    let bookmark = partials.next().await;
    t.check(
        "and so has a bookmark",
        bookmark["type"] == "BOOKMARK"
            && bookmark["object"]["kind"] == "PartialObjectMetadata"
            && bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true",
        &bookmark,
    );
}
