//! A YAML text as a tree in which every key and value knows its line and column.
//!
//! Deserialising into types stops at the first problem and loses the places of keys in free maps, so the tree is
//! built from the events of the YAML parser instead. Plain scalars are resolved by the rules of YAML 1.1, which is
//! what users of this file write (`yes`, `off`).

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, Span, Tag};

/// No configuration nests deeper; a hostile one would cost stack.
const MAX_DEPTH: usize = 32;
/// The most values in a tree once aliases are written out, so that a few lines cannot expand without end.
const MAX_NODES: usize = 100_000;
/// The most characters of one key in a path.
const MAX_PATH_KEY: usize = 120;

/// A place in the text, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub line: usize,
    pub column: usize,
}

/// A value and where it starts.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub place: Place,
    pub yaml: Yaml,
}

#[derive(Clone, Debug)]
pub(super) enum Yaml {
    Scalar { text: String, value: Scalar },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a mapping with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: String,
    pub key_place: Place,
    pub value: Node,
}

/// What a scalar stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str,
}

/// What is wrong with the text as YAML.
#[derive(Clone, Debug)]
pub(super) struct YamlError {
    pub place: Place,
    /// The way to the value from the top of the document.
    pub path: String,
    pub message: String,
}

impl Node {
    pub fn is_null(&self) -> bool {
        matches!(
            self.yaml,
            Yaml::Scalar {
                value: Scalar::Null,
                ..
            }
        )
    }

    /// What the value is, in words for an error message.
    pub fn describe(&self) -> String {
        match &self.yaml {
            Yaml::Scalar {
                value: Scalar::Null, ..
            } => "nothing".to_owned(),
            Yaml::Scalar {
                text,
                value: Scalar::Bool(_),
            } => format!("boolean {text}"),
            Yaml::Scalar {
                text,
                value: Scalar::Int(_),
            } => format!("integer {text}"),
            Yaml::Scalar {
                text,
                value: Scalar::Float(_),
            } => format!("number {text}"),
            Yaml::Scalar {
                text,
                value: Scalar::Str,
            } => format!("string {}", quoted(text)),
            Yaml::List(_) => "a list".to_owned(),
            Yaml::Map(_) => "a mapping".to_owned(),
        }
    }

    fn count(&self) -> usize {
        1 + match &self.yaml {
            Yaml::Scalar { .. } => 0,
            Yaml::List(items) => items.iter().map(Node::count).sum(),
            Yaml::Map(entries) => entries.iter().map(|entry| 1 + entry.value.count()).sum::<usize>(),
        }
    }

    fn depth(&self) -> usize {
        1 + match &self.yaml {
            Yaml::Scalar { .. } => 0,
            Yaml::List(items) => items.iter().map(Node::depth).max().unwrap_or(0),
            Yaml::Map(entries) => entries.iter().map(|entry| entry.value.depth()).max().unwrap_or(0),
        }
    }
}

/// A text in quotes, on one line and cut to a readable length.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

impl From<Marker> for Place {
    fn from(marker: Marker) -> Self {
        Self {
            line: marker.line(),
            column: marker.col() + 1,
        }
    }
}

impl YamlError {
    fn at(place: impl Into<Place>, message: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            path: String::new(),
            message: message.into(),
        }
    }
}

impl From<ScanError> for YamlError {
    fn from(error: ScanError) -> Self {
        Self::at(*error.marker(), format!("not valid YAML: {}", error.kind()))
    }
}

/// The path of a key in a mapping.
pub(super) fn member(path: &str, key: &str) -> String {
    let (key, rest) = match key.char_indices().nth(MAX_PATH_KEY) {
        Some((end, _)) => (&key[..end], "…"),
        None => (key, ""),
    };
    let key = if key.contains(char::is_control) {
        key.escape_debug().to_string()
    } else {
        key.to_owned()
    };
    let dot = if path.is_empty() { "" } else { "." };
    format!("{path}{dot}{key}{rest}")
}

/// The path of an item in a list.
pub(super) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// Reads a text with at most one document; `None` if there is none. Keys that are there twice are collected, and
/// the first of them counts.
///
/// # Errors
/// The first place that is not YAML, or that goes beyond the limits.
pub(super) fn load(text: &str) -> Result<(Option<Node>, Vec<YamlError>), YamlError> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(text, options),
        anchors: BTreeMap::new(),
        nodes: 0,
        path: String::new(),
        duplicates: Vec::new(),
    };
    let mut document = None;
    while let Some((event, span)) = builder.next()? {
        match event {
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            event => {
                let node = builder.node(event, span, 0)?;
                if document.is_none() {
                    document = Some(node);
                } else if !node.is_null() {
                    return Err(YamlError::at(
                        node.place,
                        "a second document; the file has one only",
                    ));
                }
            }
        }
    }
    Ok((document, builder.duplicates))
}

struct Builder<I> {
    events: I,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    path: String,
    duplicates: Vec<YamlError>,
}

impl<'input, I: Iterator<Item = Result<(Event<'input>, Span), ScanError>>> Builder<I> {
    fn next(&mut self) -> Result<Option<(Event<'input>, Span)>, YamlError> {
        Ok(self.events.next().transpose()?)
    }

    /// The next event inside an open list or mapping.
    fn inside(&mut self, open: Span) -> Result<(Event<'input>, Span), YamlError> {
        self.next()?
            .ok_or_else(|| YamlError::at(open.start, "not valid YAML: the text ends too early"))
    }

    fn node(&mut self, event: Event<'input>, span: Span, depth: usize) -> Result<Node, YamlError> {
        let place = Place::from(span.start);
        if depth >= MAX_DEPTH {
            return Err(YamlError::at(
                place,
                format!("nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        self.grow(1, place)?;
        let (yaml, anchor) = match event {
            Event::Alias(anchor) => return self.alias(anchor, place, depth),
            Event::Scalar(text, style, anchor, tag) => (scalar(&text, style, tag.as_deref(), place)?, anchor),
            Event::SequenceStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "seq", place)?;
                (self.list(span, depth)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "map", place)?;
                (self.map(span, depth)?, anchor)
            }
            _ => return Err(YamlError::at(place, "not valid YAML: a value is missing")),
        };
        let node = Node { place, yaml };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// A value inside of an open list or mapping, at a path of its own.
    fn child(
        &mut self,
        path: String,
        event: Event<'input>,
        span: Span,
        depth: usize,
    ) -> Result<Node, YamlError> {
        let parent = std::mem::replace(&mut self.path, path);
        let node = self
            .node(event, span, depth + 1)
            .map_err(|error| match error.path.as_str() {
                "" => YamlError {
                    path: self.path.clone(),
                    ..error
                },
                _ => error,
            })?;
        self.path = parent;
        Ok(node)
    }

    fn list(&mut self, open: Span, depth: usize) -> Result<Yaml, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.inside(open)? {
                (Event::SequenceEnd, _) => return Ok(Yaml::List(items)),
                (event, span) => {
                    let path = item(&self.path, items.len());
                    items.push(self.child(path, event, span, depth)?);
                }
            }
        }
    }

    fn map(&mut self, open: Span, depth: usize) -> Result<Yaml, YamlError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut places: BTreeMap<String, Place> = BTreeMap::new();
        let mut merged = Vec::new();
        loop {
            let key = match self.inside(open)? {
                (Event::MappingEnd, _) => break,
                (event, span) => self.node(event, span, depth + 1)?,
            };
            let key_place = key.place;
            let Yaml::Scalar { text: key, .. } = key.yaml else {
                return Err(YamlError::at(key_place, "a key must be a single word or string"));
            };
            let path = member(&self.path, &key);
            let (event, span) = self.inside(open)?;
            let value = self.child(path.clone(), event, span, depth)?;
            if key == "<<" {
                merged.push(value);
                continue;
            }
            if let Some(first) = places.get(&key) {
                let message = format!(
                    "duplicate key {}, already set in line {}",
                    quoted(&key),
                    first.line
                );
                self.duplicates.push(YamlError {
                    place: key_place,
                    path,
                    message,
                });
                continue;
            }
            places.insert(key.clone(), key_place);
            entries.push(Entry {
                key,
                key_place,
                value,
            });
        }
        for source in merged {
            merge(&mut entries, &mut places, source)?;
        }
        Ok(Yaml::Map(entries))
    }

    fn alias(&mut self, anchor: usize, place: Place, depth: usize) -> Result<Node, YamlError> {
        let Some(target) = self.anchors.get(&anchor).cloned() else {
            return Err(YamlError::at(
                place,
                "an alias inside of the value that it stands for",
            ));
        };
        if depth + target.depth() > MAX_DEPTH {
            return Err(YamlError::at(
                place,
                format!("nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        self.grow(target.count(), place)?;
        // The contents keep their own places: that is where a mistake in them is to be corrected.
        Ok(target)
    }

    fn grow(&mut self, by: usize, place: Place) -> Result<(), YamlError> {
        self.nodes += by;
        if self.nodes > MAX_NODES {
            return Err(YamlError::at(place, format!("more than {MAX_NODES} values")));
        }
        Ok(())
    }
}

/// `<<: *defaults`: keys that the mapping does not have itself are taken over from another one, or several.
fn merge(
    entries: &mut Vec<Entry>,
    places: &mut BTreeMap<String, Place>,
    source: Node,
) -> Result<(), YamlError> {
    match source.yaml {
        Yaml::Map(others) => {
            for other in others {
                if !places.contains_key(&other.key) {
                    places.insert(other.key.clone(), other.key_place);
                    entries.push(other);
                }
            }
            Ok(())
        }
        Yaml::List(sources) if sources.iter().all(|node| matches!(node.yaml, Yaml::Map(_))) => sources
            .into_iter()
            .try_for_each(|source| merge(entries, places, source)),
        _ => Err(YamlError::at(
            source.place,
            "a merge key (<<) takes a mapping or a list of mappings",
        )),
    }
}

fn collection_tag(tag: Option<&Tag>, expected: &str, place: Place) -> Result<(), YamlError> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(expected) => Err(unsupported(tag, place)),
        _ => Ok(()),
    }
}

fn unsupported(tag: &Tag, place: Place) -> YamlError {
    YamlError::at(
        place,
        format!("tag {}{} does not fit here", tag.original_handle(), tag.suffix()),
    )
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, place: Place) -> Result<Yaml, YamlError> {
    let value = match tag {
        None if style == ScalarStyle::Plain => resolve(text),
        None => Scalar::Str,
        Some(tag) => match (tag.core_suffix(), resolve(text)) {
            (Some("str"), _) => Scalar::Str,
            (Some("float"), Scalar::Int(number)) => Scalar::Float(number as f64),
            (Some("null"), value @ Scalar::Null)
            | (Some("bool"), value @ Scalar::Bool(_))
            | (Some("int"), value @ Scalar::Int(_))
            | (Some("float"), value @ Scalar::Float(_)) => value,
            _ if tag.handle() == "!" && tag.suffix().is_empty() => Scalar::Str,
            _ => return Err(unsupported(tag, place)),
        },
    };
    Ok(Yaml::Scalar {
        text: text.to_owned(),
        value,
    })
}

/// What a plain scalar stands for in YAML 1.1.
pub(super) fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            Scalar::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        _ => resolve_number(text),
    }
}

fn resolve_number(text: &str) -> Scalar {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Scalar::Float(if text.starts_with('-') {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        });
    }
    // Anything else that is a number starts like one; Rust's own "inf" and "nan" are words here.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Scalar::Str;
    }
    let digits = unsigned.replace('_', "");
    let sign = if text.starts_with('-') { "-" } else { "" };
    let radix = |prefix: &str, radix| {
        let rest = digits
            .strip_prefix(prefix)
            .filter(|rest| !rest.starts_with(['+', '-']))?;
        i64::from_str_radix(&format!("{sign}{rest}"), radix).ok()
    };
    // In YAML 1.1 a leading zero makes an octal number.
    let decimal = || {
        if digits.len() > 1 && digits.starts_with('0') {
            radix("0", 8)
        } else {
            radix("", 10)
        }
    };
    if let Some(number) = radix("0x", 16)
        .or_else(|| radix("0b", 2))
        .or_else(|| radix("0o", 8))
        .or_else(decimal)
    {
        return Scalar::Int(number);
    }
    match format!("{sign}{digits}").parse::<f64>() {
        Ok(number) => Scalar::Float(number),
        Err(_) => Scalar::Str,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_yaml_1_1() {
        for (text, value) in [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("y", Scalar::Bool(true)),
            ("On", Scalar::Bool(true)),
            ("NO", Scalar::Bool(false)),
            ("yEs", Scalar::Str),
            ("0", Scalar::Int(0)),
            ("-12", Scalar::Int(-12)),
            ("+7", Scalar::Int(7)),
            ("1_000", Scalar::Int(1000)),
            ("0x1F", Scalar::Int(31)),
            ("0b101", Scalar::Int(5)),
            ("0o17", Scalar::Int(15)),
            ("017", Scalar::Int(15)),
            ("09", Scalar::Float(9.0)),
            ("-9223372036854775808", Scalar::Int(i64::MIN)),
            ("9223372036854775808", Scalar::Float(9_223_372_036_854_775_808.0)),
            ("1.5", Scalar::Float(1.5)),
            (".5", Scalar::Float(0.5)),
            ("1e3", Scalar::Float(1000.0)),
            ("-.inf", Scalar::Float(f64::NEG_INFINITY)),
            ("inf", Scalar::Str),
            ("nan", Scalar::Str),
            (".", Scalar::Str),
            ("30m", Scalar::Str),
            ("00:00-08:00", Scalar::Str),
            ("nvidia.com/gpu", Scalar::Str),
            ("--1", Scalar::Str),
            ("1-2", Scalar::Str),
        ] {
            assert_eq!(resolve(text), value, "{text:?}");
        }
    }

    /// Every key with its place and that of its value, outermost first.
    fn places(node: &Node) -> Vec<(String, [usize; 2], [usize; 2])> {
        match &node.yaml {
            Yaml::Scalar { .. } => Vec::new(),
            Yaml::List(items) => items.iter().flat_map(places).collect(),
            Yaml::Map(entries) => entries
                .iter()
                .flat_map(
                    |Entry {
                         key,
                         key_place: at,
                         value,
                     }| {
                        let here = (
                            key.clone(),
                            [at.line, at.column],
                            [value.place.line, value.place.column],
                        );
                        std::iter::once(here).chain(places(value))
                    },
                )
                .collect(),
        }
    }

    #[test]
    fn every_key_and_value_knows_its_place() {
        let (node, _) = load("a: 1\nb:\n- {c: x}\n# end\n").expect("valid YAML");
        assert_eq!(
            places(&node.expect("a document")),
            [
                ("a".to_owned(), [1, 1], [1, 4]),
                ("b".to_owned(), [2, 1], [3, 3]),
                ("c".to_owned(), [3, 4], [3, 7])
            ]
        );
    }

    #[test]
    fn an_alias_keeps_the_places_of_what_it_stands_for() {
        let (node, _) = load("a: &x {k: 1}\nb: *x\nc:\n  <<: *x\n  l: 2\n").expect("valid YAML");
        assert_eq!(
            places(&node.expect("a document")),
            [
                ("a".to_owned(), [1, 1], [1, 7]),
                ("k".to_owned(), [1, 8], [1, 11]),
                ("b".to_owned(), [2, 1], [1, 7]),
                ("k".to_owned(), [1, 8], [1, 11]),
                ("c".to_owned(), [3, 1], [4, 3]),
                ("l".to_owned(), [5, 3], [5, 6]),
                ("k".to_owned(), [1, 8], [1, 11]),
            ]
        );
    }

    #[test]
    fn aliases_cannot_expand_without_end() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..9 {
            let row = vec![format!("*a{}", i - 1); 8].join(", ");
            text.push_str(&format!("a{i}: &a{i} [{row}]\n"));
        }
        assert_eq!(
            load(&text).expect_err("too large").message,
            "more than 100000 values"
        );
        assert_eq!(
            load("a: &a [*a]\n").expect_err("endless").message,
            "an alias inside of the value that it stands for"
        );
        let deep = format!("a: {}1{}", "[".repeat(40), "]".repeat(40));
        assert_eq!(
            load(&deep).expect_err("too deep").message,
            "nested more than 32 levels deep"
        );
    }
}
