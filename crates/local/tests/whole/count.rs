//! How many Jobs the tests take through the system. Each compares its number with what it submitted, so the sum is what ran.

/// Without policies: sizes, failing tasks, minAvailable of Job and tasks, and minSuccess, each with each.
pub const ENDS: usize = 192;
/// One that is looked at in every phase.
pub const PHASES: usize = 1;
/// Policies of Job and task with every action, for each of [`EVENTS`].
pub const ACTIONS: usize = 14;
/// What makes policies act.
pub const EVENTS: usize = 8;
/// Policies with timeouts, and several of them.
pub const LEVELS: usize = 6;
/// Suspended, resumed, restarted, terminated and completed by Commands.
pub const ORDERS: usize = 10;
/// One for each plugin.
pub const PLUGINS: usize = 8;
/// Tasks that depend on others.
pub const DEPENDING: usize = 3;
/// Scaled up and down.
pub const SCALED: usize = 4;
/// Retries, minSuccess, the time to live, claims, deletion.
pub const FINISHED: usize = 12;
/// Two queues with these share by weight, for each of [`WEIGHTS`].
pub const SHARING: usize = 24;
/// Pairs of weights.
pub const WEIGHTS: usize = 3;
/// A queue takes its share back from one that is reclaimable, and not from one that is not.
pub const RECLAIMING: usize = 13;
/// One of more priority takes the place of another.
pub const PREEMPTING: usize = 2;
/// Of those that wait, the one of more priority goes first.
pub const WAITING: usize = 3;
/// Gangs that wait for room, that never fit, and elastic ones.
pub const GANGS: usize = 4;
/// Best effort beside a Job that fills the nodes.
pub const BEST_EFFORT: usize = 2;
/// In a queue with a capability.
pub const CAPPED: usize = 2;
/// In queues that are closed and opened.
pub const CLOSED: usize = 3;
/// With claims of all kinds.
pub const CLAIMING: usize = 7;
/// Pods of PodGroups and workloads of others are of no Job.
pub const NONE: usize = 0;

#[test]
fn at_least_300_jobs_of_every_kind_run() {
    let many = ENDS + EVENTS * ACTIONS + WEIGHTS * SHARING + 2 * RECLAIMING;
    let jobs = PHASES + LEVELS + ORDERS + PLUGINS + DEPENDING + SCALED + FINISHED;
    let queues = PREEMPTING + WAITING + GANGS + BEST_EFFORT + CAPPED + CLOSED + CLAIMING;
    let all = many + jobs + queues;
    assert!(all >= 300, "{all}");
}
