//! `vcctl job view`, and `vjobs` of one Job: all about it, in lines that scripts read.

use super::OneJobArgs;
use crate::api::{Api, Scope};
use crate::args::OutputArgs;
use crate::commands::events;
use crate::commands::pod::status::PodItem;
use crate::failure::Failure;
use crate::live::Whole;
use crate::output::{Column, Format, ObjectWriter, Out, Table, age, tell, times};
use std::io::Write as _;
use volcano_api::batch::Job;
use volcano_api::names::{kinds, labels};
use volcano_api::scheduling::PodGroup;

mod describe;

pub use describe::Parts;

/// Show a Job: what it is, how it is, and its events
///
/// With -o wide also its pods, what the scheduler says of its PodGroup, and the events of both.
#[derive(Clone, Debug, clap::Args)]
pub struct ViewArgs {
    #[command(flatten)]
    job: OneJobArgs,
    #[command(flatten)]
    how: OutputArgs,
}

/// Runs the command.
pub async fn run(args: &ViewArgs, out: &mut Out) -> Result<u8, Failure> {
    let job = &args.job;
    let name = job.name("job name (specified by --name or -N) is mandatory to view a particular job")?;
    let api = Api::connect(&job.connect).await?;
    view(
        &api,
        &job.namespace.namespace,
        name,
        args.how.output,
        Parts::all(),
        out,
    )
    .await
}

/// Shows a Job.
pub async fn view(
    api: &Api,
    namespace: &str,
    name: &str,
    format: Option<Format>,
    parts: Parts,
    out: &mut Out,
) -> Result<u8, Failure> {
    if let Some(format) = format.filter(|format| *format != Format::Wide) {
        let job: Whole = api.get(kinds::JOB, namespace, name).await?;
        ObjectWriter::single(out, format, kinds::JOB).push(job.0)?;
        return Ok(0);
    }
    let job: Job = api.get(kinds::JOB, namespace, name).await?;
    out.write_all(describe::job(&job, parts).as_bytes())?;
    let mut names = vec![name.to_owned()];
    if format == Some(Format::Wide) {
        names.extend(surroundings(api, &job, out).await?);
    }
    // Events are named after what they are about.
    let prefixes: Vec<_> = names.iter().map(|name| format!("{name}.")).collect();
    let wanted = |event: &events::EventItem| {
        prefixes
            .iter()
            .any(|prefix| event.metadata.name.starts_with(prefix))
    };
    match events::of(api, namespace, wanted).await {
        Ok(events) => out.write_all(events::lines(&events, times::now()).as_bytes())?,
        Err(Failure::Told { message, .. }) => {
            out.flush()?;
            tell(&format!("Failed to list events: {message}\n"));
        }
        Err(other) => return Err(other),
    }
    Ok(0)
}

/// Prints the pods and the PodGroup of a Job. Their names.
async fn surroundings(api: &Api, job: &Job, out: &mut Out) -> Result<Vec<String>, Failure> {
    let meta = &job.metadata;
    let mut names = Vec::new();
    let group_name = format!("{}-{}", meta.name, meta.uid);
    if let Ok(group) = api
        .find::<PodGroup>(kinds::POD_GROUP, &meta.namespace, &group_name)
        .await?
    {
        out.write_all(describe::group(&group).as_bytes())?;
        names.push(group_name);
    }
    let label = format!("{}={}", labels::JOB_NAME, meta.name);
    let mut pods: Vec<PodItem> = api
        .list(Scope::new(kinds::POD, &meta.namespace).labelled(&label))
        .await?;
    pods.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    writeln!(out, "Pods:{}", if pods.is_empty() { " \t<none>" } else { "" })?;
    if !pods.is_empty() {
        let mut table = Table::new(vec![
            Column::fixed("  ", 2),
            Column::longest("Name", 3),
            Column::longest("Task", 3),
            Column::longest("Ready", 3),
            Column::longest("Status", 3).state(),
            Column::longest("Restart", 3),
            Column::longest("Age", 3),
            Column::longest("Node", 3),
        ]);
        let now = times::now();
        for pod in &pods {
            let (meta, shown) = (&pod.metadata, pod.shown(now));
            let task = meta.labels.get(labels::TASK_SPEC).cloned().unwrap_or_default();
            table.push(vec![
                String::new(),
                meta.name.clone(),
                task,
                shown.ready,
                shown.status,
                shown.restarts,
                age::since(now, meta.creation_timestamp),
                pod.spec.node_name.clone(),
            ]);
            names.push(meta.name.clone());
        }
        table.print(out)?;
    }
    Ok(names)
}
