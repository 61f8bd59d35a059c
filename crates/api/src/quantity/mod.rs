//! Amounts of a resource, as Kubernetes writes them: `100m`, `1.5Gi`, `12e6`.
//!
//! Scheduling compares and adds these numbers all day, so they are exact integers: a [`Quantity`] counts
//! nano-units in an `i128`, and remembers which family of suffixes it was written with, so that it prints in the
//! same family. It is `Copy`, and parsing and adding allocate nothing.
//!
//! The rules are those of Kubernetes:
//! - what is finer than a nano-unit rounds away from zero, so that asking for a little never becomes asking for
//!   nothing;
//! - numbers with a binary suffix (`Ki` … `Ei`) stop at 2⁶³−1; decimal ones go on (here to 10²⁹, far above any
//!   cluster), and stop there instead of failing;
//! - printing is canonical: no precision lost, no fraction, the largest suffix that allows it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Sum;
use std::ops::Neg;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

mod parse;
#[cfg(feature = "schema")]
mod schema;
#[cfg(test)]
mod tests;

/// Longest text that is read as a quantity, in bytes. The longest canonical form has 40.
pub const MAX_LEN: usize = 64;

/// Nano-units in one unit.
const NANOS: i128 = 1_000_000_000;
/// Nano-units in one thousandth of a unit.
const NANOS_PER_MILLI: i128 = 1_000_000;
/// The largest magnitude of a decimal quantity, in nano-units: 10²⁹ units.
const MAX_NANOS: i128 = 100_000_000_000_000_000_000_000_000_000_000_000_000;
/// The largest magnitude of a quantity that was written with a binary suffix, in nano-units: 2⁶³−1 units.
const MAX_BINARY_NANOS: i128 = i64::MAX as i128 * NANOS;

/// The family of suffixes that a quantity prints with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Powers of ten with a letter: `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    #[default]
    DecimalSi,
    /// Powers of 1024: `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    BinarySi,
    /// Powers of ten as a number: `12e6`.
    DecimalExponent,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// The text is empty.
    #[error("a quantity must not be empty")]
    Empty,
    /// The text is longer than [`MAX_LEN`].
    #[error("a quantity has at most {MAX_LEN} bytes, this one has {0}")]
    TooLong(usize),
    /// There is no digit where the number should be.
    #[error("quantity {0:?} does not start with a number")]
    Number(String),
    /// What follows the number is no known suffix.
    #[error("quantity {text:?} has the unknown suffix {suffix:?}")]
    Suffix {
        /// The whole text.
        text: String,
        /// What follows the number.
        suffix: String,
    },
}

/// An exact amount with the suffix family it prints in.
///
/// Two quantities are equal when their amounts are: `1Ki` equals `1024`.
#[derive(Clone, Copy, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing, in decimal format.
    pub const ZERO: Quantity = Quantity {
        nanos: 0,
        format: Format::DecimalSi,
    };

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }

    /// Whole units.
    pub const fn from_value(value: i64, format: Format) -> Self {
        Quantity {
            nanos: value as i128 * NANOS,
            format,
        }
    }

    /// Thousandths of a unit (milli-CPU, say).
    pub const fn from_milli(milli: i64, format: Format) -> Self {
        Quantity {
            nanos: milli as i128 * NANOS_PER_MILLI,
            format,
        }
    }

    /// Nano-units; the amount stops at ±10²⁹ units.
    pub fn from_nanos(nanos: i128, format: Format) -> Self {
        Quantity {
            nanos: nanos.clamp(-MAX_NANOS, MAX_NANOS),
            format,
        }
    }

    /// The exact amount in nano-units.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// The suffix family it prints in.
    pub const fn format(self) -> Format {
        self.format
    }

    /// The same amount in another suffix family.
    pub const fn with_format(self, format: Format) -> Self {
        Quantity {
            nanos: self.nanos,
            format,
        }
    }

    /// Whole units, rounded away from zero, stopping at the ends of `i64`.
    pub fn value(self) -> i64 {
        saturate(divide_away_from_zero(self.nanos, NANOS))
    }

    /// Thousandths of a unit, rounded away from zero, stopping at the ends of `i64`.
    pub fn milli_value(self) -> i64 {
        saturate(divide_away_from_zero(self.nanos, NANOS_PER_MILLI))
    }

    /// The nearest float, for shares and for printing only.
    pub fn as_f64(self) -> f64 {
        self.nanos as f64 / NANOS as f64
    }

    /// Whether the amount is zero.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether the amount is below zero.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The sum, stopping at the largest amount. A zero takes the other side's format, as in Kubernetes.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self::from_nanos(self.nanos.saturating_add(other.nanos), self.format_with(other))
    }

    /// The difference, stopping at the largest amount. A zero takes the other side's format, as in Kubernetes.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self::from_nanos(self.nanos.saturating_sub(other.nanos), self.format_with(other))
    }

    /// The sum, or nothing when it is out of range.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let nanos = self.nanos.checked_add(other.nanos)?;
        (nanos.abs() <= MAX_NANOS).then(|| Quantity {
            nanos,
            format: self.format_with(other),
        })
    }

    /// The difference, or nothing when it is out of range.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(-other)
    }

    /// The product with a count, stopping at the largest amount.
    #[must_use]
    pub fn saturating_mul(self, count: i64) -> Self {
        Self::from_nanos(self.nanos.saturating_mul(i128::from(count)), self.format)
    }

    fn format_with(self, other: Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }
}

/// Divides and rounds a remainder away from zero, as every conversion of a quantity to an integer does.
fn divide_away_from_zero(nanos: i128, by: i128) -> i128 {
    nanos / by + if nanos % by == 0 { 0 } else { nanos.signum() }
}

fn saturate(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

impl Neg for Quantity {
    type Output = Quantity;

    fn neg(self) -> Quantity {
        Quantity {
            nanos: -self.nanos,
            format: self.format,
        }
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(amounts: I) -> Quantity {
        amounts.fold(Quantity::ZERO, Quantity::saturating_add)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantity({self})")
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.pad("0");
        }
        // A binary suffix needs a whole number of at least 1024 that parsing would not cap again.
        let magnitude = self.nanos.abs();
        let binary = self.format == Format::BinarySi
            && magnitude % NANOS == 0
            && (1024 * NANOS..=MAX_BINARY_NANOS).contains(&magnitude);
        let text = if binary {
            self.binary_text()
        } else {
            self.decimal_text()
        };
        f.pad(&text)
    }
}

impl Quantity {
    fn binary_text(self) -> String {
        let mut mantissa = self.nanos / NANOS;
        let mut power = 0;
        while mantissa % 1024 == 0 {
            mantissa /= 1024;
            power += 1;
        }
        let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power];
        format!("{mantissa}{suffix}")
    }

    fn decimal_text(self) -> String {
        let mut mantissa = self.nanos;
        let mut exponent: i32 = -9;
        while mantissa % 1000 == 0 {
            mantissa /= 1000;
            exponent += 3;
        }
        let letter = match exponent {
            _ if self.format == Format::DecimalExponent && exponent != 0 => None,
            -9 => Some("n"),
            -6 => Some("u"),
            -3 => Some("m"),
            0 => Some(""),
            3 => Some("k"),
            6 => Some("M"),
            9 => Some("G"),
            12 => Some("T"),
            15 => Some("P"),
            18 => Some("E"),
            _ => None,
        };
        match letter {
            Some(letter) => format!("{mantissa}{letter}"),
            None => format!("{mantissa}e{exponent}"),
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity: a number, or a string such as \"500m\" or \"2Gi\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text.trim()).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_value(value, Format::DecimalSi))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quantity, E> {
        Ok(Quantity {
            nanos: i128::from(value) * NANOS,
            format: Format::DecimalSi,
        })
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Quantity, E> {
        // The shortest decimal that names this float is the number that was written.
        Quantity::parse(&format!("{value:e}"))
            .map(|q| q.with_format(Format::DecimalSi))
            .map_err(E::custom)
    }
}
