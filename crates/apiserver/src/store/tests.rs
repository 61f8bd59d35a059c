use super::*;
use proptest::prelude::*;
use serde_json::json;

fn object(key: &str, text: &str, revision: u64) -> Object {
    let value = json!({"metadata": {"name": key, "uid": key, "labels": {"text": text}}});
    Object::new(key, value, revision, &[])
}

fn put(store: &mut Store, table: TableId, key: &str, text: &str) {
    let expect = store
        .get(table, key)
        .map_or(Expect::Absent, |object| Expect::At(object.revision));
    store
        .put(table, key, expect, |revision| object(key, text, revision))
        .unwrap();
}

fn remove(store: &mut Store, table: TableId, key: &str) {
    if let Some(revision) = store.get(table, key).map(|object| object.revision) {
        store
            .remove(table, key, Expect::At(revision), |revision| {
                object(key, "", revision)
            })
            .unwrap();
    }
}

fn state(store: &Store, table: TableId, at: u64) -> Vec<(String, String)> {
    let page = store
        .list(
            table,
            Range {
                at,
                ..Range::default()
            },
            |_| true,
        )
        .unwrap();
    let shown = |object: &Arc<Object>| (object.key.to_string(), object.labels[0].1.to_string());
    page.items.iter().map(shown).collect()
}

#[test]
fn a_write_has_to_name_the_version_that_is_there() {
    let mut store = Store::new();
    let table = store.add_table();
    put(&mut store, table, "a", "1");
    let revision = store.get(table, "a").unwrap().revision;
    let mut write = |expect| {
        store
            .put(table, "a", expect, |revision| object("a", "2", revision))
            .map(|_| ())
    };
    assert_eq!(write(Expect::Absent), Err(Clash::Exists));
    assert_eq!(write(Expect::At(revision + 1)), Err(Clash::Modified));
    assert_eq!(write(Expect::At(revision)), Ok(()));
    let missing = store.put(table, "b", Expect::At(1), |revision| object("b", "", revision));
    assert_eq!(missing.map(|_| ()), Err(Clash::Missing));
}

#[test]
fn pages_are_of_one_state_whatever_happens_between_them() {
    let mut store = Store::new();
    let table = store.add_table();
    for name in ["a/1", "a/2", "a/3", "a-b/1", "b/1"] {
        put(&mut store, table, name, "old");
    }
    let range = Range {
        namespace: "a",
        limit: 2,
        ..Range::default()
    };
    let first = store.list(table, range, |_| true).unwrap();
    assert_eq!(
        (first.items.len(), first.remaining, first.next.as_deref()),
        (2, 1, Some("a/2"))
    );
    put(&mut store, table, "a/3", "new");
    put(&mut store, table, "a/4", "new");
    remove(&mut store, table, "a/1");
    let range = Range {
        after: first.next.as_deref(),
        at: first.revision,
        ..range
    };
    let second = store.list(table, range, |_| true).unwrap();
    let keys: Vec<_> = second
        .items
        .iter()
        .map(|object| (&*object.key, &*object.labels[0].1))
        .collect();
    assert_eq!(keys, [("a/3", "old")]);
    assert_eq!(second.next, None);
}

#[test]
fn the_history_is_bounded_and_says_what_it_forgot() {
    let mut store = Store::new();
    let table = store.add_table();
    for at in 0..=HISTORY_EVENTS {
        put(&mut store, table, "a", &at.to_string());
    }
    let first = store.since(table, 2, 1).unwrap();
    assert_eq!(first[0].revision(), 3);
    assert_eq!(store.since(table, 1, 1).unwrap_err(), OutOfReach::TooOld(2));
    let now = store.revision();
    assert_eq!(
        store.since(table, now + 1, 1).unwrap_err(),
        OutOfReach::TooNew(now)
    );
}

#[test]
fn owners_are_found_as_long_as_somebody_names_them() {
    let mut store = Store::new();
    let table = store.add_table();
    let owned = |revision, owners: Value| {
        let value = json!({"metadata": {"name": "b", "uid": "u", "ownerReferences": owners}});
        Object::new("b", value, revision, &[])
    };
    store
        .put(table, "b", Expect::Absent, |revision| {
            owned(revision, json!([{"uid": "o"}]))
        })
        .unwrap();
    assert_eq!(store.owned_by("o"), [(table, "b".into())]);
    assert_eq!(store.place_of("u"), Some(&(table, "b".into())));
    let revision = store.revision();
    store
        .put(table, "b", Expect::At(revision), |revision| {
            owned(revision, json!([]))
        })
        .unwrap();
    assert!(store.owned_by("o").is_empty() && store.owned.is_empty());
}

use serde_json::Value;

proptest! {
    /// Every state that there was can be listed again, and following the events from any state leads to the last one.
    #[test]
    fn old_states_and_watches_agree_with_what_was_done(
        steps in proptest::collection::vec((0..6_usize, 0..4_usize), 1..60)
    ) {
        let mut store = Store::new();
        let table = store.add_table();
        let mut states = vec![(store.revision(), Vec::new())];
        for (at, (key, action)) in steps.iter().enumerate() {
            let key = ["a/1", "a/2", "b/1", "b/2", "c", "d"][*key];
            match action {
                0 => remove(&mut store, table, key),
                _ => put(&mut store, table, key, &at.to_string()),
            }
            states.push((store.revision(), state(&store, table, 0)));
        }
        for (revision, expected) in &states {
            prop_assert_eq!(&state(&store, table, *revision), expected);
            let mut followed: BTreeMap<String, String> = expected.iter().cloned().collect();
            let mut last = *revision;
            for event in store.since(table, *revision, usize::MAX).unwrap() {
                prop_assert!(event.revision() > last);
                last = event.revision();
                let key = event.object.key.to_string();
                match event.happened {
                    Happened::Put => followed.insert(key, event.object.labels[0].1.to_string()),
                    Happened::Removed => followed.remove(&key),
                };
            }
            let followed: Vec<_> = followed.into_iter().collect();
            prop_assert_eq!(&followed, &state(&store, table, 0));
        }
        let pages = {
            let mut all = Vec::new();
            let mut after: Option<Box<str>> = None;
            loop {
                let range = Range { after: after.as_deref(), limit: 2, ..Range::default() };
                let page = store.list(table, range, |_| true).unwrap();
                all.extend(page.items.iter().map(|object| object.key.to_string()));
                after = page.next;
                if after.is_none() { break all; }
            }
        };
        let whole: Vec<_> = state(&store, table, 0).into_iter().map(|(key, _)| key).collect();
        prop_assert_eq!(pages, whole);
    }
}
