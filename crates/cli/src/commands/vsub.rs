//! `vsub`: submits a Job of flags.

use super::job::submit::{MISSING_NAME, RESOURCES, Simple, resources, submit};
use crate::api::Api;
use crate::args::{ConnectArgs, DEFAULT_NAMESPACE, IgnoredArgs, number};
use crate::failure::Failure;
use crate::output::Out;
use std::ffi::OsString;
use volcano_api::names::SCHEDULER;

/// Submit a job
///
/// The job is made of a name and arguments; files are not accepted.
#[derive(Clone, Debug, clap::Args)]
pub struct VsubArgs {
    /// Image of the container
    #[arg(long, short = 'i', value_name = "IMAGE", default_value = "busybox")]
    image: String,
    /// The namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Name of the Job
    #[arg(
        long,
        short = 'n',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    /// Pods that must be placed for any of them to start
    #[arg(long, short = 'm', value_name = "N", value_parser = number, default_value = "1")]
    min: i32,
    /// Pods
    #[arg(long, short = 'r', value_name = "N", value_parser = number, default_value = "1")]
    replicas: i32,
    /// What each pod asks for
    #[arg(long, short = 'R', value_name = "AMOUNTS", default_value = RESOURCES)]
    requests: String,
    /// What each pod may use
    #[arg(long, short = 'L', value_name = "AMOUNTS", default_value = RESOURCES)]
    limits: String,
    /// The scheduler
    #[arg(long, short = 'S', value_name = "NAME", default_value = SCHEDULER)]
    scheduler: String,
    /// What the container runs, in words as a shell splits them
    #[arg(
        long,
        short = 'c',
        value_name = "COMMAND",
        default_value = "",
        hide_default_value = true
    )]
    command: String,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Variables of the environment that stand for flags that are not given.
const VARIABLES: [(&str, &str); 3] = [
    ("image", "VOLCANO_DEFAULT_IMAGE"),
    ("namespace", "VOLCANO_DEFAULT_JOB_NAMESPACE"),
    ("scheduler", "VOLCANO_SCHEDULER_NAME"),
];

/// The flags that the environment stands for, to come before those of the user. An empty variable counts as none.
pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Vec<OsString> {
    let set = VARIABLES.iter().filter_map(|(flag, name)| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        let mut word = OsString::from(format!("--{flag}="));
        word.push(value);
        Some(word)
    });
    set.collect()
}

/// Runs the command.
pub async fn run(args: &VsubArgs, out: &mut Out) -> Result<u8, Failure> {
    if args.name.is_empty() {
        return Err(Failure::new(MISSING_NAME));
    }
    let (requests, limits) = (resources(&args.requests)?, resources(&args.limits)?);
    let command = shlex::split(&args.command).ok_or_else(|| {
        Failure::new(format!(
            "command {:?} has a quote that is not closed",
            args.command
        ))
    })?;
    let job = Simple {
        name: &args.name,
        namespace: &args.namespace,
        image: &args.image,
        min: args.min,
        replicas: args.replicas,
        requests: &requests,
        limits: &limits,
        scheduler: &args.scheduler,
        command: &command,
    };
    let api = Api::connect(&args.connect).await?;
    submit(&api, &args.namespace, &job.object(), out).await?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_are_set_are_flags() {
        let variable = |name: &str| match name {
            "VOLCANO_DEFAULT_IMAGE" => Some(OsString::from("mine:1")),
            "VOLCANO_SCHEDULER_NAME" => Some(OsString::new()),
            _ => None,
        };
        assert_eq!(from_environment(variable), ["--image=mine:1"]);
    }
}
