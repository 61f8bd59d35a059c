//! Objects made from the tables, in both forms at once.

use serde_json::{Map, Value, json};

use super::super::{Form, MAGIC, Message};
use crate::time::Time;

/// Decisions, one byte each; nothing but zeroes once they are used up, so that shorter means simpler.
pub(super) struct Choices<'a>(std::slice::Iter<'a, u8>);

impl<'a> Choices<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Choices(bytes.iter())
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or_default()) % bound
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A message with some of the fields of a table, in any order, among fields that nobody knows, and its JSON.
pub(super) fn sample(message: Message, choices: &mut Choices<'_>) -> (Vec<u8>, Value) {
    let mut json = Map::new();
    let mut queues = Vec::new();
    fill(message, choices, &mut json, &mut queues);
    (merge(queues, choices), Value::Object(json))
}

fn fill(
    message: Message,
    choices: &mut Choices<'_>,
    json: &mut Map<String, Value>,
    queues: &mut Vec<Vec<Vec<u8>>>,
) {
    for field in message {
        if choices.below(3) == 0 {
            continue;
        }
        let (parts, value) = match field.form {
            Form::Inline(inner) => {
                let mut inside = Vec::new();
                fill(inner, choices, json, &mut inside);
                queues.push(vec![bytes_field(field.number, &merge(inside, choices))]);
                continue;
            }
            Form::List(item) => {
                let (parts, items): (Vec<_>, Vec<_>) =
                    (0..choices.below(4)).map(|_| value(*item, choices)).unzip();
                (parts, Value::Array(items))
            }
            Form::Map(item) => map(*item, choices),
            one => {
                let (part, json) = value(one, choices);
                (vec![part], json)
            }
        };
        json.insert(field.name.to_owned(), value);
        queues.push(parts.into_iter().map(|part| part.field(field.number)).collect());
    }
    if choices.below(4) == 1 {
        queues.push(vec![
            bytes_field(1000, b"not known"),
            number_field(1001, u64::MAX),
        ]);
    }
}

fn map(item: Form, choices: &mut Choices<'_>) -> (Vec<Part>, Value) {
    let mut json = Map::new();
    let mut parts = Vec::new();
    for at in 0..choices.below(4) {
        let key = format!("key/{at}");
        let (part, value) = value(item, choices);
        let entry = [bytes_field(1, key.as_bytes()), part.field(2)].concat();
        parts.push(Part::Bytes(entry));
        json.insert(key, value);
    }
    (parts, Value::Object(json))
}

enum Part {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Part {
    fn field(self, number: u32) -> Vec<u8> {
        match self {
            Part::Number(value) => number_field(number, value),
            Part::Bytes(bytes) => bytes_field(number, &bytes),
        }
    }
}

fn value(form: Form, choices: &mut Choices<'_>) -> (Part, Value) {
    match form {
        Form::Text => {
            let text = choices.one_of(&["", "a", "Running", "zone/ü", "\"\u{1F30B}\"\n"]);
            (Part::Bytes(text.into()), json!(text))
        }
        Form::Integer => {
            let number = choices.one_of(&[0, 1, -1, 300, i64::from(i32::MAX), i64::from(i32::MIN)]);
            (Part::Number(number as u64), json!(number))
        }
        Form::Truth => {
            let truth = choices.below(2) == 1;
            (Part::Number(u64::from(truth)), json!(truth))
        }
        Form::Time => match choices.one_of(&[None, Some(0), Some(1_700_000_000), Some(-62_000_000_000)]) {
            None => (Part::Bytes(Vec::new()), Value::Null),
            Some(seconds) => {
                let message = [number_field(1, seconds as u64), number_field(2, 0)].concat();
                (
                    Part::Bytes(message),
                    json!(Time::from_unix_seconds(seconds).to_string()),
                )
            }
        },
        Form::Quantity => {
            let amount = choices.one_of(&["0", "500m", "2Gi", "1e3", "-1"]);
            (Part::Bytes(bytes_field(1, amount.as_bytes())), json!(amount))
        }
        Form::Nested(message) | Form::Inline(message) => {
            let (bytes, json) = sample(message, choices);
            (Part::Bytes(bytes), json)
        }
        Form::List(_) | Form::Map(_) => unreachable!("no list or map is in another"),
    }
}

/// Fields one after the other; those of one queue stay in order.
fn merge(mut queues: Vec<Vec<Vec<u8>>>, choices: &mut Choices<'_>) -> Vec<u8> {
    let mut message = Vec::new();
    queues.retain(|queue| !queue.is_empty());
    while !queues.is_empty() {
        let at = choices.below(queues.len());
        message.extend(queues[at].remove(0));
        queues.retain(|queue| !queue.is_empty());
    }
    message
}

/// What an object is sent in.
pub(super) fn envelope(object: &[u8]) -> Vec<u8> {
    let kind = bytes_field(1, &[bytes_field(1, b"v1"), bytes_field(2, b"Any")].concat());
    let rest = [bytes_field(3, b""), bytes_field(4, b"")].concat();
    [MAGIC, &kind, &bytes_field(2, object), &rest].concat()
}

pub(super) fn bytes_field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    varint(&mut field, u64::from(number << 3 | 2));
    varint(&mut field, bytes.len() as u64);
    field.extend(bytes);
    field
}

pub(super) fn number_field(number: u32, value: u64) -> Vec<u8> {
    let mut field = Vec::new();
    varint(&mut field, u64::from(number << 3));
    varint(&mut field, value);
    field
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
