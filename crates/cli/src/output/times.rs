//! Points in time as Go's programs print them, in the user's time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::LazyLock;
use volcano_api::time::Time;

/// What Go prints for a time that was never set.
const NEVER: &str = "0001-01-01 00:00:00 +0000 UTC";

/// The zone of `TZ`, else the machine's, else UTC.
static ZONE: LazyLock<TimeZone> = LazyLock::new(|| {
    let named = std::env::var("TZ").ok().filter(|name| !name.is_empty());
    let found = match named {
        Some(name) => TimeZone::get(name.trim_start_matches(':')).ok(),
        None => std::fs::read("/etc/localtime")
            .ok()
            .and_then(|data| TimeZone::tzif("Local", &data).ok()),
    };
    found.unwrap_or(TimeZone::UTC)
});

/// The time now.
pub fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Time::from_unix_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// Date, time, offset and zone, such as `2026-01-02 03:04:05 +0000 UTC`.
pub fn full(time: Option<Time>) -> String {
    format(time, "%Y-%m-%d %H:%M:%S %z %Z", &ZONE)
}

/// The date, such as `2026-01-02`.
pub fn date(time: Option<Time>) -> String {
    format(time, "%Y-%m-%d", &ZONE)
}

/// The time of the day, for lines of progress.
pub fn clock(time: Time) -> String {
    format(Some(time), "%H:%M:%S", &ZONE)
}

fn format(time: Option<Time>, form: &str, zone: &TimeZone) -> String {
    let stamp = time.and_then(|time| Timestamp::from_second(time.unix_seconds()).ok());
    match stamp {
        Some(stamp) => stamp.to_zoned(zone.clone()).strftime(form).to_string(),
        None if form.len() > "%Y-%m-%d".len() => NEVER.to_owned(),
        None => NEVER.split(' ').next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_as_go_prints_them() {
        let time = Time::parse("2026-01-02T03:04:05Z").ok();
        let form = "%Y-%m-%d %H:%M:%S %z %Z";
        assert_eq!(
            format(time, form, &TimeZone::UTC),
            "2026-01-02 03:04:05 +0000 UTC"
        );
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(format(time, form, &berlin), "2026-01-02 04:04:05 +0100 CET");
        assert_eq!(format(time, "%Y-%m-%d", &TimeZone::UTC), "2026-01-02");
        assert_eq!(format(None, form, &TimeZone::UTC), NEVER);
        assert_eq!(format(None, "%Y-%m-%d", &TimeZone::UTC), "0001-01-01");
    }
}
