//! Which tasks may have pods yet: those whose dependencies are ready.

use volcano_api::batch::{Iteration, JobSpec, TaskSpec};
use volcano_api::core::PodPhase;

use super::pods::{Doom, Member, Members, task_key};

/// Whether the tasks that a task depends on are ready: all of them, or one of several if any will do.
pub fn is_ready(spec: &JobSpec, task: &TaskSpec, members: &Members<'_>, doom: &Doom<'_>) -> bool {
    let Some(depends_on) = &task.depends_on else {
        return true;
    };
    let mut ready = depends_on
        .name
        .iter()
        .map(|name| is_task_ready(spec, name, members, doom));
    if depends_on.iteration == Iteration::Any && depends_on.name.len() > 1 {
        ready.any(|ready| ready)
    } else {
        ready.all(|ready| ready)
    }
}

/// Whether a task has as many pods that succeeded, or run and serve, as it needs. One without a minimum is always
/// ready, and so is one that is not there.
fn is_task_ready(spec: &JobSpec, name: &str, members: &Members<'_>, doom: &Doom<'_>) -> bool {
    let task = spec.tasks.iter().position(|task| task_key(task) == name);
    let Some((at, needed)) = task.and_then(|at| Some((at, spec.tasks[at].min_available?))) else {
        return true;
    };
    let serves = |member: &Member<'_>| match member.phase() {
        PodPhase::Succeeded => true,
        PodPhase::Running => member
            .pod
            .status
            .container_statuses
            .iter()
            .all(|status| status.ready),
        _ => false,
    };
    let of_task = members.iter().filter(|member| member.task == Some(at));
    let staying = of_task.filter(|member| !member.is_leaving() && !doom.takes(member));
    staying.filter(|member| serves(member)).count() >= usize::try_from(needed).unwrap_or(0)
}
