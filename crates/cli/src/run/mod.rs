//! `volcano run`: manifests are created in a cluster, and their Jobs and pods followed to their end.
//!
//! ```text
//! files ─> manifests ─> place ─> rehearse ─> create ─> follow ─┬─> progress   (standard error)
//!                       (kinds)  (dry run)                     ├─> logs       (standard output)
//!                                                              └─> summary, exit code
//! ```
//!
//! Definitions of kinds are created before anything else is placed: others may be of these kinds.
//!
//! It is the same for a cluster that somebody has and for one that lives only as long as the command: who calls decides.

mod cluster;
mod follow;
mod manifests;
mod output;
mod record;
mod summary;

pub use manifests::{Manifest, Manifests};

use crate::api::Api;
use crate::commands::job::logs::write_line;
use crate::commands::job::progress::{Board, Progress};
use crate::commands::job::wait::End;
use crate::commands::pod::status::PodItem;
use crate::failure::Failure;
use crate::output::{Out, tell};
use crate::planning::{self, SchedulerArgs};
use cluster::Placed;
use follow::Update;
use output::{News, Output};
use record::Record;
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use volcano_plan::explain::State;
use volcano_plan::{Explanation, JobKey, explain};
use volcano_runtime::client::Client;

/// How often lines of progress change at the most: a Job may have thousands of pods.
const SHOW: Duration = Duration::from_millis(200);
/// How long logs may take to come to their end after everything is over.
const LAST_LINES: Duration = Duration::from_secs(5);

/// How manifests are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of objects that name none.
    pub namespace: String,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long something may wait before it is said why.
    pub patience: Duration,
    /// Whether the cluster is there for this alone: namespaces are made as they are needed, and what waits while nothing
    /// runs waits for ever.
    pub is_own: bool,
    /// Whether pods have logs.
    pub has_logs: bool,
    /// A file with the scheduler's configuration; empty for that of the installation.
    pub scheduler_conf: OsString,
}

/// Waits until Jobs are taken that name no queue, in a system that has just started: its controllers open the queue.
pub async fn wait_ready(client: Client) {
    cluster::wait_ready(&Api::from(client)).await;
}

/// Why manifests were not run to their end.
#[derive(Debug)]
pub enum Stop {
    /// The cluster would not take them: nothing was created, but for definitions of kinds.
    Refused(Failure),
    /// Something failed.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

/// Creates everything and follows what runs. The exit code.
///
/// # Errors
/// When the cluster does not take the manifests, or does not answer; and when `interrupted` comes first.
pub async fn run(
    client: Client,
    manifests: Vec<Manifest>,
    settings: &Settings,
    interrupted: impl Future<Output = ()>,
) -> Result<u8, Stop> {
    let api = Api::from(client);
    tokio::pin!(interrupted);
    let records = tokio::select! {
        records = submit(&api, manifests, settings) => records?,
        () = &mut interrupted => return Err(Failure::Interrupted.into()),
    };
    let mut show = Show::new(&api, records, settings);
    let outcome = tokio::select! {
        outcome = show.follow() => outcome,
        () = &mut interrupted => Err(Failure::Interrupted),
    };
    show.end();
    match outcome {
        Ok(()) => {
            summary::print(&show.records, settings, &mut show.out)?;
            Ok(summary::exit_code(&show.records))
        }
        Err(failure) => {
            if !settings.is_own {
                let left = show.records.iter().filter(|record| record.end.is_none());
                left.for_each(|record| tell(&format!("{record} goes on without being waited for\n")));
            }
            Err(failure.into())
        }
    }
}

/// Creates everything. What runs of it.
async fn submit(api: &Api, mut manifests: Vec<Manifest>, settings: &Settings) -> Result<Vec<Record>, Stop> {
    if settings.is_own {
        manifests.splice(0..0, namespaces(&manifests, settings));
    }
    let (definitions, others): (Vec<_>, Vec<_>) = manifests.into_iter().partition(Manifest::is_definition);
    let defined = define(api, definitions, settings).await?;
    let placed = match prepare(api, others, settings).await {
        Err(Stop::Refused(failure)) => {
            if !settings.is_own {
                let left = defined.iter().map(|one| &one.manifest);
                left.for_each(|manifest| tell(&format!("{manifest} is in the cluster and stays there\n")));
            }
            return Err(Stop::Refused(failure));
        }
        placed => placed?,
    };
    let mut records = Vec::new();
    for one in &placed {
        let stored = cluster::create(api, one).await?;
        if one.manifest.is_job() || one.manifest.is_pod() {
            records.push(Record::new(one.manifest.is_job(), stored));
        }
    }
    Ok(records)
}

/// Creates definitions of kinds, and waits until objects of these kinds can be placed.
async fn define(api: &Api, definitions: Vec<Manifest>, settings: &Settings) -> Result<Vec<Placed>, Stop> {
    let placed = prepare(api, definitions, settings).await?;
    for one in &placed {
        cluster::create(api, one).await?;
    }
    for one in &placed {
        cluster::wait_served(api, one).await?;
    }
    Ok(placed)
}

/// Finds the places of manifests, and whether the cluster would take them.
async fn prepare(api: &Api, manifests: Vec<Manifest>, settings: &Settings) -> Result<Vec<Placed>, Stop> {
    let placed = cluster::place(api, manifests, &settings.namespace).await?;
    cluster::rehearse(api, &placed).await?;
    Ok(placed)
}

/// Namespaces that are named and that no manifest makes.
fn namespaces(manifests: &[Manifest], settings: &Settings) -> Vec<Manifest> {
    let made: BTreeSet<_> = manifests
        .iter()
        .filter(|manifest| manifest.kind() == "Namespace")
        .map(Manifest::name)
        .collect();
    let named = manifests
        .iter()
        .map(|manifest| manifest.text("/metadata/namespace"));
    let all: BTreeSet<_> = named.chain([settings.namespace.as_str()]).collect();
    let missing = all
        .into_iter()
        .filter(|name| !name.is_empty() && !made.contains(name));
    missing
        .map(|name| Manifest {
            origin: "--namespace".to_owned(),
            object: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        })
        .collect()
}

/// What goes on, and what is shown of it.
struct Show<'a> {
    api: &'a Api,
    settings: &'a Settings,
    records: Vec<Record>,
    lines: Vec<Progress>,
    board: Board,
    out: Out,
    /// Whether lines of logs have the name of their pod.
    has_prefix: bool,
    /// Logs that are followed.
    logs: Output,
    /// When something was last seen to run.
    alive_at: Option<Instant>,
    /// Jobs and groups of which it was told why they wait.
    explained: BTreeSet<(String, String)>,
    tasks: JoinSet<()>,
    began: Instant,
}

impl<'a> Show<'a> {
    fn new(api: &'a Api, records: Vec<Record>, settings: &'a Settings) -> Self {
        let board = Board::new();
        Show {
            api,
            settings,
            lines: records.iter().map(|_| board.line()).collect(),
            has_prefix: records.iter().map(|record| record.logged_pods).sum::<u64>() > 1,
            records,
            board,
            out: Out::standard(),
            logs: Output::new(),
            alive_at: None,
            explained: BTreeSet::new(),
            tasks: JoinSet::new(),
            began: Instant::now(),
        }
    }

    /// Until everything is over.
    async fn follow(&mut self) -> Result<(), Failure> {
        let (sender, mut updates) = mpsc::channel(1000);
        for (at, record) in self.records.iter().enumerate() {
            self.tasks.spawn(follow::follow(
                self.api.clone(),
                at,
                record.target(),
                sender.clone(),
            ));
        }
        let mut tick = tokio::time::interval(SHOW);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut over_since = None;
        loop {
            tokio::select! {
                Some(update) = updates.recv() => self.take(update)?,
                Some(news) = self.logs.next() => self.print(news)?,
                _ = tick.tick() => {
                    self.show();
                    self.look_at_time().await;
                }
            }
            if self.records.iter().all(|record| record.end.is_some()) {
                let since = *over_since.get_or_insert_with(Instant::now);
                if !self.logs.is_open() || since.elapsed() > LAST_LINES {
                    self.show();
                    return Ok(());
                }
            }
        }
    }

    fn take(&mut self, update: Update) -> Result<(), Failure> {
        match update {
            Update::State {
                at,
                text,
                waits,
                is_live,
            } => self.records[at].set_state(text, waits, is_live),
            Update::Pod { at, pod } => {
                self.records[at].see(&pod);
                self.follow_log(at, *pod);
            }
            Update::End { at, end } => self.records[at].end_with(end),
            Update::Broken(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Follows the log of a pod, if it is one of those whose logs are shown.
    fn follow_log(&mut self, at: usize, pod: PodItem) {
        if self.settings.has_logs && self.records[at].logs(&pod) {
            self.logs.see(self.api, pod, &mut self.tasks);
        }
    }

    fn print(&mut self, news: News) -> Result<(), Failure> {
        let (pod, line) = match news {
            News::Line { pod, line } => (pod, line),
            News::End { uid, shown } => {
                self.logs.ended(self.api, &uid, shown, &mut self.tasks);
                return Ok(());
            }
        };
        let prefix = match self.has_prefix {
            true => format!("[{pod}] "),
            false => String::new(),
        };
        let (board, out) = (&self.board, &mut self.out);
        board.aside(|| {
            write_line(out, &prefix, &line)?;
            Ok(out.flush()?)
        })
    }

    fn show(&mut self) {
        for (record, line) in self.records.iter_mut().zip(&mut self.lines) {
            if std::mem::take(&mut record.is_news) {
                line.show(record.text.clone());
            }
            if record.end.is_some() {
                line.end();
            }
        }
    }

    /// What has taken too long.
    async fn look_at_time(&mut self) {
        if let Some(limit) = self
            .settings
            .timeout
            .filter(|limit| self.began.elapsed() >= *limit)
        {
            self.end_all(&End::TimedOut(limit));
            return;
        }
        let patience = self.settings.patience;
        let is_idle = self.is_idle();
        for at in 0..self.records.len() {
            let record = &self.records[at];
            // It is said once; in a system of its own where nothing runs it is also asked whether anything can still happen.
            if record.is_late(patience) && (is_idle || record.looked_at.is_none()) {
                self.look_at(at, is_idle).await;
            }
        }
        let mut left = self.records.iter().filter(|record| record.end.is_none());
        if left.all(|record| record.is_stuck) {
            self.end_all(&End::Stuck);
        }
    }

    /// Whether this system is there for these records alone, and nothing of them has run for a while: what ends makes room
    /// for others, which take a moment to start.
    fn is_idle(&mut self) -> bool {
        if self.records.iter().any(|record| record.is_live) {
            self.alive_at = Some(Instant::now());
            self.records.iter_mut().for_each(|record| record.is_stuck = false);
        }
        let is_quiet = |at: Instant| at.elapsed() >= self.settings.patience;
        self.settings.is_own && self.alive_at.is_none_or(is_quiet)
    }

    /// Finds out why something waits, and tells it. Pods of a group wait for the same reason, which is told once.
    async fn look_at(&mut self, at: usize, is_idle: bool) {
        let told = self.explanation(&self.records[at]).await;
        let record = &mut self.records[at];
        record.looked_at = Some(Instant::now());
        let (is_stuck, text) = match told {
            Ok(told) if told.state == State::Waiting => (true, told.to_string()),
            Ok(told) if told.state == State::Running && !told.reasons.is_empty() => (false, told.to_string()),
            // It is about to start.
            Ok(_) => {
                record.is_stuck = false;
                return;
            }
            // A pod that has no PodGroup is not Volcano's to explain.
            Err(failure) => match record.unplaced_because() {
                Some(why) => (true, format!("{record} waits: {why}")),
                None => (false, format!("{record} waits; why cannot be said: {failure}")),
            },
        };
        record.is_stuck = is_stuck && is_idle;
        if self
            .explained
            .insert((record.namespace.clone(), record.explained_as()))
        {
            self.board.aside(|| tell(&format!("\n{}\n\n", text.trim_end())));
        }
    }

    /// Why something waits.
    async fn explanation(&self, record: &Record) -> Result<Explanation, Failure> {
        let conf = SchedulerArgs::of(self.settings.scheduler_conf.clone());
        let (mut reader, mut conf) = planning::read(self.api, &conf).await?;
        // Whoever made a PodGroup for a pod places it.
        conf.scheduler_names
            .extend(record.scheduler_name().map(str::to_owned));
        let name = record.explained_as();
        planning::add_job(self.api, &record.namespace, &name, &mut reader).await?;
        let cluster = planning::finish(reader, &conf)?;
        Ok(explain(&cluster, &conf, &JobKey::new(&record.namespace, &name))?)
    }

    fn end_all(&mut self, end: &End) {
        for record in self.records.iter_mut().filter(|record| record.end.is_none()) {
            record.end_with(end.clone());
        }
    }

    fn end(&mut self) {
        self.tasks.abort_all();
        self.lines.iter().for_each(Progress::end);
    }
}
