//! Waiting longer after each failure, with jitter, so that many clients do not come back at the same moment.

use std::time::Duration;

/// Doubles from the first wait to the longest.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Waits `first`, then twice as long each time, up to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Backoff {
            first,
            longest,
            next: first,
        }
    }

    /// How long to wait after one more failure: between half and the whole of the current step.
    pub fn wait(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.longest);
        step.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// It worked: the next failure starts from the beginning.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// How long to wait after so many failures in a row: doubles from the first wait to the longest, less up to a half.
pub fn growing(first: Duration, longest: Duration, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let step = first.saturating_mul(1 << doublings).min(longest);
    step.mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_start_over_after_success() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(100), ms(350));
        for step in [100, 200, 350, 350] {
            let wait = backoff.wait();
            assert!(wait >= ms(step) / 2 && wait <= ms(step), "{wait:?} of {step} ms");
        }
        backoff.reset();
        assert!(backoff.wait() <= ms(100));
    }
    #[test]
    fn the_wait_after_many_failures_is_the_longest() {
        let ms = Duration::from_millis;
        for (failures, step) in [(0, 100), (1, 100), (2, 200), (3, 350), (u32::MAX, 350)] {
            let wait = growing(ms(100), ms(350), failures);
            assert!(wait >= ms(step) / 2 && wait <= ms(step), "{wait:?} of {step} ms");
        }
    }
}
