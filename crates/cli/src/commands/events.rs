//! Events of an object, in the lines that `job view` ends with.

use crate::api::{Api, Meta, Scope};
use crate::failure::Failure;
use crate::output::age;
use serde::Deserialize;
use std::fmt::Write as _;
use volcano_api::core::null_default;
use volcano_api::names::Kind;
use volcano_api::time::Time;

/// The kind of core events.
pub const EVENT: Kind = Kind {
    kind: "Event",
    plural: "events",
    ..volcano_api::names::kinds::POD
};

/// What is printed of an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventItem {
    /// Metadata.
    pub metadata: Meta,
    /// Normal or Warning.
    pub r#type: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in words.
    pub message: String,
    /// How often.
    #[serde(deserialize_with = "null_default")]
    pub count: i64,
    /// The first time.
    pub first_timestamp: Option<Time>,
    /// The last time.
    pub last_timestamp: Option<Time>,
    /// The time, of newer events.
    pub event_time: Option<Time>,
    /// Who told it.
    #[serde(deserialize_with = "null_default")]
    pub source: Source,
    /// Who told it, of newer events.
    #[serde(deserialize_with = "null_default")]
    pub reporting_component: String,
    /// What it is about.
    #[serde(deserialize_with = "null_default")]
    pub involved_object: Involved,
}

/// Who told an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Source {
    /// The program.
    pub component: String,
    /// The node.
    pub host: String,
}

/// What an event is about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Involved {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// Events of a namespace, those that are wanted.
pub async fn of(
    api: &Api,
    namespace: &str,
    wanted: impl Fn(&EventItem) -> bool,
) -> Result<Vec<EventItem>, Failure> {
    let mut pages = api.pages::<EventItem>(Scope::new(EVENT, namespace), None);
    let mut events = Vec::new();
    while let Some(page) = pages.next().await.map_err(|error| api.failure(&error))? {
        events.extend(page.into_iter().filter(&wanted));
    }
    Ok(events)
}

/// The lines of events.
pub fn lines(events: &[EventItem], now: Time) -> String {
    if events.is_empty() {
        return "Events: \t<none>\n".to_owned();
    }
    let mut text = "Events:\n".to_owned();
    line(&mut text, ["Type", "Reason", "Age", "Form", "Message"]);
    line(&mut text, ["-------"; 5]);
    for event in events {
        line(
            &mut text,
            [
                &event.r#type,
                &event.reason,
                &event.age(now),
                &event.form(),
                event.message.trim_end(),
            ],
        );
    }
    text
}

fn line(text: &mut String, cells: [&str; 5]) {
    let [kind, reason, age, form, message] = cells;
    let _ = writeln!(text, "{kind:<15}\t{reason:<40}\t{age:<30}\t{form:<40}\t{message}");
}

impl EventItem {
    fn age(&self, now: Time) -> String {
        let first = self.first_timestamp.or(self.event_time);
        if self.count > 1 {
            let last = age::since(now, self.last_timestamp);
            return format!("{last} (x{} over {})", self.count, age::since(now, first));
        }
        age::since(now, first)
    }

    fn form(&self) -> String {
        let component = match self.source.component.is_empty() {
            true => &self.reporting_component,
            false => &self.source.component,
        };
        match self.source.host.is_empty() {
            true => component.clone(),
            false => format!("{component}, {}", self.source.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_lines_of_padded_columns() {
        let now = Time::parse("2026-01-01T01:00:00Z").unwrap();
        assert_eq!(lines(&[], now), "Events: \t<none>\n");
        let event = |fields| serde_json::from_value::<EventItem>(fields).unwrap();
        let events = [
            event(
                json!({"type": "Normal", "reason": "Scheduled", "message": "placed",
                "firstTimestamp": "2026-01-01T00:59:55Z", "source": {"component": "volcano", "host": "n1"}}),
            ),
            event(
                json!({"type": "Warning", "reason": "Failed", "message": "no", "count": 3,
                "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:59:00Z"}),
            ),
        ];
        let text = lines(&events, now);
        let shown: Vec<Vec<&str>> = text
            .lines()
            .skip(1)
            .map(|line| line.split('\t').map(str::trim_end).collect())
            .collect();
        assert_eq!(shown[0], ["Type", "Reason", "Age", "Form", "Message"]);
        assert_eq!(shown[1], ["-------"; 5]);
        assert_eq!(shown[2], ["Normal", "Scheduled", "5s", "volcano, n1", "placed"]);
        assert_eq!(shown[3], ["Warning", "Failed", "60s (x3 over 60m)", "", "no"]);
        let cells: Vec<usize> = text.lines().nth(1).unwrap().split('\t').map(str::len).collect();
        assert_eq!(cells, [15, 40, 30, 40, 7]);
    }
}
