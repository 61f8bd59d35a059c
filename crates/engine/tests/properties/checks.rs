//! What holds after every cycle, computed from the cluster that went in and the decisions that came out: never from
//! the engine's own sums.

use super::cluster::{Amounts, Cluster, State};
use std::collections::BTreeMap;
use volcano_engine::effect::Nomination;
use volcano_engine::model::Model;
use volcano_engine::plugin::EvictionKind;
use volcano_engine::{Cycle, Effect};

/// The decisions of a cycle by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Binds of one effect each: job, pods with their nodes.
    pub binds: Vec<(String, Vec<(String, String)>)>,
    /// Victim, preempted (else reclaimed), preemptor.
    pub evictions: Vec<(String, bool, String)>,
    /// Pods and the nodes that they wait for, in order.
    pub pipelined: Vec<(String, String)>,
    /// Everything else that is written.
    pub writes: Vec<String>,
    /// Events.
    pub events: Vec<String>,
}

impl Decisions {
    /// Reads the decisions of a cycle.
    pub fn read(m: &Model, cycle: &Cycle) -> Self {
        let pod = |task| m.task(task).name.to_string();
        let node = |node| m.text(m.nodes[node].name).to_owned();
        let job = |job| m.text(m.job(job).name).to_owned();
        let mut decisions = Decisions::default();
        for effect in &cycle.effects {
            match effect {
                Effect::Bind { job: of, binds } => {
                    let list = binds.iter().map(|&(task, at)| (pod(task), node(at))).collect();
                    decisions.binds.push((job(*of), list));
                }
                Effect::Evict {
                    task,
                    kind,
                    preemptor,
                } => {
                    decisions
                        .evictions
                        .push((pod(*task), *kind == EvictionKind::Preempt, pod(*preemptor)));
                }
                Effect::GroupStatus {
                    job: of,
                    phase,
                    conditions,
                    counters,
                } => {
                    decisions
                        .writes
                        .push(format!("{}: {phase:?} {counters:?} {conditions:?}", job(*of)));
                }
                Effect::PodCondition {
                    task,
                    reason,
                    message,
                    nominated,
                } => {
                    let nominated = match nominated {
                        Nomination::Set(at) => node(*at),
                        other => format!("{other:?}"),
                    };
                    decisions
                        .writes
                        .push(format!("{}: {reason} {message} {nominated}", pod(*task)));
                }
                Effect::QueueStatus {
                    queue,
                    allocated,
                    removed,
                } => {
                    let name = m.text(m.queue(*queue).name);
                    let amounts = m.dims.quantities(allocated);
                    decisions.writes.push(format!("{name}: {amounts:?} {removed:?}"));
                }
                Effect::OpenGate { task } => decisions.writes.push(format!("{}: open", pod(*task))),
                Effect::ShardStatus(status) => decisions.writes.push(format!("{status:?}")),
                Effect::GroupEvent {
                    job: of,
                    reason,
                    message,
                    ..
                } => {
                    decisions.events.push(format!("{}: {reason} {message}", job(*of)));
                }
            }
        }
        decisions.pipelined = cycle
            .pipelined
            .iter()
            .map(|&(task, at)| (pod(task), node(at)))
            .collect();
        decisions
    }

    /// The same decisions in an order that does not depend on the order of the effects.
    pub fn sorted(mut self) -> Self {
        let mut by_job: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for (job, list) in self.binds {
            by_job.entry(job).or_default().extend(list);
        }
        self.binds = by_job.into_iter().collect();
        self.binds.iter_mut().for_each(|(_, list)| list.sort());
        self.evictions.sort();
        self.pipelined.sort();
        self.writes.sort();
        self.events.sort();
        self
    }

    fn bound(&self) -> impl Iterator<Item = &(String, String)> {
        self.binds.iter().flat_map(|(_, list)| list)
    }
}

fn node_index(name: &str) -> usize {
    name[1..].parse().expect("the name of a node")
}

fn add(sum: &mut Amounts, part: &Amounts, sign: i64) {
    (0..4).for_each(|d| sum[d] += sign * part[d]);
}

/// No node holds more than it offers: neither with those that leave, nor once they have left and others have come.
pub fn nodes_keep_their_limits(cluster: &Cluster, decisions: &Decisions) -> Result<(), String> {
    let mut now: Vec<Amounts> = vec![[0; 4]; cluster.nodes.len()];
    let mut later = now.clone();
    for pod in cluster.jobs.iter().flat_map(|job| &job.pods) {
        if matches!(pod.state, State::Running | State::Bound | State::Deleting) {
            add(&mut now[pod.node], &pod.request, 1);
            add(
                &mut later[pod.node],
                &pod.request,
                i64::from(pod.state != State::Deleting),
            );
        }
    }
    for (pod, node) in decisions.bound() {
        add(&mut now[node_index(node)], &cluster.pod(pod).request, 1);
        add(&mut later[node_index(node)], &cluster.pod(pod).request, 1);
    }
    for (victim, _, _) in &decisions.evictions {
        let pod = cluster.pod(victim);
        if matches!(pod.state, State::Running | State::Bound) {
            add(&mut later[pod.node], &pod.request, -1);
        }
    }
    for (pod, node) in &decisions.pipelined {
        add(&mut later[node_index(node)], &cluster.pod(pod).request, 1);
    }
    for (at, node) in cluster.nodes.iter().enumerate() {
        for (when, used) in [("now", &now[at]), ("later", &later[at])] {
            if (0..4).any(|d| used[d] > node.offers[d]) {
                return Err(format!(
                    "n{at} offers {:?} and holds {used:?} {when}",
                    node.offers
                ));
            }
        }
    }
    Ok(())
}

/// Pods go where their selectors, taints and ports allow.
pub fn pods_go_where_they_may(cluster: &Cluster, decisions: &Decisions) -> Result<(), String> {
    let mut ports: Vec<usize> = vec![0; cluster.nodes.len()];
    for pod in cluster
        .jobs
        .iter()
        .flat_map(|job| &job.pods)
        .filter(|pod| pod.port)
    {
        if matches!(pod.state, State::Running | State::Bound | State::Deleting) {
            ports[pod.node] += 1;
        }
    }
    for (name, at) in decisions.bound().chain(&decisions.pipelined) {
        let (pod, node) = (cluster.pod(name), &cluster.nodes[node_index(at)]);
        if pod.state != State::Pending {
            return Err(format!("{name} is {:?} and was placed", pod.state));
        }
        let allowed = pod.zone.is_none_or(|zone| zone == node.zone)
            && (pod.tolerates || (node.taint != 1 && !node.cordoned));
        if !allowed {
            return Err(format!("{name} may not go to {at}"));
        }
    }
    for (name, at) in decisions.bound().filter(|(name, _)| cluster.pod(name).port) {
        ports[node_index(at)] += 1;
        if ports[node_index(at)] > 1 {
            return Err(format!("the host port of {name} is taken on {at}"));
        }
    }
    Ok(())
}

/// A queue that was given something is within its capability, and so is every queue above it.
pub fn queues_keep_their_limits(cluster: &Cluster, decisions: &Decisions) -> Result<(), String> {
    let mut used: Vec<Amounts> = vec![[0; 4]; cluster.queues.len()];
    let mut given = used.clone();
    let charge = |of: &mut Vec<Amounts>, queue: usize, request: &Amounts| {
        let mut at = Some(queue);
        while let Some(queue) = at {
            add(&mut of[queue], request, 1);
            at = cluster.queues[queue].parent;
        }
    };
    for job in &cluster.jobs {
        for pod in job
            .pods
            .iter()
            .filter(|pod| matches!(pod.state, State::Running | State::Bound))
        {
            charge(&mut used, job.queue, &pod.request);
        }
    }
    for (name, _) in decisions.bound() {
        let (job, pod) = cluster.find(name);
        let (queue, request) = (cluster.jobs[job].queue, &cluster.jobs[job].pods[pod].request);
        if cluster.queues[queue].closed {
            return Err(format!("{name} was placed in a closed queue"));
        }
        charge(&mut used, queue, request);
        charge(&mut given, queue, request);
    }
    // Victims are only taken out where they leave room that was given away at once: binds never use it.
    for (at, queue) in cluster.queues.iter().enumerate() {
        let Some((cpu, memory)) = queue.capability else {
            continue;
        };
        for (d, limit) in [(0, cpu * 1000), (1, memory * 1024)] {
            if given[at][d] > 0 && used[at][d] > limit {
                return Err(format!(
                    "q{at} may use {limit} and uses {} of dimension {d}",
                    used[at][d]
                ));
            }
        }
    }
    Ok(())
}

/// After each effect that binds pods of a job, the job has its minimum, and each role its own.
pub fn gangs_are_whole(cluster: &Cluster, decisions: &Decisions) -> Result<(), String> {
    let is_ready = |state: State| matches!(state, State::Running | State::Bound | State::Succeeded);
    let best_effort = |request: &Amounts| request[..3] == [0; 3];
    let mut bound: Vec<&str> = Vec::new();
    for (name, list) in &decisions.binds {
        let at: usize = name[1..].parse().expect("the name of a job");
        let job = &cluster.jobs[at];
        bound.extend(list.iter().map(|(pod, _)| pod.as_str()));
        let has_place = |of: usize| {
            let pod = &job.pods[of];
            let waits = matches!(pod.state, State::Pending | State::Gated) && best_effort(&pod.request);
            is_ready(pod.state) || waits || bound.contains(&Cluster::pod_name(at, of).as_str())
        };
        let ready = (0..job.pods.len()).filter(|&of| has_place(of)).count();
        if ready < job.min {
            return Err(format!("{name} has {ready} of {} members", job.min));
        }
        if job.min >= job.roles.iter().sum() {
            for (role, &minimum) in job.roles.iter().enumerate() {
                let of_role = |of: &usize| job.pods[*of].role == Some(role) && has_place(*of);
                let ready = (0..job.pods.len()).filter(of_role).count();
                if ready < minimum {
                    return Err(format!("{name} has {ready} of {minimum} members of role r{role}"));
                }
            }
        }
    }
    Ok(())
}

/// Every eviction is for a pod that gets the victim's node, and without any one of them that pod would have no room.
pub fn evictions_are_needed(cluster: &Cluster, decisions: &Decisions) -> Result<(), String> {
    for (victim, _, preemptor) in &decisions.evictions {
        let (from, pod) = (format!("n{}", cluster.pod(victim).node), cluster.pod(victim));
        if !decisions
            .pipelined
            .iter()
            .any(|(name, node)| name == preemptor && *node == from)
        {
            return Err(format!(
                "{victim} leaves {from} for {preemptor}, which does not come"
            ));
        }
        if !pod.preemptable || !matches!(pod.state, State::Running | State::Bound) {
            return Err(format!("{victim} is not to be evicted"));
        }
    }
    // What will be free, in the order of the decisions: binds first, since they never use what is being left.
    let mut free: Vec<Amounts> = cluster.nodes.iter().map(|node| node.offers).collect();
    let mut ports: Vec<i64> = vec![0; cluster.nodes.len()];
    for pod in cluster.jobs.iter().flat_map(|job| &job.pods) {
        if matches!(pod.state, State::Running | State::Bound) {
            add(&mut free[pod.node], &pod.request, -1);
        }
        if matches!(pod.state, State::Running | State::Bound | State::Deleting) {
            ports[pod.node] += i64::from(pod.port);
        }
    }
    let late = |name: &str| cluster.pod(name).request[..3] == [0; 3];
    for (pod, node) in decisions.bound().filter(|(name, _)| !late(name)) {
        add(&mut free[node_index(node)], &cluster.pod(pod).request, -1);
        ports[node_index(node)] += i64::from(cluster.pod(pod).port);
    }
    for (name, node) in &decisions.pipelined {
        let (at, pod) = (node_index(node), cluster.pod(name));
        let victims: Vec<_> = decisions
            .evictions
            .iter()
            .filter(|(_, _, preemptor)| preemptor == name)
            .collect();
        for (victim, _, _) in &victims {
            add(&mut free[at], &cluster.pod(victim).request, 1);
            ports[at] -= i64::from(cluster.pod(victim).port);
        }
        for (victim, preempted, _) in &victims {
            let back = cluster.pod(victim);
            let short = (0..4).any(|d| pod.request[d] > 0 && pod.request[d] > free[at][d] - back.request[d]);
            let blocked = pod.port && back.port;
            let bounded = *preempted && cluster.conf().bounds_preemption;
            if !short && !blocked && !bounded {
                return Err(format!(
                    "{victim} leaves {node} for {name}, which has room without that"
                ));
            }
        }
        add(&mut free[at], &pod.request, -1);
        ports[at] += i64::from(pod.port);
    }
    Ok(())
}
