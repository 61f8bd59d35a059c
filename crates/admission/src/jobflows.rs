//! `/jobflows/validate`: the flows of a JobFlow form a graph without cycles, and their patches have durations that are.

use volcano_api::flow::JobFlow;
use volcano_api::names::admission::messages;

use crate::Patch;
use crate::dag::{self, Fault};
use crate::jobs::durations;
use crate::review::{Context, Operation, Request, Verdict};

/// Judges a new JobFlow, or a change to one.
pub(crate) fn validate(_: &Context<'_>, request: &Request) -> Verdict {
    if !matches!(request.operation(), Operation::Create | Operation::Update) {
        return Err(messages::EXPECT_CREATE_OR_UPDATE.into());
    }
    let flow: JobFlow = request.object()?;
    durations::check(request, &flow, duration_faults)?;
    let nodes: Vec<(&str, &[String])> = flow
        .spec
        .flows
        .iter()
        .map(|flow| {
            let targets = flow.depends_on.as_ref().map_or(&[][..], |on| &on.targets);
            (flow.name.as_str(), targets)
        })
        .collect();
    match dag::fault(&nodes) {
        None => Ok(Patch::default()),
        Some(Fault::Cycle) => Err(messages::FLOW_NOT_DAG.into()),
        Some(Fault::Unknown(target)) => {
            Err(format!("{}: vertex is not defined: {target}", messages::FLOW_NOT_DAG).into())
        }
    }
}

/// The durations that are none in what flows change of their templates.
fn duration_faults(flow: &JobFlow) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, flow) in flow.spec.flows.iter().enumerate() {
        if let Some(patch) = &flow.patch {
            let at = format!("object.spec.flows[{index}].patch.jobSpec");
            faults.extend(durations::faults(&patch.job_spec, &at));
        }
    }
    faults
}
