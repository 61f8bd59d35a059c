//! Reading a quantity: sign, digits, suffix. Exact for every input, without big numbers.
//!
//! Decimal suffixes only move the decimal point, so they are cut out of the digits. Binary suffixes multiply,
//! so the whole part and the fraction are scaled apart: the fraction digit by digit from its end, which keeps
//! every intermediate result small and still knows whether anything was cut off.

use super::{Format, MAX_BINARY_NANOS, MAX_LEN, MAX_NANOS, NANOS, Quantity, QuantityError};

/// What a suffix stands for.
enum Scale {
    /// Times ten to this power.
    Ten(i64, Format),
    /// Times two to this power.
    Two(u32),
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    if text.len() > MAX_LEN {
        return Err(QuantityError::TooLong(text.len()));
    }
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = split_digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::Number(text.to_owned()));
    }
    let scale = read_suffix(suffix).ok_or_else(|| QuantityError::Suffix {
        text: text.to_owned(),
        suffix: suffix.to_owned(),
    })?;
    let (magnitude, format) = match scale {
        Scale::Ten(exponent, format) => (decimal_nanos(whole, fraction, exponent), format),
        Scale::Two(power) => {
            let nanos = binary_nanos(whole, fraction, power);
            // As in Kubernetes: below one unit a binary suffix has nothing to say.
            let format = if (1..NANOS).contains(&nanos) {
                Format::DecimalSi
            } else {
                Format::BinarySi
            };
            (nanos, format)
        }
    };
    Ok(Quantity {
        nanos: if negative { -magnitude } else { magnitude },
        format,
    })
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn read_suffix(suffix: &str) -> Option<Scale> {
    let si = |exponent| Some(Scale::Ten(exponent, Format::DecimalSi));
    match suffix {
        "" => si(0),
        "n" => si(-9),
        "u" => si(-6),
        "m" => si(-3),
        "k" => si(3),
        "M" => si(6),
        "G" => si(9),
        "T" => si(12),
        "P" => si(15),
        "E" => si(18),
        "Ki" => Some(Scale::Two(10)),
        "Mi" => Some(Scale::Two(20)),
        "Gi" => Some(Scale::Two(30)),
        "Ti" => Some(Scale::Two(40)),
        "Pi" => Some(Scale::Two(50)),
        "Ei" => Some(Scale::Two(60)),
        _ => read_exponent(suffix.strip_prefix(['e', 'E'])?),
    }
}

/// A signed whole number; one too large for an `i64` scales as far as the range goes, like its neighbours.
fn read_exponent(text: &str) -> Option<Scale> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i64>().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
    Some(Scale::Ten(
        if negative { -magnitude } else { magnitude },
        Format::DecimalExponent,
    ))
}

/// `whole.fraction × 10^exponent` in nano-units, rounded up, at most [`MAX_NANOS`].
fn decimal_nanos(whole: &str, fraction: &str, exponent: i64) -> i128 {
    let digits = || whole.bytes().chain(fraction.bytes());
    let count = (whole.len() + fraction.len()) as i64;
    // How many of the digits stand before the decimal point once the number counts nano-units.
    let kept = whole.len() as i64 + 9 + exponent;
    let mut nanos: i128 = 0;
    for digit in digits().take(kept.clamp(0, count) as usize) {
        nanos = nanos.saturating_mul(10).saturating_add(i128::from(digit - b'0'));
        if nanos > MAX_NANOS {
            return MAX_NANOS;
        }
    }
    if nanos > 0 {
        for _ in count..kept {
            nanos = nanos.saturating_mul(10);
            if nanos > MAX_NANOS {
                return MAX_NANOS;
            }
        }
    }
    let cut = digits()
        .skip(kept.clamp(0, count) as usize)
        .any(|digit| digit != b'0');
    (nanos + i128::from(cut)).min(MAX_NANOS)
}

/// `whole.fraction × 2^power` in nano-units, rounded up, at most [`MAX_BINARY_NANOS`].
fn binary_nanos(whole: &str, fraction: &str, power: u32) -> i128 {
    let unit = NANOS << power;
    let most = MAX_BINARY_NANOS / unit;
    let mut units: i128 = 0;
    for digit in whole.bytes() {
        units = units * 10 + i128::from(digit - b'0');
        if units > most {
            return MAX_BINARY_NANOS;
        }
    }
    let mut part: i128 = 0;
    let mut cut = false;
    for digit in fraction.bytes().rev() {
        part += i128::from(digit - b'0') * unit;
        cut |= part % 10 != 0;
        part /= 10;
    }
    (units * unit + part + i128::from(cut)).min(MAX_BINARY_NANOS)
}
