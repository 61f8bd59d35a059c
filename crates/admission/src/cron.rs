//! Whether a text is a schedule: five fields as in crontab(5), or a word such as `@daily`.

use volcano_api::time::GoDuration;

const WORDS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];
const EVERY: &str = "@every ";
const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Smallest and largest value of each field, and names for the values from the smallest on.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, MONTHS),
    (0, 6, DAYS),
];

/// Whether a text is a schedule. One with a time zone before it is none.
pub(crate) fn is_schedule(text: &str) -> bool {
    if let Some(duration) = text.strip_prefix(EVERY) {
        return duration.parse::<GoDuration>().is_ok();
    }
    if text.starts_with('@') {
        return WORDS.contains(&text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    fields.len() == FIELDS.len()
        && fields
            .iter()
            .zip(FIELDS)
            .all(|(field, known)| is_field(field, known))
}

/// Whether a field is a list of ranges, with commas between them.
fn is_field(field: &str, known: (u32, u32, &[&str])) -> bool {
    let mut ranges = field.split(',').filter(|range| !range.is_empty()).peekable();
    ranges.peek().is_some() && ranges.all(|range| is_range(range, known))
}

/// Whether a text is `*`, `?`, a value or two with `-` between them, and maybe `/` with a step behind it.
fn is_range(text: &str, (least, most, names): (u32, u32, &[&str])) -> bool {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    if step.is_some_and(|step| number(step).is_none_or(|step| step == 0)) {
        return false;
    }
    if range == "*" || range == "?" {
        return true;
    }
    let value = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let named = names.iter().zip(least..).find(|(name, _)| **name == lower);
        named.map(|(_, value)| value).or_else(|| number(text))
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (value(first), value(last)) {
        (Some(first), Some(last)) => least <= first && first <= last && last <= most,
        _ => false,
    }
}

fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        let good = [
            "* * * * *",
            "*/5 0-6,12 ? JAN-mar,12 mon-Fri",
            "0 0 1 1 0",
            "59 23 31 12 6",
            "3/20 * * * *",
            "1-59/2 * * * *",
            "  0   1 * * *  ",
            "@daily",
            "@every 1h30m",
        ];
        for text in good {
            assert!(is_schedule(text), "{text}");
        }
    }

    #[test]
    fn no_schedules() {
        let bad = [
            "",
            "*",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * 0 *",
            "* * * * 7",
            "5-1 * * * *",
            "*/0 * * * *",
            "*/x * * * *",
            "*/ * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "-1 * * * *",
            "a * * * *",
            "mon * * * *",
            ", * * * *",
            "99999999999 * * * *",
            "@never",
            "@every",
            "@every soon",
            "@Daily",
            "TZ=UTC",
            "TZ=Europe/Berlin 0 * * * *",
            "CRON_TZ=UTC @hourly",
        ];
        for text in bad {
            assert!(!is_schedule(text), "{text}");
        }
    }
}
