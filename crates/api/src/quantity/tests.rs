//! Quantities against tables of what Kubernetes does, and against slow arithmetic on decimal digits.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn canonical_text_is_that_of_kubernetes() {
    let cases = [
        // Zero has no suffix.
        ("0", "0"),
        ("0Ki", "0"),
        ("-0", "0"),
        ("0e9", "0"),
        ("000.000", "0"),
        // Already canonical.
        ("1", "1"),
        ("100m", "100m"),
        ("5n", "5n"),
        ("4u", "4u"),
        ("8k", "8k"),
        ("7M", "7M"),
        ("6G", "6G"),
        ("5T", "5T"),
        ("2P", "2P"),
        ("12E", "12E"),
        ("1Ki", "1Ki"),
        ("7Mi", "7Mi"),
        ("6Gi", "6Gi"),
        ("5Ti", "5Ti"),
        ("4Pi", "4Pi"),
        ("3Ei", "3Ei"),
        ("12e6", "12e6"),
        // The largest suffix without a fraction.
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("1500000m", "1500"),
        ("0.5", "500m"),
        ("0.025", "25m"),
        ("1.2345", "1234500u"),
        ("100.035k", "100035"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("8192Mi", "8Gi"),
        ("1.G", "1G"),
        (".001", "1m"),
        ("+1", "1"),
        ("1e3", "1e3"),
        ("1E14", "100e12"),
        ("1e5", "100e3"),
        ("1.3E+6", "1300e3"),
        ("1E-3", "1e-3"),
        ("5e0", "5"),
        // Above the last letter only an exponent can say it.
        ("1000E", "1e21"),
        ("18446744073709551616", "18446744073709551616"),
        // Binary suffixes are for whole numbers from 1024.
        ("0.5Ki", "512"),
        ("0.5Mi", "512Ki"),
        ("100.035Ki", "102435840m"),
        ("1.000001Ki", "1024001024u"),
        ("-1Ki", "-1Ki"),
        ("-1.5Gi", "-1536Mi"),
        // Finer than nano rounds away from zero.
        ("3.001n", "4n"),
        ("-3.001n", "-4n"),
        ("1.1E-9", "2e-9"),
        ("0.0000000001", "1n"),
        ("0.00000012345", "124n"),
        ("0.000000000001Ki", "2n"),
        ("-0.000000000001Ki", "-2n"),
        ("1e-40", "1e-9"),
        ("1e-999999999999999999999999", "1e-9"),
        // Binary numbers stop at 2^63-1, decimal ones at 10^29.
        ("8Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
        ("9223372036854775807Ki", "9223372036854775807"),
        ("1e29", "100e27"),
        ("1e30", "100e27"),
        (".1E+31", "100e27"),
        ("-1e999999999999999999999999", "-100e27"),
    ];
    for (text, canonical) in cases {
        assert_eq!(q(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn the_suffix_family_is_remembered() {
    let cases = [
        ("1", Format::DecimalSi),
        ("1E", Format::DecimalSi),
        ("1E0", Format::DecimalExponent),
        ("1e3", Format::DecimalExponent),
        ("0Ki", Format::BinarySi),
        ("0.5Mi", Format::BinarySi),
        ("0.0001Ki", Format::DecimalSi),
    ];
    for (text, format) in cases {
        assert_eq!(q(text).format(), format, "{text}");
    }
}

#[test]
fn text_that_is_no_quantity_is_refused_with_the_reason() {
    assert_eq!(Quantity::parse(""), Err(QuantityError::Empty));
    assert_eq!(Quantity::parse(&"1".repeat(65)), Err(QuantityError::TooLong(65)));
    for text in ["+", "-", ".", "Ki", "m", "e3", "--1", "+-1", "NaN", " 1", "-.Gi"] {
        assert!(
            matches!(Quantity::parse(text), Err(QuantityError::Number(_))),
            "{text}"
        );
    }
    for text in [
        "1K", "1ki", "1e", "1e+", "1e1.5", "1mi", "1 ", "1.2.3", "1Kii", "1Ee3", "1µ", "1,5", "1i",
    ] {
        assert!(
            matches!(Quantity::parse(text), Err(QuantityError::Suffix { .. })),
            "{text}"
        );
    }
    let error = Quantity::parse("10GB").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"quantity "10GB" has the unknown suffix "GB""#
    );
}

#[test]
fn integers_round_away_from_zero_and_saturate() {
    let cases = [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("1.5", 2, 1500),
        ("-1.5", -2, -1500),
        ("1500u", 1, 2),
        ("1Gi", 1 << 30, 1000 << 30),
        ("8Ei", i64::MAX, i64::MAX),
        ("1e29", i64::MAX, i64::MAX),
        ("-1e29", i64::MIN, i64::MIN),
    ];
    for (text, value, milli) in cases {
        assert_eq!(q(text).value(), value, "{text}");
        assert_eq!(q(text).milli_value(), milli, "{text}");
    }
}

#[test]
fn amounts_compare_across_suffixes() {
    assert_eq!(q("1Ki"), q("1024"));
    assert_eq!(q("1e3"), q("1k"));
    assert!(q("10000T") > q("100Gi"));
    assert!(q("-1") < q("1n"));
}

#[test]
fn a_zero_takes_the_format_of_what_is_added() {
    assert_eq!(Quantity::ZERO.saturating_add(q("1Gi")).to_string(), "1Gi");
    assert_eq!(q("1Gi").saturating_add(Quantity::ZERO).to_string(), "1Gi");
    assert_eq!(Quantity::ZERO.saturating_sub(q("1Gi")).to_string(), "-1Gi");
    assert_eq!(q("1Gi").saturating_add(q("1k")).to_string(), "1073742824");
    assert_eq!(
        ["1Gi", "1Gi", "512Mi"]
            .map(q)
            .into_iter()
            .sum::<Quantity>()
            .to_string(),
        "2560Mi"
    );
}

#[test]
fn sums_out_of_range_saturate_or_are_nothing() {
    let most = q("1e29");
    assert_eq!(most.saturating_add(most), most);
    assert_eq!((-most).saturating_sub(most), -most);
    assert_eq!(most.checked_add(q("1n")), None);
    assert_eq!(
        most.checked_sub(q("1n")),
        Some(Quantity::from_nanos(MAX_NANOS - 1, Format::DecimalSi))
    );
    assert_eq!(most.saturating_mul(i64::MIN), -most);
    assert_eq!(q("1.5Gi").saturating_mul(3).to_string(), "4608Mi");
    // A binary sum beyond 2^63-1 still prints as what it is.
    let sum = q("7Ei").saturating_add(q("7Ei"));
    assert_eq!(q(&sum.to_string()), sum);
}

#[test]
fn json_numbers_and_strings_are_quantities_and_null_is_not() {
    let read = |value| serde_json::from_value::<Quantity>(value).map(|q| q.to_string());
    assert_eq!(read(json!("500m")).unwrap(), "500m");
    assert_eq!(read(json!(" 2Gi ")).unwrap(), "2Gi");
    assert_eq!(read(json!(4)).unwrap(), "4");
    assert_eq!(read(json!(-4)).unwrap(), "-4");
    assert_eq!(read(json!(0.1)).unwrap(), "100m");
    assert_eq!(read(json!(1.5e3)).unwrap(), "1500");
    assert_eq!(read(json!(1e300)).unwrap(), "100e27");
    assert_eq!(read(json!(u64::MAX)).unwrap(), "18446744073709551615");
    for bad in [json!(null), json!(true), json!([1]), json!({"a": 1}), json!("x")] {
        assert!(read(bad.clone()).is_err(), "{bad}");
    }
    assert_eq!(serde_json::to_value(q("1.5Gi")).unwrap(), json!("1536Mi"));
}

#[test]
fn a_quantity_is_small_and_pads() {
    assert!(size_of::<Quantity>() <= 32);
    assert_eq!(format!("[{:>6}] [{:<4}]", q("1.5"), q("0")), "[ 1500m] [0   ]");
    assert_eq!(format!("{:?}", q("1Ki")), "Quantity(1Ki)");
}

#[cfg(feature = "schema")]
#[test]
fn the_schema_is_a_number_or_a_string() {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<Vec<Quantity>>();
    let items = &schema.as_value()["items"];
    assert_eq!(items["anyOf"], json!([{"type": "integer"}, {"type": "string"}]));
    assert_eq!(items["x-kubernetes-int-or-string"], json!(true));
    assert!(
        items["pattern"]
            .as_str()
            .unwrap()
            .ends_with(r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$")
    );
}

/// Nano-units of `whole.fraction × 10^ten × 2^two`, rounded up, as decimal digits, computed one digit at a time.
fn slow_nanos(whole: &str, fraction: &str, ten: i32, two: u32) -> String {
    // Little end first.
    let mut digits: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .rev()
        .map(|b| b - b'0')
        .collect();
    for _ in 0..two {
        let mut carry = 0;
        for digit in &mut digits {
            let double = *digit * 2 + carry;
            *digit = double % 10;
            carry = double / 10;
        }
        digits.push(carry);
    }
    let shift = ten + 9 - fraction.len() as i32;
    let mut cut = false;
    for _ in 0..shift {
        digits.insert(0, 0);
    }
    for _ in shift..0 {
        cut |= !digits.is_empty() && digits.remove(0) != 0;
    }
    if cut {
        digits.push(0);
        let kept = digits.iter().take_while(|digit| **digit == 9).count();
        digits[..kept].fill(0);
        digits[kept] += 1;
    }
    let text: String = digits
        .iter()
        .rev()
        .map(|digit| char::from(b'0' + digit))
        .collect();
    let text = text.trim_start_matches('0');
    if text.is_empty() {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// The number, or `most` when it is larger (an `i128` holds more than either bound).
fn cap(nanos: &str, most: i128) -> i128 {
    nanos.parse::<i128>().map_or(most, |nanos| nanos.min(most))
}

prop_compose! {
    /// The parts of a well-formed quantity and its exponents of ten and two.
    fn parts()(
        negative: bool,
        whole in "[0-9]{0,24}",
        fraction in "[0-9]{0,24}",
        suffix in prop_oneof![
            prop::sample::select(vec![
                ("", 0, 0), ("n", -9, 0), ("u", -6, 0), ("m", -3, 0), ("k", 3, 0), ("M", 6, 0), ("G", 9, 0),
                ("T", 12, 0), ("P", 15, 0), ("E", 18, 0), ("Ki", 0, 10), ("Mi", 0, 20), ("Gi", 0, 30),
                ("Ti", 0, 40), ("Pi", 0, 50), ("Ei", 0, 60),
            ]).prop_map(|(text, ten, two)| (text.to_owned(), ten, two)),
            (-45_i32..45).prop_map(|ten| (format!("e{ten}"), ten, 0)),
            (0_i32..45).prop_map(|ten| (format!("E+{ten}"), ten, 0)),
        ],
    ) -> (bool, String, String, String, i32, u32) {
        let whole = if whole.is_empty() && fraction.is_empty() { "7".to_owned() } else { whole };
        (negative, whole, fraction, suffix.0, suffix.1, suffix.2)
    }
}

fn any_quantity() -> impl Strategy<Value = Quantity> {
    let amount = prop_oneof![
        -MAX_NANOS..=MAX_NANOS,
        any::<i64>().prop_map(i128::from),
        (any::<i32>(), 0_u32..7).prop_map(|(n, power)| (i128::from(n) << (10 * power)) * NANOS),
        (any::<i32>(), 0_u32..10).prop_map(|(n, power)| i128::from(n) * 1000_i128.pow(power)),
    ];
    let format = prop_oneof![
        Just(Format::DecimalSi),
        Just(Format::BinarySi),
        Just(Format::DecimalExponent)
    ];
    (amount, format).prop_map(|(nanos, format)| Quantity::from_nanos(nanos, format))
}

proptest! {
    #[test]
    fn parsing_agrees_with_slow_arithmetic((negative, whole, fraction, suffix, ten, two) in parts()) {
        let sign = if negative { "-" } else { "" };
        let text = format!("{sign}{whole}.{fraction}{suffix}");
        let most = if two == 0 { MAX_NANOS } else { MAX_BINARY_NANOS };
        let nanos = cap(&slow_nanos(&whole, &fraction, ten, two), most);
        prop_assert_eq!(q(&text).nanos(), if negative { -nanos } else { nanos }, "{}", text);
    }

    #[test]
    fn printing_loses_nothing_and_is_a_fixed_point(amount in any_quantity()) {
        let text = amount.to_string();
        prop_assert!(text.len() <= MAX_LEN);
        let again = q(&text);
        prop_assert_eq!(again, amount);
        // A whole number does not say that it was binary, so the family is not part of the text.
        prop_assert_eq!(again.with_format(amount.format()).to_string(), text);
    }

    #[test]
    fn canonical_text_has_no_fraction_and_the_largest_suffix(amount in any_quantity()) {
        prop_assume!(!amount.is_zero());
        let text = amount.to_string();
        let end = text.rfind(|c: char| c.is_ascii_digit()).map_or(0, |at| at + 1);
        let number = text.split('e').next().unwrap();
        let mantissa: i128 = number[..end.min(number.len())].parse().unwrap();
        let base = if text.ends_with('i') { 1024 } else { 1000 };
        // With a binary suffix family, whole numbers that are no multiple of 1024 stay as they are.
        if amount.format() != Format::BinarySi || base == 1024 {
            prop_assert_ne!(mantissa % base, 0, "{}", text);
        }
    }

    #[test]
    fn integers_are_the_next_ones_away_from_zero(amount in any_quantity()) {
        let (nanos, value) = (amount.nanos(), i128::from(amount.value()));
        if value.abs() < i128::from(i64::MAX) {
            prop_assert!(value.abs() * NANOS >= nanos.abs());
            prop_assert!(value.abs() * NANOS < nanos.abs() + NANOS);
            prop_assert!(value.signum() == nanos.signum());
        }
    }

    #[test]
    fn order_is_that_of_the_amounts(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a.cmp(&b), a.nanos().cmp(&b.nanos()));
        prop_assert_eq!(a == b, q(&a.to_string()) == q(&b.to_string()));
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "\\PC{0,70}") {
        if let Ok(amount) = Quantity::parse(&text) {
            prop_assert_eq!(q(&amount.to_string()), amount);
        }
    }
}
