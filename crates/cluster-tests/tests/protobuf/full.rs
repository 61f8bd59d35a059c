//! Which fields a type has: one of it with every field set, and the paths of what is set in a value.

use std::collections::BTreeSet;

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::Value;

/// A value with every field set, one item in each list and map.
pub fn full<T: DeserializeOwned>() -> T {
    T::deserialize(Full).expect("the types take what is made for them")
}

/// Paths of what is set; items of lists are one path, and so are the entries of maps of texts and amounts.
pub fn paths(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(value, "", &mut found);
    found
}

fn collect(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) if !is_map(path) => {
            for (name, value) in fields {
                collect(value, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for item in items {
                collect(item, path, found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// Keys of these are the users'.
fn is_map(path: &str) -> bool {
    const MAPS: [&str; 14] = [
        "labels",
        "annotations",
        "matchLabels",
        "nodeSelector",
        "parameters",
        "overhead",
        "requests",
        "limits",
        "allocatedResources",
        "capacity",
        "allocatable",
        "hard",
        "used",
        "disruptedPods",
    ];
    let is_driver = path.contains(".drivers.");
    !is_driver && MAPS.iter().any(|name| path.ends_with(&format!(".{name}")))
}

#[derive(Clone, Copy)]
struct Full;

impl IntoDeserializer<'_, Error> for Full {
    type Deserializer = Full;

    fn into_deserializer(self) -> Full {
        self
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.visit_i64(1)
        }
    )*};
}

impl<'de> Deserializer<'de> for Full {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str("1")
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str("2026-01-02T03:04:05Z")
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(true)
    }

    numbers! { deserialize_i32 deserialize_i64 }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new([Full].into_iter()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(MapDeserializer::new([("key", Full)].into_iter()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(MapDeserializer::new(fields.iter().map(|name| (*name, Full))))
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char string bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct enum identifier ignored_any
    }
}
