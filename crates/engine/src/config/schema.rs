//! What a plugin or an action accepts: the keys of its arguments and the kind of each.

/// The kind of value that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// A YAML integer; a quoted number is not one.
    Int,
    /// A YAML float or integer.
    Float,
    /// A YAML boolean, or a string that Go's `ParseBool` takes (`"1"`, `"t"`, `"TRUE"`, …).
    Bool,
    /// A string.
    Str,
    /// A string in Go's duration syntax, such as `1h30m`.
    Duration,
    /// An integer, or a string holding a resource quantity such as `250m`.
    Quantity,
    /// A list whose items are of one kind.
    List(&'static ArgKind),
    /// A mapping with these keys. Letter case of a spelled-out key does not matter; the value arrives under the
    /// spelling given here.
    Map(&'static [ArgSpec]),
    /// Points of a score by use: a list of `{utilization, score}`, in percent that go up, and of 0 to 10.
    Curve,
    /// Any value; the plugin checks it.
    Any,
}

/// One argument of a plugin or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgSpec {
    /// The exact key, or a prefix that ends in `*`: `binpack.resources.*` stands for every key that continues it.
    pub key: &'static str,
    /// The kind of its value.
    pub kind: ArgKind,
}

impl ArgSpec {
    /// An argument with this key and kind.
    #[must_use]
    pub const fn new(key: &'static str, kind: ArgKind) -> Self {
        Self { key, kind }
    }

    /// The prefix before the `*`, if the key ends in one.
    #[must_use]
    pub fn prefix(&self) -> Option<&'static str> {
        self.key.strip_suffix('*')
    }
}

/// A plugin that a configuration may list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginSpec {
    /// The registered name.
    pub name: &'static str,
    /// The arguments it reads.
    pub arguments: &'static [ArgSpec],
}

/// An action that a configuration may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionSpec {
    /// The registered name.
    pub name: &'static str,
    /// The arguments it reads.
    pub arguments: &'static [ArgSpec],
}

/// The argument that a key belongs to: the exact key first, then the longest prefix that it continues.
pub(super) fn find<'a>(specs: &'a [ArgSpec], key: &str) -> Option<&'a ArgSpec> {
    let continues = |spec: &&ArgSpec| {
        spec.prefix()
            .is_some_and(|prefix| key.len() > prefix.len() && key.starts_with(prefix))
    };
    specs
        .iter()
        .find(|spec| spec.key == key && spec.prefix().is_none())
        .or_else(|| specs.iter().filter(continues).max_by_key(|spec| spec.key.len()))
}
