//! The query of a request.

use percent_encoding::percent_decode_str;

/// Names and values.
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`.
    pub fn new(text: &str) -> Query {
        let decoded = |text: &str| {
            percent_decode_str(&text.replace('+', " "))
                .decode_utf8_lossy()
                .into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Query(pairs.collect())
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }

    /// Whether something is switched on.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| matches!(value.as_str(), "" | "1" | "true" | "True"))
    }
}
