//! The rate limit of `--kube-api-qps` and `--kube-api-burst`: a bucket of tokens.

use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// A bucket that fills at a steady rate. Those who find it empty wait in line.
pub struct Tokens {
    per_second: f64,
    burst: f64,
    state: Mutex<(f64, Instant)>,
}

impl Tokens {
    /// `per_second` calls over a longer time, `burst` at once after a quiet time. No limit for zero or less.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        Tokens {
            per_second,
            burst,
            state: Mutex::new((burst, Instant::now())),
        }
    }

    /// Takes a token, after waiting for it if need be.
    pub async fn take(&self) {
        if let Some(wait) = self.reserve() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes the next token, which may be one that comes only after a while.
    fn reserve(&self) -> Option<Duration> {
        if self.per_second <= 0.0 {
            return None;
        }
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        let filled = state.0 + now.duration_since(state.1).as_secs_f64() * self.per_second;
        *state = (filled.min(self.burst) - 1.0, now);
        (state.0 < 0.0).then(|| Duration::from_secs_f64(-state.0 / self.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_the_rest_comes_at_the_rate() {
        let tokens = Tokens::new(10.0, 5);
        let began = Instant::now();
        for _ in 0..5 {
            tokens.take().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            tokens.take().await;
        }
        let took = began.elapsed();
        assert!(
            took >= Duration::from_millis(990) && took <= Duration::from_millis(1020),
            "{took:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_there_is_no_limit() {
        let tokens = Tokens::new(0.0, 0);
        let began = Instant::now();
        for _ in 0..1000 {
            tokens.take().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
