//! Durations in Go's syntax, the one in which the file and the annotations of users are written.

const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // micro sign
    ("μs", 1_000), // Greek mu
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration such as `1h30m`, `1.5s`, `-2ms` or `0` as nanoseconds; `None` if the text is not one or does
/// not fit.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut nanos = 0_u128;
    while {
        let (part, tail) = parse_part(rest)?;
        nanos = nanos.checked_add(part)?;
        rest = tail;
        !rest.is_empty()
    } {}
    let nanos = i128::try_from(nanos).ok()?;
    i64::try_from(if negative { -nanos } else { nanos }).ok()
}

/// Reads one number with its unit, and returns it in nanoseconds with the text behind it.
fn parse_part(text: &str) -> Option<(u128, &str)> {
    let (whole, rest) = take_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => take_digits(after),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;

    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?
    };
    // 18 digits are finer than a nanosecond of an hour.
    let fraction = &fraction[..fraction.len().min(18)];
    let parts = if fraction.is_empty() {
        0
    } else {
        fraction.parse::<u128>().ok()? * scale / 10_u128.pow(u32::try_from(fraction.len()).ok()?)
    };
    Some((u128::from(whole) * scale + parts, rest))
}

fn take_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::parse_duration;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("1ns", Some(1)),
            ("30m", Some(1_800_000_000_000)),
            ("1h2m3s4ms5µs6ns", Some(3_723_004_005_006)),
            ("1.5s", Some(1_500_000_000)),
            (".5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("-2ms", Some(-2_000_000)),
            ("+2ms", Some(2_000_000)),
            ("2540400h10m10.000000000s", Some(9_145_440_610_000_000_000)),
            ("", None),
            ("-", None),
            ("5", None),
            (".s", None),
            ("1d", None),
            ("1h 30m", None),
            ("1h30", None),
            ("m", None),
            ("9999999h", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(parse_duration(text), nanos, "{text:?}");
        }
    }
}
