//! `vcctl job run`: submits a Job of flags or of a file, and waits for its end if that is wished.

use super::submit::{MISSING_NAME, RESOURCES, Simple, resources, submit};
use super::wait;
use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs, NamespaceArgs, number};
use crate::failure::Failure;
use crate::go_flags::duration;
use crate::output::{Out, files};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use volcano_api::batch::Job;
use volcano_api::names::{SCHEDULER, kinds};

/// Submit a Job, made of flags or read from a file
///
/// With --wait it ends with the Job: exit code 0 if the Job completed, 2 if it failed, 3 if it was terminated, 4 if it
/// was aborted, 5 if it was deleted, 124 if it was not over within --timeout.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// Image of the container
    #[arg(long, short = 'i', value_name = "IMAGE", default_value = "busybox")]
    image: String,
    /// Name of the Job
    #[arg(
        long,
        short = 'N',
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
    /// A YAML file with the Job; the flags that describe one are then ignored
    #[arg(
        long,
        short = 'f',
        value_name = "FILE",
        default_value = "",
        hide_default_value = true
    )]
    filename: OsString,
    /// Show how the Job gets on, and end with it
    #[arg(long)]
    wait: bool,
    /// With --wait, how long to wait, such as 30m; 0 for as long as it takes
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s", hide_default_value = true)]
    timeout: Duration,
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &RunArgs, out: &mut Out) -> Result<u8, Failure> {
    if args.name.is_empty() && args.filename.is_empty() {
        return Err(Failure::new(MISSING_NAME));
    }
    let (requests, limits) = (resources(&args.requests)?, resources(&args.limits)?);
    let namespace = &args.namespace.namespace;
    let job = if args.filename.is_empty() {
        let simple = Simple {
            name: &args.name,
            namespace,
            image: &args.image,
            min: args.min,
            replicas: args.replicas,
            requests: &requests,
            limits: &limits,
            scheduler: &args.scheduler,
            command: &[],
        };
        simple.object()
    } else {
        from_file(Path::new(&args.filename))?
    };
    let api = Api::connect(&args.connect).await?;
    let job = submit(&api, namespace, &job, out).await?;
    if !args.wait {
        return Ok(0);
    }
    let timeout = Some(args.timeout).filter(|timeout| !timeout.is_zero());
    wait::wait(&api, &job, timeout, out).await
}

/// The Job of a file, as it is.
fn from_file(path: &Path) -> Result<Value, Failure> {
    let name = path.to_string_lossy();
    if !name.contains(".yaml") && !name.contains(".yml") {
        return Err(Failure::new("only support yaml file"));
    }
    let text =
        files::read(path).map_err(|error| Failure::new(format!("failed to read file, err: {error}")))?;
    let wrong = |error: String| {
        // One line, whatever the reader of YAML draws around its place.
        let line = error.split_whitespace().collect::<Vec<_>>().join(" ");
        Failure::new(format!("failed to unmarshal file, err:  {line}"))
    };
    let job = files::object(&text)
        .and_then(|job| files::of_kind(job, kinds::JOB))
        .map_err(wrong)?;
    serde_json::from_value::<Job>(job.clone()).map_err(|error| wrong(error.to_string()))?;
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_jobs_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = |name: &str, text: Option<&str>| {
            let path = folder.path().join(name);
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            match from_file(&path) {
                Err(Failure::Told { message, .. }) => message,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(told("job.json", Some("{}")), "only support yaml file");
        assert!(told("none.yaml", None).starts_with("failed to read file, err: open "));
        let wrong = told("wrong.yml", Some("a: [1\nb"));
        assert!(
            wrong.starts_with("failed to unmarshal file, err:  ") && !wrong.contains('\n'),
            "{wrong}"
        );
        let kind = told("pod.yaml", Some("apiVersion: v1\nkind: Pod\n"));
        assert!(kind.contains("apiVersion is \"v1\""), "{kind}");
        let field = told("field.yaml", Some("spec: {minAvailable: x}\n"));
        assert!(field.contains("invalid type"), "{field}");
    }
}
