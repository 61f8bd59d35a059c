//! `/cronjobs/validate`: schedule, time zone and name of a CronJob, and the durations in its template. What else is in
//! that is judged when a Job is made of it.

use volcano_api::batch::{CronJob, CronJobSpec};
use volcano_api::names::admission::messages;

use crate::field::quote;
use crate::jobs::durations;
use crate::review::{Context, Operation, Request, Verdict, verdict};
use crate::{Lookups, cron, syntax};

/// The longest name: its Jobs get eleven characters more.
const MAX_NAME: usize = 52;
/// The longest part of the name of a time zone.
const MAX_ZONE_PART: usize = 14;

/// Judges a new CronJob, or a change to one.
pub(crate) fn validate(context: &Context<'_>, request: &Request) -> Verdict {
    if !matches!(request.operation(), Operation::Create | Operation::Update) {
        return Err(messages::EXPECT_CREATE_OR_UPDATE.into());
    }
    let job: CronJob = request.object()?;
    durations::check(request, &job, |job| {
        durations::faults(&job.spec.job_template.spec, "object.spec.jobTemplate.spec")
    })?;
    let faults = [
        schedule_fault(context.cluster, &job.spec),
        name_fault(&job.metadata.name),
    ];
    let faults: Vec<String> = faults.into_iter().filter(|fault| !fault.is_empty()).collect();
    let text = faults.join("; ");
    // Some messages begin with a blank, which Volcano takes away when a CronJob is made, and only then.
    match request.operation() {
        Operation::Create => verdict(text.trim()),
        _ => verdict(&text),
    }
}

fn schedule_fault(cluster: &dyn Lookups, spec: &CronJobSpec) -> String {
    let schedule = spec.schedule.as_str();
    let mut text = String::new();
    if schedule.is_empty() {
        text.push_str(messages::SCHEDULE_REQUIRED);
    } else if schedule.contains("TZ") {
        text.push_str(messages::SCHEDULE_TIME_ZONE);
    } else if !cron::is_schedule(schedule) {
        text.push_str(messages::SCHEDULE_INVALID);
    }
    if let Some(zone) = &spec.time_zone {
        text.push_str(&zone_fault(cluster, zone));
    }
    text
}

/// All that is wrong with a time zone, in a row: each part that cannot be one, and that the whole is none.
fn zone_fault(cluster: &dyn Lookups, zone: &str) -> String {
    if zone.is_empty() {
        return messages::TIME_ZONE_EMPTY.to_owned();
    }
    let unknown = zone.split('/').filter(|part| !is_zone_part(part)).count();
    let mut text = messages::TIME_ZONE_UNKNOWN.repeat(unknown);
    if zone.eq_ignore_ascii_case("Local") {
        text.push_str(messages::TIME_ZONE_LOCAL);
    } else if unknown > 0 || !cluster.has_time_zone(zone) {
        // Nobody looks for a zone by a name that may lead elsewhere: there is none.
        text.push_str(messages::TIME_ZONE_INVALID);
    }
    text
}

/// Whether a text can be a part of the name of a time zone. Parts are names of files, so they must not lead elsewhere.
fn is_zone_part(part: &str) -> bool {
    let known = |b: u8| b.is_ascii_alphanumeric() || b".-_+".contains(&b);
    (1..=MAX_ZONE_PART).contains(&part.len())
        && part.bytes().all(known)
        && ![".", ".."].contains(&part)
        && !part.starts_with('-')
}

fn name_fault(name: &str) -> String {
    if name.len() > MAX_NAME {
        return messages::CRON_JOB_NAME_LENGTH.to_owned();
    }
    let faults = syntax::qualified_name(name);
    if faults.is_empty() {
        return String::new();
    }
    format!("invalid cronJob name {}: {}", quote(name), faults.join("; "))
}
