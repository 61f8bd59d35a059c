//! The plugins, one file or folder each, and their registration.

use crate::config::PluginConf;
use crate::plugin::Plugin;

pub mod binpack;
pub mod capacity;
pub mod conformance;
pub mod drf;
#[cfg(test)]
pub(crate) mod fixture;
pub mod gang;
pub mod nodeorder;
pub mod overcommit;
pub mod pdb;
pub mod predicates;
pub mod priority;
pub mod proportion;
mod quota;
pub mod sla;

/// Plugins whose protection from eviction holds whichever tier chose the victims.
pub const PROTECTING: &[&str] = &["conformance", "cdp"];

/// Plugins that limit how many of some pods are evicted, whichever tier chose them. Whom they refuse alone is no
/// candidate; how many may go together is asked once all others have chosen, so that nobody uses up a limit and stays.
pub const LIMITING: &[&str] = &["pdb"];

/// Plugins that divide the cluster between queues: reclaim takes only what they let go, whichever tier decided.
pub const DIVIDING: &[&str] = &["capacity", "drf", "proportion"];

/// Makes a plugin of its configuration entry.
pub type Build = fn(&PluginConf) -> Box<dyn Plugin>;

/// Plugins of this engine, by the name that configurations use.
pub const AVAILABLE: &[(&str, Build)] = &[
    ("binpack", binpack::build),
    ("capacity", capacity::build),
    ("conformance", conformance::build),
    ("drf", drf::build),
    ("gang", gang::build),
    ("nodeorder", nodeorder::build),
    ("overcommit", overcommit::build),
    ("pdb", pdb::build),
    ("predicates", predicates::build),
    ("priority", priority::build),
    ("proportion", proportion::build),
    ("sla", sla::build),
];

/// Builds the plugin of a configuration entry, if this engine has it.
pub fn build(entry: &PluginConf) -> Option<Box<dyn Plugin>> {
    let (_, build) = AVAILABLE.iter().find(|(name, _)| *name == entry.name)?;
    Some(build(entry))
}
