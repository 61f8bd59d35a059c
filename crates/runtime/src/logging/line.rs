//! One line per event: time, level, message, fields. Whatever a value holds, it stays one line.

use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use volcano_api::time::{MicroTime, Time};

/// The form of a line.
pub(super) struct Line {
    /// With time and level.
    pub headers: bool,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let metadata = event.metadata();
        if self.headers {
            write!(line, "{} {:<5} ", now(), metadata.level())?;
        }
        if !metadata.target().starts_with(super::OURS) {
            write!(line, "{}: ", metadata.target())?;
        }
        let mut parts = Parts::default();
        event.record(&mut parts);
        writeln!(line, "{}{}", parts.message, parts.fields)
    }
}

fn now() -> MicroTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    MicroTime(Time::from_unix_micros(
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
    ))
}

#[derive(Default)]
struct Parts {
    message: String,
    /// ` key=value` of each.
    fields: String,
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            push_one_line(&mut self.message, &text);
        } else if needs_quotes(&text) {
            let _ = write!(self.fields, " {}={text:?}", field.name());
        } else {
            let _ = write!(self.fields, " {}={text}", field.name());
        }
    }
}

/// Whether a reader could not tell where a value ends. What is quoted already is not quoted again.
fn needs_quotes(text: &str) -> bool {
    let quoted = text.len() >= 2 && text.starts_with('"') && text.ends_with('"');
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '=';
    text.is_empty() || (!quoted && text.contains(odd)) || text.contains(char::is_control)
}

fn push_one_line(line: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
}
