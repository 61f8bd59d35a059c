//! Bytes by hand, objects made from the tables in both forms, and bytes that nobody should send.

mod probe;
mod sample;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::core;
use crate::time::Time;
use sample::{Choices, bytes_field, envelope, number_field, sample};

/// Calls a macro with every kind: its slim type and its tables.
macro_rules! every_kind {
    ($call:ident) => {
        $call! {
            core::Pod = POD,
            core::Node = NODE,
            core::Namespace = NAMESPACE,
            core::PersistentVolumeClaim = PERSISTENT_VOLUME_CLAIM,
            core::PersistentVolume = PERSISTENT_VOLUME,
            core::ResourceQuota = RESOURCE_QUOTA,
            core::StorageClass = STORAGE_CLASS,
            core::CsiNode = CSI_NODE,
            core::CsiDriver = CSI_DRIVER,
            core::CsiStorageCapacity = CSI_STORAGE_CAPACITY,
            core::PodDisruptionBudget = POD_DISRUPTION_BUDGET,
            core::PriorityClass = PRIORITY_CLASS,
            core::Workload = WORKLOAD,
        }
    };
}

/// A pod from the bytes of its message.
fn pod(message: &[u8]) -> Result<core::Pod, Error> {
    from_slice(POD.object, &envelope(message))
}

/// A pod with this spec.
fn spec(message: &[u8]) -> Result<core::PodSpec, Error> {
    pod(&bytes_field(2, message)).map(|pod| pod.spec)
}

/// A pod with this metadata.
fn meta(message: &[u8]) -> Result<core::Meta, Error> {
    pod(&bytes_field(1, message)).map(|pod| pod.metadata)
}

#[test]
fn the_tables_have_exactly_the_fields_of_the_slim_types() {
    macro_rules! check {
        ($($type:ty = $tables:ident,)*) => {$(
            probe::check::<$type>($tables.object).unwrap_or_else(|error| panic!("{}: {error}", stringify!($type)));
        )*};
    }
    every_kind!(check);
}

#[test]
fn a_table_names_each_field_once_and_has_few_enough_for_its_bits() {
    fn walk(message: Message, depth: usize) {
        assert!(depth < 12 && message.len() <= 64);
        for (at, field) in message.iter().enumerate() {
            let later = &message[at + 1..];
            assert!(
                later
                    .iter()
                    .all(|other| other.number != field.number && other.name != field.name),
                "{field:?}"
            );
            inner(field.form, depth + 1);
        }
    }
    fn inner(form: Form, depth: usize) {
        match form {
            Form::Nested(message) | Form::Inline(message) => walk(message, depth),
            Form::List(form) | Form::Map(form) => inner(*form, depth),
            Form::Text | Form::Integer | Form::Truth | Form::Time | Form::Quantity => {}
        }
    }
    macro_rules! check {
        ($($type:ty = $tables:ident,)*) => {$( walk($tables.list, 0); )*};
    }
    every_kind!(check);
    walk(STATUS, 0);
}

#[test]
fn zero_is_a_value_where_go_has_a_pointer_and_nothing_elsewhere() {
    let absent = spec(&[]).unwrap();
    assert_eq!(absent.priority, None);
    let written = [
        number_field(25, 0),
        bytes_field(10, b""),
        number_field(11, 0),
        bytes_field(31, b""),
        bytes_field(40, b""),
        bytes_field(18, b""),
    ];
    let expected = core::PodSpec {
        priority: Some(0),
        preemption_policy: Some(String::new()),
        resources: Some(core::ResourceRequirements::default()),
        affinity: Some(core::Affinity::default()),
        ..core::PodSpec::default()
    };
    assert_eq!(spec(&written.concat()).unwrap(), expected);
}

#[test]
fn numbers_are_signed() {
    assert_eq!(spec(&number_field(25, -5_i64 as u64)).unwrap().priority, Some(-5));
    let largest = number_field(25, i32::MAX as u64);
    assert_eq!(spec(&largest).unwrap().priority, Some(i32::MAX));
    let error = spec(&number_field(25, 1 << 40)).unwrap_err().to_string();
    assert!(error.starts_with("spec.priority: "), "{error}");
}

#[test]
fn times_are_seconds_and_an_empty_one_is_none() {
    let cases: [(&str, Vec<u8>, Option<i64>); 5] = [
        ("empty: not set", vec![], None),
        ("the start of 1970", number_field(1, 0), Some(0)),
        ("before it", number_field(1, -1_i64 as u64), Some(-1)),
        (
            "fractions do not count",
            [number_field(1, 7), number_field(2, 999_999_999)].concat(),
            Some(7),
        ),
        ("only a fraction", number_field(2, 5), Some(0)),
    ];
    for (name, message, expected) in cases {
        let read = meta(&bytes_field(8, &message)).unwrap();
        assert_eq!(
            read.creation_timestamp,
            expected.map(Time::from_unix_seconds),
            "{name}"
        );
    }
}

#[test]
fn values_of_a_list_or_map_may_lie_apart_and_keep_their_order() {
    let gate = |name: &str| bytes_field(38, &bytes_field(1, name.as_bytes()));
    let label = |key: &[u8], value: &[u8]| {
        let entry = [bytes_field(1, key), bytes_field(2, value)].concat();
        bytes_field(7, &entry)
    };
    let message = [
        gate("a"),
        label(b"x", b"1"),
        gate("b"),
        bytes_field(10, b"node"),
        label(b"y", b"2"),
        label(b"x", b"3"),
        gate("c"),
    ];
    let read = spec(&message.concat()).unwrap();
    let gates: Vec<_> = read
        .scheduling_gates
        .iter()
        .map(|gate| gate.name.as_str())
        .collect();
    assert_eq!(gates, ["a", "b", "c"]);
    assert_eq!(read.scheduling_gates.capacity(), 3);
    let selector: Vec<_> = read
        .node_selector
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(selector, [("x", "3"), ("y", "2")]);
    assert_eq!(read.node_name, "node");
}

#[test]
fn an_entry_of_a_map_may_lack_its_key_or_value() {
    let entry = |message: &[u8]| bytes_field(32, message);
    let amount = bytes_field(2, &bytes_field(1, b"2Gi"));
    let message = [entry(&amount), entry(&bytes_field(1, b"cpu"))];
    let overhead = serde_json::to_value(spec(&message.concat()).unwrap().overhead).unwrap();
    assert_eq!(overhead, json!({"": "2Gi", "cpu": "0"}));
}

#[test]
fn inline_messages_are_part_of_the_outer_one() {
    let claim = bytes_field(10, &bytes_field(1, b"data"));
    let source = [bytes_field(2, b"other source"), claim].concat();
    let volume = |parts: &[Vec<u8>]| bytes_field(1, &parts.concat());
    let volumes = [
        volume(&[bytes_field(2, &source), bytes_field(1, b"after")]),
        volume(&[bytes_field(1, b"none"), bytes_field(2, b"")]),
    ];
    let read = serde_json::to_value(spec(&volumes.concat()).unwrap().volumes).unwrap();
    assert_eq!(
        read,
        json!([{"name": "after", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "none"}])
    );
}

#[test]
fn fields_that_are_not_wanted_are_passed_over_unseen() {
    let fixed = [&[0x51][..], &[0xff; 8], &[0x55], &[0xff; 4]].concat();
    let message = [
        bytes_field(17, b"\xff\xff managed fields"),
        fixed,
        bytes_field(1, b"p"),
    ]
    .concat();
    assert_eq!(meta(&message).unwrap().name, "p");
}

#[test]
fn a_text_that_is_no_utf8_is_mended() {
    assert_eq!(meta(&bytes_field(1, b"a\xffb")).unwrap().name, "a\u{fffd}b");
}

#[test]
fn what_cannot_be_read_is_told_with_its_field() {
    let huge = [&[0xff; 10][..], &[0x01]].concat();
    let cases: [(&str, Vec<u8>, &str); 9] = [
        (
            "a length beyond the end",
            vec![0x0a, 5, b'p'],
            "metadata: the bytes end in the middle of a field",
        ),
        (
            "a number without its end",
            vec![0x38, 0x80],
            "metadata: the bytes end in the middle of a field",
        ),
        (
            "a number of too many bytes",
            [&[0x38][..], &huge].concat(),
            "metadata: a number of more than 64 bits",
        ),
        (
            "field zero",
            vec![0x00, 0x00],
            "metadata: a field without a valid number",
        ),
        (
            "a field number beyond 29 bits",
            [&[0xff; 5][..], &[0x01, 0x00]].concat(),
            "metadata: a field without a valid number",
        ),
        (
            "a group",
            vec![0x0b],
            "metadata: wire type 3, which Kubernetes does not use",
        ),
        (
            "a number for a text",
            number_field(1, 1),
            "metadata.name: a number where a text or message should be",
        ),
        (
            "a text for a time",
            bytes_field(8, b"\x0a\x00"),
            "metadata.creationTimestamp: something else where a number should be",
        ),
        (
            "the same text twice",
            [bytes_field(1, b"a"), bytes_field(1, b"b")].concat(),
            "metadata: duplicate field `name`",
        ),
    ];
    for (name, message, expected) in cases {
        assert_eq!(meta(&message).unwrap_err().to_string(), expected, "{name}");
    }
    let container = bytes_field(8, &bytes_field(2, &bytes_field(2, &bytes_field(1, b"much"))));
    let error = spec(&bytes_field(2, &container)).unwrap_err().to_string();
    assert!(
        error.starts_with("spec.containers.resources.requests: "),
        "{error}"
    );
}

#[test]
fn what_is_not_in_the_envelope_is_refused_and_an_empty_envelope_is_an_empty_object() {
    for bytes in [b"".as_slice(), b"k8s", b"{\"kind\":\"Pod\"}", b"k8s\x01"] {
        assert!(from_slice::<core::Pod>(POD.object, bytes).is_err(), "{bytes:?}");
    }
    let empty = from_slice::<core::Pod>(POD.object, b"k8s\0").unwrap();
    assert_eq!(empty, core::Pod::default());
}

/// Lists as the callers read them.
#[derive(serde::Deserialize, PartialEq, Debug)]
struct List<T> {
    metadata: Value,
    items: Vec<T>,
}

fn agree<T>(tables: Tables, choices: &mut Choices<'_>) -> Result<(), TestCaseError>
where
    T: serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let (bytes, json) = sample(tables.object, choices);
    let from_protobuf: T = from_slice(tables.object, &envelope(&bytes)).unwrap();
    let from_json: T = serde_json::from_value(json).unwrap();
    prop_assert_eq!(&from_protobuf, &from_json);
    let list = [
        bytes_field(1, &bytes_field(2, b"7")),
        bytes_field(2, &bytes),
        bytes_field(2, &bytes),
    ];
    let list: List<T> = from_slice(tables.list, &envelope(&list.concat())).unwrap();
    prop_assert_eq!(list.metadata, json!({"resourceVersion": "7"}));
    prop_assert_eq!(list.items, vec![from_json, from_protobuf]);
    Ok(())
}

fn survives<T: serde::de::DeserializeOwned>(tables: Tables, bytes: &[u8]) {
    let object: Result<T, Error> = from_slice(tables.object, bytes);
    let list: Result<List<T>, Error> = from_slice(tables.list, bytes);
    for error in [object.err(), list.err()].into_iter().flatten() {
        assert!(!error.to_string().is_empty());
    }
}

proptest! {
    #[test]
    fn both_forms_of_an_object_read_the_same(choices in prop::collection::vec(any::<u8>(), 0..600)) {
        macro_rules! check {
            ($($type:ty = $tables:ident,)*) => {$( agree::<$type>($tables, &mut Choices::new(&choices))?; )*};
        }
        every_kind!(check);
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let wrapped = envelope(&bytes);
        macro_rules! check {
            ($($type:ty = $tables:ident,)*) => {$( survives::<$type>($tables, &wrapped); )*};
        }
        every_kind!(check);
        if let Ok((kind, object)) = watch_event(&bytes) {
            prop_assert!(kind.len() + object.len() <= bytes.len());
        }
    }

    #[test]
    fn no_damage_to_an_object_does_harm(
        choices in prop::collection::vec(any::<u8>(), 0..600),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
    ) {
        macro_rules! check {
            ($($type:ty = $tables:ident,)*) => {$(
                let (bytes, _) = sample($tables.object, &mut Choices::new(&choices));
                let mut bytes = envelope(&bytes);
                for (at, value) in &changes {
                    let at = at.index(bytes.len());
                    bytes[at] = *value;
                }
                survives::<$type>($tables, &bytes);
                bytes.truncate(end.index(bytes.len()));
                survives::<$type>($tables, &bytes);
            )*};
        }
        every_kind!(check);
    }
}
