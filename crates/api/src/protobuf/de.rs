//! A deserializer that is led by a table: what the wire calls by a number, the visitors get by its JSON name.

use serde::Deserializer;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::wire::{Fault, Occurrences, Raw, Reader};
use super::{Error, Field, Form, Message};

/// What a field holds.
pub(super) struct Value<'de> {
    form: &'de Form,
    raw: Raw<'de>,
    /// Its number and what follows in the message, where the other values of a list or map are.
    number: u32,
    later: Reader<'de>,
}

impl<'de> Value<'de> {
    pub(super) fn new(form: &'de Form, raw: Raw<'de>) -> Self {
        let later = Reader::new(&[]);
        Value {
            form,
            raw,
            number: 0,
            later,
        }
    }

    fn all(&self) -> Occurrences<'de> {
        Occurrences::new(self.number, self.raw, self.later)
    }

    fn is_null(&self) -> bool {
        matches!((self.form, self.raw), (Form::Time, Raw::Bytes([])))
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match *self.form {
            Form::Text => text(bytes(self.raw)?, visitor),
            Form::Integer => visitor.visit_i64(number(self.raw)? as i64),
            Form::Truth => visitor.visit_bool(number(self.raw)? != 0),
            Form::Time if self.is_null() => visitor.visit_unit(),
            Form::Time => visitor.visit_i64(seconds(bytes(self.raw)?)?),
            Form::Quantity => match super::part(bytes(self.raw)?, 1)? {
                [] => visitor.visit_borrowed_str("0"),
                amount => text(amount, visitor),
            },
            Form::Nested(fields) | Form::Inline(fields) => {
                visitor.visit_map(Fields::new(fields, Reader::new(bytes(self.raw)?)))
            }
            Form::List(item) => visitor.visit_seq(List {
                item,
                all: self.all(),
            }),
            Form::Map(value) => visitor.visit_map(Entries {
                form: value,
                all: self.all(),
                value: Raw::Bytes(&[]),
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier
    }
}

/// The fields of a message as the entries of a JSON object.
struct Fields<'de> {
    now: Place<'de>,
    /// Where to go on after an inline message.
    outer: Vec<Place<'de>>,
    value: Option<(&'static str, Value<'de>)>,
}

/// A message that is being read.
struct Place<'de> {
    fields: Message,
    reader: Reader<'de>,
    /// Lists and maps that are done, by their place in the table: the first of their values brought the others along.
    done: u64,
}

impl<'de> Place<'de> {
    fn new(fields: Message, reader: Reader<'de>) -> Self {
        Place {
            fields,
            reader,
            done: 0,
        }
    }

    /// The next field of the table.
    #[inline]
    fn next(&mut self) -> Result<Option<(&'static Field, Value<'de>)>, Fault> {
        while let Some((number, raw)) = self.reader.field()? {
            let Some(at) = self.fields.iter().position(|field| field.number == number) else {
                continue;
            };
            let field = &self.fields[at];
            if matches!(field.form, Form::List(_) | Form::Map(_)) {
                let bit = 1 << at;
                if self.done & bit != 0 {
                    continue;
                }
                self.done |= bit;
            }
            let value = Value {
                form: &field.form,
                raw,
                number,
                later: self.reader,
            };
            return Ok(Some((field, value)));
        }
        Ok(None)
    }
}

impl<'de> Fields<'de> {
    fn new(fields: Message, reader: Reader<'de>) -> Self {
        Fields {
            now: Place::new(fields, reader),
            outer: Vec::new(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        loop {
            let Some((field, value)) = self.now.next()? else {
                match self.outer.pop() {
                    Some(outer) => self.now = outer,
                    None => return Ok(None),
                }
                continue;
            };
            if let Form::Inline(fields) = field.form {
                let bytes = bytes(value.raw).map_err(|error| error.inside(field.name))?;
                let inner = Place::new(fields, Reader::new(bytes));
                self.outer.push(std::mem::replace(&mut self.now, inner));
                continue;
            }
            self.value = Some((field.name, value));
            return seed
                .deserialize(BorrowedStrDeserializer::new(field.name))
                .map(Some);
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (name, value) = self
            .value
            .take()
            .ok_or_else(|| Error::custom("a value without a name"))?;
        seed.deserialize(value).map_err(|error| error.inside(name))
    }
}

struct List<'de> {
    item: &'static Form,
    all: Occurrences<'de>,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let next = self.all.next()?;
        next.map(|raw| seed.deserialize(Value::new(self.item, raw)))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.all.count())
    }
}

/// A map: on the wire a list of messages with the fields key (1) and value (2).
struct Entries<'de> {
    form: &'static Form,
    all: Occurrences<'de>,
    value: Raw<'de>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.all.next()? else {
            return Ok(None);
        };
        let mut key = Raw::Bytes(&[]);
        self.value = Raw::Bytes(&[]);
        let mut reader = Reader::new(bytes(entry)?);
        while let Some((number, raw)) = reader.field()? {
            match number {
                1 => key = raw,
                2 => self.value = raw,
                _ => {}
            }
        }
        seed.deserialize(Value::new(&Form::Text, key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(Value::new(self.form, self.value))
    }
}

/// Bytes that are no UTF-8 are replaced as the API server does for JSON: one of them makes no object unreadable.
fn text<'de, V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => visitor.visit_borrowed_str(text),
        Err(_) => visitor.visit_string(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// The seconds of a time. JSON has no fractions, and Kubernetes itself does not read them here.
fn seconds(message: &[u8]) -> Result<i64, Error> {
    let mut seconds = 0;
    let mut reader = Reader::new(message);
    while let Some((field, raw)) = reader.field()? {
        if field == 1 {
            seconds = number(raw)? as i64;
        }
    }
    Ok(seconds)
}

fn bytes(raw: Raw<'_>) -> Result<&[u8], Error> {
    match raw {
        Raw::Bytes(bytes) => Ok(bytes),
        Raw::Number(_) | Raw::Fixed => Err(Error::custom("a number where a text or message should be")),
    }
}

fn number(raw: Raw<'_>) -> Result<u64, Error> {
    match raw {
        Raw::Number(number) => Ok(number),
        Raw::Bytes(_) | Raw::Fixed => Err(Error::custom("something else where a number should be")),
    }
}
