//! Whether the process is alive and ready.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The main loop turns at least once a second. A cycle over a very large cluster takes some seconds; one that
/// takes this long will not end.
const STUCK: Duration = Duration::from_secs(120);

/// The health of the process, told by its parts and asked for by probes.
#[derive(Debug)]
pub struct Health {
    began: Instant,
    /// Milliseconds after `began` of the last turn of the main loop; 0 before the first.
    ticked: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What has not been read yet; `None` before anything is known.
    missing: Option<Vec<String>>,
    trouble: Option<String>,
}

impl Default for Health {
    fn default() -> Self {
        Health {
            began: Instant::now(),
            ticked: AtomicU64::new(0),
            state: Mutex::new(State {
                missing: None,
                trouble: None,
            }),
        }
    }
}

impl Health {
    /// The main loop turned.
    pub fn tick(&self) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.ticked.store(millis.max(1), Ordering::Relaxed);
    }

    /// These kinds have not been listed yet.
    pub fn missing(&self, kinds: Vec<String>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.is_empty() {
            state.trouble = None;
        }
        state.missing = Some(kinds);
    }

    /// Why something cannot be read, in one line.
    pub fn trouble(&self, line: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.trouble = Some(line.to_owned());
    }

    /// Whether the main loop still turns.
    pub(super) fn live(&self) -> Result<(), String> {
        let ticked = Duration::from_millis(self.ticked.load(Ordering::Relaxed));
        let silent = self.began.elapsed().saturating_sub(ticked);
        if !ticked.is_zero() && silent > STUCK {
            return Err(format!("the main loop has not turned for {} s", silent.as_secs()));
        }
        Ok(())
    }

    /// Whether everything is read. A standby is ready too: it can take over at any time.
    pub(super) fn ready(&self) -> Result<(), String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = match &state.missing {
            Some(kinds) if kinds.is_empty() => return Ok(()),
            Some(kinds) => format!("not listed yet: {}", kinds.join(", ")),
            None => "starting".to_owned(),
        };
        Err(match &state.trouble {
            Some(line) => format!("{missing}; {line}"),
            None => missing,
        })
    }
}

#[cfg(test)]
impl Health {
    /// Of a process whose loop turned once, this long ago.
    pub(super) fn silent_for(silence: Duration) -> Self {
        let began = Instant::now().checked_sub(silence);
        Health {
            began: began.expect("the machine is up for longer"),
            ticked: AtomicU64::new(1),
            ..Health::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_says_what_is_missing_and_why() {
        let health = Health::default();
        assert_eq!(health.ready(), Err("starting".to_owned()));
        assert_eq!(health.live(), Ok(()), "starting is not being stuck");
        health.missing(vec!["Pod".to_owned(), "Queue".to_owned()]);
        assert_eq!(health.ready(), Err("not listed yet: Pod, Queue".to_owned()));
        health.trouble("no such CRD");
        assert_eq!(
            health.ready(),
            Err("not listed yet: Pod, Queue; no such CRD".to_owned())
        );
        health.missing(Vec::new());
        assert_eq!(health.ready(), Ok(()));
        health.tick();
        assert_eq!(health.live(), Ok(()));
    }
}
