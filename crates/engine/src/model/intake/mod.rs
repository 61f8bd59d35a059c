//! How objects enter the model, a file for each sort of object.

mod foreign;
mod groups;
mod nodes;
mod pods;
mod queues;

use volcano_api::time::Time;

fn micros(time: Option<Time>) -> i64 {
    time.map_or(0, Time::unix_micros)
}

/// The spellings of a boolean that annotations use.
pub(in crate::model) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
