//! `vjobs`: one Job by name, or the Jobs of a namespace.

use super::job::list::Query;
use super::job::view::{Parts, view};
use crate::api::Api;
use crate::args::{AllNamespacesArgs, ConnectArgs, DEFAULT_NAMESPACE, IgnoredArgs, ListingArgs};
use crate::failure::Failure;
use crate::output::Out;

/// View job information
///
/// Shows one job by its name, or all jobs of a namespace.
#[derive(Clone, Debug, clap::Args)]
pub struct VjobsArgs {
    /// The namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Name of a Job
    #[arg(
        long,
        short = 'n',
        value_name = "JOB",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    /// Only Jobs of this scheduler
    #[arg(
        long,
        short = 'S',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    scheduler: String,
    /// Only Jobs with this in their name
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    selector: String,
    #[command(flatten)]
    all: AllNamespacesArgs,
    #[command(flatten)]
    how: ListingArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &VjobsArgs, out: &mut Out) -> Result<u8, Failure> {
    let api = Api::connect(&args.connect).await?;
    if !args.name.is_empty() {
        let parts = Parts::without_conditions();
        return view(
            &api,
            &args.namespace,
            &args.name,
            args.how.output.output,
            parts,
            out,
        )
        .await;
    }
    let query = Query {
        namespace: &args.namespace,
        all_namespaces: args.all.all_namespaces,
        queue: "",
        scheduler: &args.scheduler,
        part: &args.selector,
        how: &args.how,
        bare_header: true,
    };
    query.show(&api, out).await
}
