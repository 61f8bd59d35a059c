//! Durations in the syntax of Go: `1h0m0s`, `1.5s`, `-20ms`.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// The text is not made of numbers with units.
    #[error("invalid duration {0:?}")]
    Invalid(String),
    /// A number has no unit.
    #[error("missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A unit is none of `ns`, `us`, `ms`, `s`, `m`, `h`.
    #[error("unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// The whole text.
        text: String,
    },
}

/// A span of time in nanoseconds, which may be negative: about 292 years each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

impl GoDuration {
    /// No time at all.
    pub const ZERO: GoDuration = GoDuration { nanos: 0 };

    /// Nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        GoDuration { nanos }
    }

    /// Milliseconds, stopping at the ends of the range.
    pub const fn from_millis(millis: i64) -> Self {
        GoDuration {
            nanos: millis.saturating_mul(MILLISECOND as i64),
        }
    }

    /// Seconds, stopping at the ends of the range.
    pub const fn from_seconds(seconds: i64) -> Self {
        GoDuration {
            nanos: seconds.saturating_mul(SECOND as i64),
        }
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// Seconds with their fraction.
    pub fn as_seconds(self) -> f64 {
        self.nanos as f64 / SECOND as f64
    }

    /// The standard library's duration, or nothing when this one is negative.
    pub fn to_std(self) -> Option<Duration> {
        u64::try_from(self.nanos).ok().map(Duration::from_nanos)
    }

    /// Reads a duration: a sign, then numbers with units, or the bare `0`.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if unsigned == "0" {
            return Ok(Self::ZERO);
        }
        if unsigned.is_empty() {
            return Err(invalid());
        }
        let mut rest = unsigned;
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (nanos, after) = read_term(text, rest)?;
            total = total.checked_add(nanos).ok_or_else(invalid)?;
            rest = after;
        }
        let nanos = if negative {
            0_i64.checked_sub_unsigned(total)
        } else {
            i64::try_from(total).ok()
        };
        Ok(GoDuration {
            nanos: nanos.ok_or_else(invalid)?,
        })
    }
}

/// Reads one number with its unit from the start of `rest`; gives nanoseconds and what follows.
fn read_term<'a>(text: &str, rest: &'a str) -> Result<(u64, &'a str), DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (whole, after) = split_while(rest, |c| c.is_ascii_digit());
    let (fraction, after) = match after.strip_prefix('.') {
        Some(after) => split_while(after, |c| c.is_ascii_digit()),
        None => ("", after),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let (unit, after) = split_while(after, |c| c != '.' && !c.is_ascii_digit());
    let unit = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        "" => return Err(DurationError::MissingUnit(text.to_owned())),
        _ => {
            return Err(DurationError::UnknownUnit {
                unit: unit.to_owned(),
                text: text.to_owned(),
            });
        }
    };
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| invalid())?
    };
    // Digits of the fraction that are worth less than a nanosecond are dropped.
    let mut part: u64 = 0;
    for digit in fraction.bytes().rev() {
        part = (part + u64::from(digit - b'0') * unit) / 10;
    }
    let nanos = whole
        .checked_mul(unit)
        .and_then(|nanos| nanos.checked_add(part))
        .ok_or_else(invalid)?;
    Ok((nanos, after))
}

fn split_while(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !accept(c)).unwrap_or(text.len()))
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        Self::parse(text)
    }
}

impl From<Duration> for GoDuration {
    fn from(duration: Duration) -> Self {
        GoDuration {
            nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
        }
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        let mut text = String::with_capacity(24);
        if self.nanos < 0 {
            text.push('-');
        }
        match nanos {
            0 => text.push_str("0s"),
            1..MICROSECOND => write!(text, "{nanos}ns")?,
            MICROSECOND..MILLISECOND => write_decimal(&mut text, nanos, MICROSECOND, "µs")?,
            MILLISECOND..SECOND => write_decimal(&mut text, nanos, MILLISECOND, "ms")?,
            _ => {
                if nanos >= HOUR {
                    write!(text, "{}h", nanos / HOUR)?;
                }
                if nanos >= MINUTE {
                    write!(text, "{}m", nanos % HOUR / MINUTE)?;
                }
                write_decimal(&mut text, nanos % MINUTE, SECOND, "s")?;
            }
        }
        f.pad(&text)
    }
}

/// Writes `nanos / unit` exactly, without trailing zeros.
fn write_decimal(text: &mut String, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(text, "{}", nanos / unit)?;
    if !nanos.is_multiple_of(unit) {
        // `unit + rest` has a leading one in front of exactly the digits of the fraction.
        let fraction = (unit + nanos % unit).to_string();
        write!(text, ".{}", fraction[1..].trim_end_matches('0'))?;
    }
    text.push_str(name);
    Ok(())
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DurationVisitor)
    }
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = GoDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"1h30m\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<GoDuration, E> {
        GoDuration::parse(text).map_err(E::custom)
    }
}
