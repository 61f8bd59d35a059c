//! Points in time and durations as the Kubernetes API writes them.
//!
//! Nothing here reads a clock: `now` always comes in from outside, so that a cycle can be replayed.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

mod duration;
#[cfg(test)]
mod tests;

pub use duration::{DurationError, GoDuration};

const MICROS: i64 = 1_000_000;

/// Why a text is not a point in time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no RFC 3339 time such as \"2026-01-02T03:04:05Z\"")]
pub struct TimeError {
    text: String,
}

/// A point in time, to the microsecond, in UTC.
///
/// It is written as the API's `Time`: RFC 3339 with whole seconds. Fractions are read and kept for comparing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    unix_micros: i64,
}

impl Time {
    /// The start of 1970.
    pub const EPOCH: Time = Time { unix_micros: 0 };

    /// Reads RFC 3339, with or without a fraction of a second.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let stamp: Timestamp = text.parse().map_err(|_| TimeError {
            text: text.to_owned(),
        })?;
        Ok(Time {
            unix_micros: stamp.as_microsecond(),
        })
    }

    /// Seconds since the start of 1970.
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Time {
            unix_micros: seconds.saturating_mul(MICROS),
        }
    }

    /// Milliseconds since the start of 1970.
    pub const fn from_unix_millis(millis: i64) -> Self {
        Time {
            unix_micros: millis.saturating_mul(1_000),
        }
    }

    /// Microseconds since the start of 1970.
    pub const fn from_unix_micros(micros: i64) -> Self {
        Time { unix_micros: micros }
    }

    /// Whole seconds since the start of 1970, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.unix_micros.div_euclid(MICROS)
    }

    /// Microseconds since the start of 1970.
    pub const fn unix_micros(self) -> i64 {
        self.unix_micros
    }

    /// Seconds from `earlier` to this time; negative when `earlier` is later.
    pub fn seconds_since(self, earlier: Time) -> f64 {
        self.micros_since(earlier) as f64 / MICROS as f64
    }

    /// Microseconds from `earlier` to this time; negative when `earlier` is later.
    pub const fn micros_since(self, earlier: Time) -> i64 {
        self.unix_micros.saturating_sub(earlier.unix_micros)
    }

    /// The duration from `earlier` to this time; negative when `earlier` is later.
    pub const fn since(self, earlier: Time) -> GoDuration {
        GoDuration::from_nanos(self.micros_since(earlier).saturating_mul(1_000))
    }

    /// This time moved by a duration, stopping at the ends of the range.
    #[must_use]
    pub const fn saturating_add(self, by: GoDuration) -> Self {
        Time {
            unix_micros: self.unix_micros.saturating_add(by.as_nanos().div_euclid(1_000)),
        }
    }

    /// The nearest time that has a calendar date (years −9999 to 9999).
    fn stamp(unix_micros: i64) -> Timestamp {
        let outermost = if unix_micros < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        };
        Timestamp::from_microsecond(unix_micros).unwrap_or(outermost)
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        Self::parse(text)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0}",
            Time::stamp(self.unix_seconds().saturating_mul(MICROS))
        )
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 time")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
        Time::parse(text).map_err(E::custom)
    }

    /// The protobuf form has whole seconds since the start of 1970.
    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Time, E> {
        Ok(Time::from_unix_seconds(seconds))
    }
}

/// A point in time that is written with six digits of fraction, as leases and events have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(transparent)]
pub struct MicroTime(pub Time);

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", Time::stamp(self.0.unix_micros))
    }
}

impl Serialize for MicroTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "schema")]
mod schema {
    //! Schemas in a CRD: times are `date-time` strings, durations are plain strings.

    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::{GoDuration, MicroTime, Time};

    macro_rules! string_schema {
        ($type:ty, $name:literal, $schema:tt) => {
            impl JsonSchema for $type {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    $name.into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!($schema)
                }
            }
        };
    }

    string_schema!(Time, "Time", {"type": "string", "format": "date-time"});
    string_schema!(MicroTime, "MicroTime", {"type": "string", "format": "date-time"});
    string_schema!(GoDuration, "Duration", {"type": "string"});
}
