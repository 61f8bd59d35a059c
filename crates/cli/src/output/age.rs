//! How long ago something was, in the short form of Kubernetes' tools.

use volcano_api::time::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time that has passed since; `<unknown>` without a time.
pub fn since(now: Time, then: Option<Time>) -> String {
    match then {
        Some(then) => human(now.micros_since(then)),
        None => "<unknown>".to_owned(),
    }
}

/// A duration in microseconds.
fn human(micros: i64) -> String {
    // Go's conversion cuts towards zero.
    let seconds = micros / 1_000_000;
    let two = |large: i64, unit: char, small: i64, part: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{part}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if micros < 0 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, 'm', s % MINUTE, 's'),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, 'h', s / MINUTE % 60, 'm'),
        s if s < 48 * HOUR => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, 'd', s / HOUR % 24, 'h'),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, 'y', s / DAY % 365, 'd'),
        s => format!("{}y", s / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_kubernetes_tools() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (9 * MINUTE + 59, "9m59s"),
            (10 * MINUTE + 30, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (48 * HOUR - 1, "47h"),
            (48 * HOUR, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR + DAY, "8y"),
            (-1, "0s"),
            (-2, "<invalid>"),
        ];
        let now = Time::from_unix_seconds(2_000_000_000);
        for (seconds, expected) in cases {
            let then = Time::from_unix_seconds(2_000_000_000 - seconds);
            assert_eq!(since(now, Some(then)), expected, "{seconds}");
        }
        assert_eq!(since(now, None), "<unknown>");
        let soon = Time::from_unix_micros(now.unix_micros() + 1_999_999);
        assert_eq!(since(now, Some(soon)), "0s");
    }
}
