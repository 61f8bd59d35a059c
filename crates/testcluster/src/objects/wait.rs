//! Waiting for what a control plane does by itself.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, sleep};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(50);

/// What a look at a condition found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// It holds.
    Done(T),
    /// It does not hold yet; the text says what there is instead.
    Waiting(String),
}

/// Done if `holds`, otherwise what there is instead.
pub fn check<S: Display>(holds: bool, otherwise: impl FnOnce() -> S) -> Progress<()> {
    if holds {
        Progress::Done(())
    } else {
        Progress::Waiting(otherwise().to_string())
    }
}

/// Looks at a condition until it holds. An error is as good as "not yet": the API server may be restarting.
///
/// # Errors
/// When it does not hold in time; the message says `what` was waited for and what there was instead.
pub async fn wait_until<T, F>(what: &str, timeout: Duration, mut look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Progress<T>>>,
{
    let began = Instant::now();
    let mut last = "nothing was seen".to_owned();
    loop {
        // A look that hangs must not outlast the time either.
        let left = timeout.saturating_sub(began.elapsed());
        match tokio::time::timeout(left, look()).await {
            Ok(Ok(Progress::Done(value))) => return Ok(value),
            Ok(Ok(Progress::Waiting(seen))) => last = seen,
            Ok(Err(error)) => last = format!("{error:#}"),
            Err(_) => {}
        }
        if began.elapsed() >= timeout {
            bail!(
                "waited {} s until {what}; at the end: {last}",
                timeout.as_secs_f64()
            );
        }
        sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_comes_to_hold_is_done() {
        let looks = Cell::new(0);
        let value = wait_until("three looks", Duration::from_secs(5), || async {
            looks.set(looks.get() + 1);
            match looks.get() {
                1 => bail!("the server restarts"),
                2 => Ok(Progress::Waiting("two".to_owned())),
                _ => Ok(Progress::Done(looks.get())),
            }
        });
        assert_eq!(value.await.unwrap(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_out_says_what_was_waited_for_and_what_there_was() {
        let waiting = wait_until("the pod runs", Duration::from_secs(2), || async {
            Ok(check(false, || "phase Pending"))
        });
        assert_eq!(
            waiting.await.unwrap_err().to_string(),
            "waited 2 s until the pod runs; at the end: phase Pending"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_hangs_ends_with_the_time() {
        let waiting = wait_until("never", Duration::from_secs(1), || async {
            std::future::pending::<()>().await;
            Ok(Progress::Done(()))
        });
        assert!(
            waiting
                .await
                .unwrap_err()
                .to_string()
                .contains("nothing was seen")
        );
    }
}
