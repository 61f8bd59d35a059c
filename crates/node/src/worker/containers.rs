//! Starting and ending the containers of a pod.

use super::{News, Slot, Worker, later, retry_wait};
use crate::lifecycle::{Live, State, Told};
use crate::probes;
use crate::process::{End, Orders, Process};
use crate::room::StartProblem;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use std::time::Duration;

/// A hook after the start may take this long.
const HOOK_LIMIT: Duration = Duration::from_secs(60 * 60);

impl Worker {
    pub(super) fn container(&self, index: usize) -> Option<Container> {
        let name = &self.state.containers.get(index)?.name;
        crate::fields::container_named(&self.pod, name).cloned()
    }

    pub(super) async fn start(&mut self, index: usize) {
        let (Some(container), Some(room)) = (self.container(index), &self.room) else {
            return;
        };
        self.runs += 1;
        let run = self.runs;
        let restarts = match &self.state.containers[index] {
            live if matches!(live.state, State::Ended(_)) => live.restarts + 1,
            live => live.restarts,
        };
        let started = async {
            let (outer, spec) = room.spec(&self.context, &self.pod, &container, run).await?;
            let log = self.context.logs.begin(&self.uid, &container.name, restarts);
            let log = log.map_err(|error| StartProblem::Start(format!("log: {error}")))?;
            let own = self.own.clone();
            let ended = move |end| drop(own.send(News::Ended { index, run, end }));
            let process = Process::start(&self.context.program, &outer, &spec, log, ended).await;
            process.map_err(StartProblem::Start)
        };
        let started = started.await;
        let now = Timestamp::now();
        match started {
            Ok(process) => self.has_started(index, run, &container, process, now),
            Err(StartProblem::Config(message)) => {
                self.event(true, "Failed", format!("Error: {message}"));
                self.failures = self.failures.saturating_add(1);
                let until = later(now, retry_wait(self.failures));
                self.state.containers[index].hold("CreateContainerConfigError", message, until);
            }
            Err(StartProblem::Start(message)) => {
                self.event(
                    true,
                    "Failed",
                    format!("Error: failed to start container {:?}: {message}", container.name),
                );
                self.slots[index] = Slot { run, process: None };
                self.take_end(index, run, End::Refused { message });
            }
        }
    }

    fn has_started(
        &mut self,
        index: usize,
        run: u64,
        container: &Container,
        process: Process,
        now: Timestamp,
    ) {
        let name = &container.name;
        self.event(false, "Created", format!("Created container: {name}"));
        self.event(false, "Started", format!("Started container {name}"));
        let id = format!("volcano://{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        self.state.containers[index].run(id, now);
        self.failures = 0;
        let orders = process.orders();
        self.slots[index] = Slot {
            run,
            process: Some(process),
        };
        let hook = container
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.post_start.clone());
        if let Some(hook) = hook {
            self.run_hook(hook, index, run, false, HOOK_LIMIT);
        }
        let address = self
            .room
            .as_ref()
            .map(|room| room.address().to_owned())
            .unwrap_or_default();
        let (own, container) = (self.own.clone(), container.clone());
        let has_probes = container.startup_probe.is_some()
            || container.liveness_probe.is_some()
            || container.readiness_probe.is_some();
        if !has_probes {
            let live = &mut self.state.containers[index];
            (live.started, live.ready) = (true, true);
            return;
        }
        tokio::spawn(async move {
            let tell = |verdict| drop(own.send(News::Probed { index, run, verdict }));
            probes::watch(&container, &address, orders, tell).await;
        });
    }

    fn run_hook(&self, hook: LifecycleHandler, index: usize, run: u64, before_stop: bool, limit: Duration) {
        let Some(process) = &self.slots[index].process else {
            return;
        };
        let (orders, own) = (process.orders(), self.own.clone());
        tokio::spawn(async move {
            let passed = match (hook.exec.and_then(|action| action.command), hook.sleep) {
                (Some(command), _) => Orders::run(orders, command, limit).await == Some(0),
                (None, Some(sleep)) => {
                    let seconds = u64::try_from(sleep.seconds).unwrap_or_default();
                    tokio::time::sleep(Duration::from_secs(seconds).min(limit)).await;
                    true
                }
                // What cannot be done has been told in an event.
                (None, None) => true,
            };
            let _ = own.send(News::Hooked {
                index,
                run,
                before_stop,
                passed,
            });
        });
    }

    pub(super) fn terminate(&mut self, index: usize, now: Timestamp) {
        let until = self.state.killed_at(index, self.own_grace(), now);
        let Live { name, told, .. } = &mut self.state.containers[index];
        *told = Some(Told { until, killed: false });
        let message = format!("Stopping container {name}");
        if !self.is_stopping {
            self.event(false, "Killing", message);
        }
        let hook = self
            .container(index)
            .and_then(|container| container.lifecycle?.pre_stop);
        match hook {
            Some(hook) if until > now && !self.is_stopping => {
                let limit = Duration::try_from(until.duration_since(now)).unwrap_or_default();
                self.run_hook(hook, index, self.slots[index].run, true, limit);
            }
            _ => self.signal(index),
        }
    }

    pub(super) fn signal(&self, index: usize) {
        if let Some(process) = &self.slots[index].process {
            process.signal(nix::libc::SIGTERM);
        }
    }

    /// Ends a container with everything that it started. Its end comes as news.
    pub(super) fn kill(&mut self, index: usize) {
        self.slots[index].process = None;
        if let Some(told) = &mut self.state.containers[index].told {
            told.killed = true;
        }
    }
}
