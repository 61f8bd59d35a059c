//! Walks a type and a table side by side: the names that the one asks for are those that the other has.

use std::collections::BTreeSet;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

use super::super::{Error, Form, Message};

/// Whether every structure below `T` has exactly the fields of its table.
pub(super) fn check<T: DeserializeOwned>(message: Message) -> Result<(), Error> {
    T::deserialize(Probe(Form::Nested(message))).map(|_| ())
}

/// A value of every field, one item in every list and map.
#[derive(Clone, Copy)]
struct Probe(Form);

impl IntoDeserializer<'_, Error> for Probe {
    type Deserializer = Probe;

    fn into_deserializer(self) -> Probe {
        self
    }
}

fn flat(message: Message) -> Vec<(&'static str, Form)> {
    let fields = message.iter().map(|field| match field.form {
        Form::Inline(inner) => flat(inner),
        form => vec![(field.name, form)],
    });
    fields.flatten().collect()
}

impl<'de> Deserializer<'de> for Probe {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Form::Text => visitor.visit_borrowed_str(""),
            Form::Quantity => visitor.visit_borrowed_str("1"),
            Form::Integer | Form::Time => visitor.visit_i64(1),
            Form::Truth => visitor.visit_bool(true),
            Form::List(item) => visitor.visit_seq(SeqDeserializer::new([Probe(*item)].into_iter())),
            Form::Map(item) => visitor.visit_map(MapDeserializer::new([("key", Probe(*item))].into_iter())),
            Form::Nested(_) | Form::Inline(_) => Err(Error::custom("a message is read as something else")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Form::Nested(message) = self.0 else {
            return Err(Error::custom(format_args!("{name} is no message")));
        };
        let known = flat(message);
        let asked: BTreeSet<_> = fields.iter().copied().collect();
        let has: BTreeSet<_> = known.iter().map(|(name, _)| *name).collect();
        if asked != has {
            let lacks: Vec<_> = asked.difference(&has).collect();
            let vain: Vec<_> = has.difference(&asked).collect();
            return Err(Error::custom(format_args!(
                "the table of {name} lacks {lacks:?} and has {vain:?} in vain"
            )));
        }
        let entries = known.into_iter().map(|(name, form)| (name, Probe(form)));
        visitor.visit_map(MapDeserializer::new(entries))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
