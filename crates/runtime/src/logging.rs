//! Logs: klog's flags mapped onto one line of text per event on standard error.
//!
//! | `-v` | what is logged |
//! |---|---|
//! | 0 to 3 | what happens |
//! | 4 | also why (debug) |
//! | 5 | also every step (trace) |
//! | 6, 7 | also what the libraries for HTTP and Kubernetes do (their debug) |
//! | 8 and more | everything of theirs |
//!
//! The level can be changed while running, through a socket: see [`socket`].

mod line;
mod socket;
#[cfg(test)]
mod tests;

use line::Line;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::info;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{fmt, reload};

pub use socket::{socket, socket_directory};

/// The crates of this product; everything else is a library.
const OURS: &str = "volcano";

/// How much is logged, and in what form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// klog's `-v`.
    pub verbosity: i32,
    /// Leave out level and time.
    pub skip_headers: bool,
}

/// A flag that was given and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// The flag, with its dashes.
    pub flag: String,
    /// Why it has none.
    pub reason: String,
}

impl Unused {
    /// A flag and a reason.
    pub fn new(flag: &str, reason: impl Into<String>) -> Self {
        Unused {
            flag: flag.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Starts logging to standard error. What is returned changes the level.
pub fn start(settings: &Settings) -> Level {
    let (subscriber, level) = subscriber(settings, std::io::stderr);
    // A second start changes nothing: somebody logs already.
    let _ = tracing::subscriber::set_global_default(subscriber);
    level
}

fn subscriber<W>(settings: &Settings, writer: W) -> (impl tracing::Subscriber + Send + Sync + use<W>, Level)
where
    W: for<'w> fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(targets(settings.verbosity));
    let lines = fmt::layer()
        .event_format(Line {
            headers: !settings.skip_headers,
        })
        .with_writer(writer)
        // It would tell on standard error that standard error cannot be written, and panic over that.
        .log_internal_errors(false);
    let level = Level {
        handle,
        at_start: settings.verbosity,
        state: Arc::new(Mutex::new(State {
            verbosity: settings.verbosity,
            changes: 0,
        })),
    };
    (Registry::default().with(filter).with(lines), level)
}

/// What is logged at a verbosity.
fn targets(verbosity: i32) -> Targets {
    let ours = match verbosity {
        ..4 => LevelFilter::INFO,
        4 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // What goes wrong in a library comes back as an error, and is logged by whoever asked for it.
    let libraries = match verbosity {
        ..6 => LevelFilter::OFF,
        6 | 7 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    Targets::new().with_default(libraries).with_target(OURS, ours)
}

/// The level of the logs, which can change while running. Clones are the same level.
#[derive(Clone)]
pub struct Level {
    handle: reload::Handle<Targets, Registry>,
    at_start: i32,
    state: Arc<Mutex<State>>,
}

struct State {
    verbosity: i32,
    /// Counts changes: a change that has run out ends only itself, not a newer one.
    changes: u64,
}

impl Level {
    /// klog's `-v`, as it is now.
    pub fn verbosity(&self) -> i32 {
        self.state().verbosity
    }

    /// Another verbosity for a while, then the one of the start again. A newer call replaces an older one, whose
    /// time does not matter any more. Must be called where tasks can be spawned.
    pub fn set_for(&self, verbosity: i32, duration: Duration) {
        let change = self.set(verbosity, &mut self.state());
        let level = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            level.run_out(change);
        });
    }

    fn run_out(&self, change: u64) {
        let mut state = self.state();
        if state.changes == change {
            self.set(self.at_start, &mut state);
            drop(state);
            info!(
                verbosity = self.at_start,
                "the log level is that of the start again"
            );
        }
    }

    /// Gives the number of the change.
    fn set(&self, verbosity: i32, state: &mut State) -> u64 {
        // Without a subscriber there is nothing to change.
        let _ = self.handle.reload(targets(verbosity));
        state.verbosity = verbosity;
        state.changes += 1;
        state.changes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
