//! Times and durations against tables and against themselves.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

fn duration(text: &str) -> GoDuration {
    GoDuration::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn times_are_read_with_fractions_and_offsets_and_written_in_whole_seconds() {
    let cases = [
        (
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.000000Z",
        ),
        (
            "2026-01-02T03:04:05.678Z",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.678000Z",
        ),
        (
            "2026-01-02T03:04:05.123456789Z",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.123456Z",
        ),
        (
            "2026-01-02T11:04:05+08:00",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.000000Z",
        ),
        (
            "1969-12-31T23:59:59.5Z",
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59.500000Z",
        ),
    ];
    for (text, seconds, micros) in cases {
        assert_eq!(time(text).to_string(), seconds, "{text}");
        assert_eq!(MicroTime(time(text)).to_string(), micros, "{text}");
    }
}

#[test]
fn text_that_is_no_time_is_refused() {
    for text in [
        "",
        "yesterday",
        "2026-01-02",
        "2026-13-01T00:00:00Z",
        "2026-01-02T03:04:05",
    ] {
        assert!(Time::parse(text).is_err(), "{text}");
    }
}

#[test]
fn differences_keep_the_fraction_and_the_sign() {
    let (early, late) = (time("2026-01-02T03:04:05Z"), time("2026-01-02T03:04:06.5Z"));
    assert!(early < late);
    assert_eq!(late.seconds_since(early), 1.5);
    assert_eq!(early.seconds_since(late), -1.5);
    assert_eq!(late.since(early), duration("1.5s"));
    assert_eq!(early.saturating_add(duration("1.5s")), late);
    assert_eq!(late.unix_seconds(), 1_767_323_046);
    assert_eq!(Time::from_unix_millis(1_767_323_046_500), late);
    assert_eq!(Time::from_unix_micros(late.unix_micros()), late);
}

#[test]
fn times_at_the_ends_of_the_range_print_the_last_date_there_is() {
    assert!(Time::from_unix_micros(i64::MAX).to_string().starts_with("9999-"));
    assert!(
        Time::from_unix_micros(i64::MIN)
            .to_string()
            .starts_with("-009999-")
    );
    assert_eq!(
        Time::from_unix_seconds(i64::MAX),
        Time::from_unix_micros(i64::MAX)
    );
}

#[test]
fn times_in_json_are_strings_and_null_is_none() {
    assert_eq!(
        serde_json::to_value(Time::EPOCH).unwrap(),
        json!("1970-01-01T00:00:00Z")
    );
    assert_eq!(
        serde_json::to_value(MicroTime(Time::EPOCH)).unwrap(),
        json!("1970-01-01T00:00:00.000000Z")
    );
    let read = |value| serde_json::from_value::<Option<Time>>(value);
    assert_eq!(
        read(json!("1970-01-01T00:00:01Z")).unwrap(),
        Some(Time::from_unix_seconds(1))
    );
    assert_eq!(read(json!(null)).unwrap(), None);
    assert!(read(json!(1)).is_err());
    assert!(read(json!("soon")).unwrap_err().to_string().contains("RFC 3339"));
}

#[test]
fn durations_are_those_of_go() {
    let cases = [
        ("0", "0s"),
        ("-0", "0s"),
        ("0s", "0s"),
        ("1h", "1h0m0s"),
        ("90m", "1h30m0s"),
        ("1h2m3s4ms5us6ns", "1h2m3.004005006s"),
        ("1h2m3s4ms5µs6ns", "1h2m3.004005006s"),
        ("5μs", "5µs"),
        ("1.5s", "1.5s"),
        (".5s", "500ms"),
        ("1.s", "1s"),
        ("100ms", "100ms"),
        ("1500us", "1.5ms"),
        ("1100ns", "1.1µs"),
        ("7ns", "7ns"),
        ("0.9ns", "0s"),
        ("-1m30.25s", "-1m30.25s"),
        ("+3s", "3s"),
        ("0.3333333333333333333h", "19m59.999999999s"),
        ("3s1h", "1h0m3s"),
        ("9223372036854775807ns", "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
    ];
    for (text, printed) in cases {
        assert_eq!(duration(text).to_string(), printed, "{text}");
    }
}

#[test]
fn text_that_is_no_duration_is_refused_with_the_reason() {
    for text in [
        "",
        "-",
        ".",
        "s",
        ".s",
        "+.s",
        "9223372036854775808ns",
        "9223372036854775807h",
        "--1s",
    ] {
        assert!(
            matches!(GoDuration::parse(text), Err(DurationError::Invalid(_))),
            "{text}"
        );
    }
    assert_eq!(
        GoDuration::parse("30").unwrap_err().to_string(),
        r#"missing unit in duration "30""#
    );
    assert_eq!(
        GoDuration::parse("3d").unwrap_err().to_string(),
        r#"unknown unit "d" in duration "3d""#
    );
    assert!(matches!(
        GoDuration::parse("1 s"),
        Err(DurationError::UnknownUnit { .. })
    ));
}

#[test]
fn durations_convert() {
    assert_eq!(duration("1.5s").as_seconds(), 1.5);
    assert_eq!(
        duration("1.5s").to_std(),
        Some(std::time::Duration::from_millis(1500))
    );
    assert_eq!(duration("-1s").to_std(), None);
    assert_eq!(
        GoDuration::from(std::time::Duration::from_secs(60)),
        duration("1m")
    );
    assert_eq!(GoDuration::from_seconds(60), GoDuration::from_millis(60_000));
    assert_eq!(serde_json::to_value(duration("1h")).unwrap(), json!("1h0m0s"));
    assert_eq!(
        serde_json::from_value::<GoDuration>(json!("1m")).unwrap(),
        duration("60s")
    );
    assert!(serde_json::from_value::<GoDuration>(json!(60)).is_err());
}

proptest! {
    #[test]
    fn a_printed_duration_reads_back(nanos: i64) {
        let span = GoDuration::from_nanos(nanos);
        prop_assert_eq!(duration(&span.to_string()), span);
    }

    #[test]
    fn a_printed_time_reads_back(micros in -60_000_000_000_000_000_i64..250_000_000_000_000_000) {
        let moment = Time::from_unix_micros(micros);
        prop_assert_eq!(time(&MicroTime(moment).to_string()), moment);
        prop_assert_eq!(time(&moment.to_string()).unix_micros(), moment.unix_seconds() * MICROS);
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "\\PC{0,40}") {
        let _ = GoDuration::parse(&text);
        let _ = Time::parse(&text);
    }
}
