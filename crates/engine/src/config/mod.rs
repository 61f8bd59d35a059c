//! The scheduler configuration file: its types, its strict reader, and the catalogue of names it may use.
//!
//! A typing error in this file used to be ignored, and a wrong type could stop the process. Here the whole text
//! is checked before anything of it takes effect, and every problem comes back with its place and a hint:
//!
//! ```text
//! text -> yaml: a tree with line and column -> reader: shape and names -> values: types of arguments
//!                                                  \-> rules across plugins -> SchedulerConf or ConfigErrors
//! ```
//!
//! Names and types of arguments are not known to the reader: the caller passes the [`PluginSpec`]s and
//! [`ActionSpec`]s it has registered, so that a plugin added elsewhere is checked just as strictly.

mod arguments;
pub mod catalog;
mod duration;
mod error;
mod metrics;
mod names;
mod reader;
mod schema;
mod shown;
mod switches;
mod values;
mod yaml;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use arguments::{Arguments, Value};
pub use duration::parse_duration;
pub use error::{ConfigError, ConfigErrors};
pub use schema::{ActionSpec, ArgKind, ArgSpec, PluginSpec};
pub use shown::shown;
pub use switches::{Switches, UnknownSwitch};

/// The largest configuration text that is read, in bytes (a ConfigMap cannot hold more).
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Used when no configuration file is given.
const DEFAULT_TEXT: &str = r#"actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"#;

/// A checked scheduler configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulerConf {
    /// The actions of a cycle, in the order in which they run; never empty.
    pub actions: Vec<String>,
    /// The plugin tiers, first tier first; may be empty.
    pub tiers: Vec<Tier>,
    /// Arguments of actions, as listed.
    pub configurations: Vec<ActionConf>,
    /// Where node load comes from, under flat keys such as `tls.insecureSkipVerify`.
    pub metrics: BTreeMap<String, String>,
}

/// One tier: plugins that decide together before the next tier is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tier {
    /// The plugins of the tier, in the order in which they are asked.
    pub plugins: Vec<PluginConf>,
}

/// One plugin of a tier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginConf {
    /// The registered name, such as `binpack`.
    pub name: String,
    /// Which of its extension points take part.
    pub switches: Switches,
    /// Its arguments; every key and type has been checked.
    pub arguments: Arguments,
}

/// The arguments of one action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionConf {
    /// The registered name, such as `preempt`.
    pub name: String,
    /// Its arguments; every key and type has been checked.
    pub arguments: Arguments,
}

impl SchedulerConf {
    /// Reads and checks a whole configuration text.
    ///
    /// `plugins` and `actions` are what the caller has registered; any other name in the text is an error.
    ///
    /// # Errors
    /// All problems of the text, in the order of their place in it.
    pub fn parse(text: &str, plugins: &[PluginSpec], actions: &[ActionSpec]) -> Result<Self, ConfigErrors> {
        reader::read(text, plugins, actions)
    }

    /// The configuration that is in force when no file is given.
    #[must_use]
    pub fn default_text() -> &'static str {
        DEFAULT_TEXT
    }

    /// The arguments given for an action: all its entries taken together, empty without one.
    #[must_use]
    pub fn action_arguments(&self, action: &str) -> Arguments {
        let entries = self.configurations.iter().filter(|entry| entry.name == action);
        entries
            .flat_map(|entry| entry.arguments.iter())
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect()
    }

    /// The entry of a plugin, in whichever tier it is.
    #[must_use]
    pub fn plugin(&self, name: &str) -> Option<&PluginConf> {
        self.tiers
            .iter()
            .flat_map(|tier| &tier.plugins)
            .find(|plugin| plugin.name == name)
    }
}
