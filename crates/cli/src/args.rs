//! Flags that many commands take.
//!
//! The name of a flag's value (`JOB`, `QUEUE`, `NAMESPACE`, …) says what it is: help shows it, and completion offers the
//! names that there are.

use crate::go_flags::{BOOL, boolean};
use crate::output::Format;
use clap::ArgAction::Set;
use std::ffi::OsString;
use volcano_runtime::client;

/// The namespace when none is given. That of the kubeconfig's context does not count, as in Volcano's tools.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Where help has the flags of the connection. It is said of each: a heading of all would go on to what comes after them.
const CLUSTER: &str = "Cluster";

/// Which API server, and as whom.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConnectArgs {
    /// Address of the API server, instead of the kubeconfig's
    #[arg(
        long,
        short = 's',
        value_name = "URL",
        default_value = "",
        hide_default_value = true,
        help_heading = CLUSTER
    )]
    pub master: String,

    /// The kubeconfig [default: the files of KUBECONFIG, then ~/.kube/config, then the pod's service account]
    #[arg(
        long,
        short = 'k',
        value_name = "FILE",
        default_value = "",
        hide_default_value = true,
        help_heading = CLUSTER
    )]
    pub kubeconfig: OsString,

    /// Context of the kubeconfig, instead of its current one
    #[arg(
        long,
        value_name = "CONTEXT",
        default_value = "",
        hide_default_value = true,
        help_heading = CLUSTER
    )]
    pub context: String,
}

impl ConnectArgs {
    /// The settings of the connection.
    pub fn options(&self) -> client::Options {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        client::Options {
            master: text(&self.master),
            kubeconfig: (!self.kubeconfig.is_empty()).then(|| self.kubeconfig.clone().into()),
            context: text(&self.context),
            search: client::Search::UserFirst,
            // A person's tool: it asks for what it needs, and the API server has its own limits.
            qps: 0.0,
            burst: 0,
        }
    }
}

/// The namespace, `-n`.
#[derive(Clone, Debug, clap::Args)]
pub struct NamespaceArgs {
    /// The namespace
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    pub namespace: String,
}

/// All namespaces.
#[derive(Clone, Debug, clap::Args)]
pub struct AllNamespacesArgs {
    /// All namespaces
    #[arg(long, short = 'A', value_name = BOOL, value_parser = boolean, action = Set, default_value = "false",
        num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    pub all_namespaces: bool,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// Whole objects as json or yaml, their names, or a table with more columns
    #[arg(long, short = 'o', value_name = "FORMAT")]
    pub output: Option<Format>,
}

/// What of a list is wanted, and for how long.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ListingArgs {
    /// Only objects with these labels, such as app=web,tier!=test
    #[arg(
        long,
        short = 'l',
        value_name = "SELECTOR",
        default_value = "",
        hide_default_value = true
    )]
    pub label_selector: String,

    /// After the list print what changes, until interrupted
    #[arg(long, short = 'w', value_name = BOOL, value_parser = boolean, action = Set, default_value = "false",
        num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    pub watch: bool,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// Words that are no flags. Volcano's tools ignore them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct IgnoredArgs {
    /// Ignored
    #[arg(hide = true)]
    pub ignored: Vec<OsString>,
}

/// A number, told as Go tells it when it is none.
pub fn number(text: &str) -> Result<i32, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse::<i32>().map_err(|error| {
        let cause = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {text:?}: {cause}")
    })
}
