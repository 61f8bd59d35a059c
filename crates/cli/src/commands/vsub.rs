//! `vsub`: submits a Job of flags.

use super::job::submit::{MISSING_NAME, SimpleArgs, submit};
use crate::api::Api;
use crate::args::{ConnectArgs, DEFAULT_NAMESPACE, IgnoredArgs};
use crate::failure::Failure;
use crate::output::Out;
use std::ffi::OsString;

/// Submit a job
///
/// The job is made of a name and arguments; files are not accepted.
#[derive(Clone, Debug, clap::Args)]
pub struct VsubArgs {
    /// Name of the Job
    #[arg(
        long,
        short = 'n',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    #[command(flatten)]
    simple: SimpleArgs,
    /// What the container runs, in words as a shell splits them
    #[arg(
        long,
        short = 'c',
        value_name = "COMMAND",
        default_value = "",
        hide_default_value = true
    )]
    command: String,
    /// The namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
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
    let command = shlex::split(&args.command).ok_or_else(|| {
        Failure::new(format!(
            "command {:?} has a quote that is not closed",
            args.command
        ))
    })?;
    let job = args.simple.job(&args.name, &args.namespace, &command)?;
    let api = Api::connect(&args.connect).await?;
    submit(&api, &args.namespace, &job, out).await?;
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
