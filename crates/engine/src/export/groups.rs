//! PodGroups.

use super::{amounts, created};
use crate::model::Model;
use crate::model::delta::Delta;
use crate::model::job::{Group, Job, Phase, SubGroupPolicy};
use volcano_api::meta::Resource as _;
use volcano_api::names::annotations;
use volcano_api::scheduling::{self, PodGroup, PodGroupPhase};
use volcano_api::time::GoDuration;

/// With the status that the cycles have found.
pub(super) fn objects(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    m.jobs_by_name().into_iter().filter_map(move |id| {
        let job = m.job(id);
        let group = job.group.as_ref()?;
        Some(Delta::PodGroup(Box::new(pod_group(m, job, group))))
    })
}

fn pod_group(m: &Model, job: &Job, group: &Group) -> PodGroup {
    let mut object = PodGroup::named(m.text(job.namespace), m.text(job.name));
    let text = |sym| m.text(sym).to_owned();
    object.metadata.uid = group.uid.to_string();
    object.metadata.creation_timestamp = created(group.created);
    object.metadata.annotations = said(group);
    let spec = &mut object.spec;
    spec.min_member = group.min_member;
    spec.min_task_member = job
        .roles
        .iter()
        .filter(|role| role.minimum != 0)
        .map(|role| (text(role.name), role.minimum))
        .collect();
    spec.queue = text(m.queue(job.queue).name);
    spec.priority_class_name = group.priority_class.map(text).unwrap_or_default();
    spec.min_resources = group
        .min_resources
        .as_ref()
        .map(|minimum| amounts(&m.dims, minimum));
    spec.network_topology = group.network_topology.clone();
    spec.sub_group_policy = group
        .sub_groups
        .iter()
        .map(|policy| sub_group_policy(m, policy))
        .collect();
    let status = &mut object.status;
    status.phase = match group.phase {
        Phase::Pending if group.phase_written.is_none() => PodGroupPhase::Unset,
        Phase::Pending => PodGroupPhase::Pending,
        Phase::Inqueue => PodGroupPhase::Inqueue,
        Phase::Running => PodGroupPhase::Running,
        Phase::Unknown => PodGroupPhase::Unknown,
        Phase::Completed => PodGroupPhase::Completed,
    };
    status.conditions = group.conditions.clone();
    let [running, succeeded, failed] = group
        .counters
        .map(|count| i32::try_from(count).unwrap_or(i32::MAX));
    (status.running, status.succeeded, status.failed) = (running, succeeded, failed);
    object
}

/// What the group says in annotations.
fn said(group: &Group) -> std::collections::BTreeMap<String, String> {
    let waiting = group.sla_waiting_micros.map(|micros| {
        // A wait that is shorter than a microsecond is one all the same.
        let nanos = micros.saturating_mul(1000).max(1);
        (
            annotations::SLA_WAITING_TIME,
            GoDuration::from_nanos(nanos).to_string(),
        )
    });
    let preemptable = group
        .preemptable
        .then(|| (annotations::PREEMPTABLE, "true".to_owned()));
    let said = waiting.into_iter().chain(preemptable);
    said.map(|(key, value)| (key.to_owned(), value)).collect()
}

fn sub_group_policy(m: &Model, policy: &SubGroupPolicy) -> scheduling::SubGroupPolicy {
    scheduling::SubGroupPolicy {
        name: policy.name.to_string(),
        network_topology: policy.network_topology.clone(),
        sub_group_size: Some(policy.size),
        min_sub_groups: Some(policy.min_sub_groups),
        label_selector: policy.selector.clone(),
        match_label_keys: policy
            .match_label_keys
            .iter()
            .map(|&key| m.text(key).to_owned())
            .collect(),
        ..scheduling::SubGroupPolicy::default()
    }
}
