//! Who is sent next while all lanes are taken.
//!
//! ```text
//! what others wait for:   phases, PodGroups, Services …  ─┐
//! the mass:               pods                            ├─> lanes
//! what can be told later: counts of a Job ── if spare ────┘
//! ```
//!
//! A scheduler can place a Job once its PodGroup is there, and a user sees counts that change with every pod: in a flood
//! of Jobs the first are not kept waiting by the pods of others, and the last are written once instead of many times.
//! Counts do not wait in line: they may be others when their turn comes, and more than counts by then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use volcano_api::names::kinds::{JOB, POD};
use volcano_reconcile::write::Write;

/// Of so many lanes that become free, one goes to what can be told later, so that it is never put off for ever. It is
/// one of many: the schema of Jobs is large, and to check a status against it costs the API server as much as half a
/// dozen pods.
const TURNS: u32 = 1024;

/// How much hangs on a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Others wait for it.
    First,
    /// It is one of many.
    Mass,
    /// Nobody waits for it: it can be told later.
    Last,
}

impl Urgency {
    /// That of a write in a plan that changes the phase, or does not.
    pub fn of(write: &Write, changes_phase: bool) -> Self {
        match write {
            Write::Patch {
                status: true, target, ..
            } if target.kind == JOB && !changes_phase => Urgency::Last,
            Write::Create { target, .. } | Write::Delete { target, .. } if target.kind == POD => {
                Urgency::Mass
            }
            _ => Urgency::First,
        }
    }
}

/// Lanes to the API server.
#[derive(Clone)]
pub struct Lanes(Arc<Mutex<State>>);

struct State {
    free: usize,
    /// Lanes handed on since one was for what can be told later.
    turn: u32,
    /// Those who wait, the more urgent ones first.
    waiting: [VecDeque<oneshot::Sender<Lane>>; 2],
}

/// A lane that is taken; free again when it is dropped.
pub struct Lane(Lanes);

impl Lanes {
    pub fn new(lanes: usize) -> Self {
        Lanes(Arc::new(Mutex::new(State {
            free: lanes,
            turn: 0,
            waiting: Default::default(),
        })))
    }

    /// Takes a lane when it is its turn; none for what can be told later while none is to spare.
    pub async fn take(&self, urgency: Urgency) -> Option<Lane> {
        let turn = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(Lane(self.clone()));
            }
            let line = match urgency {
                Urgency::First => 0,
                Urgency::Mass => 1,
                Urgency::Last if state.is_turn() => {
                    state.turn = 0;
                    0
                }
                Urgency::Last => return None,
            };
            let (giver, turn) = oneshot::channel();
            state.waiting[line].push_back(giver);
            turn
        };
        match turn.await {
            Ok(lane) => Some(lane),
            Err(_) => unreachable!("those who wait are kept until they have their turn"),
        }
    }

    /// Lanes to spare for what can be told later.
    pub fn spare(&self) -> usize {
        let state = self.state();
        state.free.max(usize::from(state.is_turn()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a lane that became free on.
    fn give_back(&self) {
        loop {
            let next = {
                let mut state = self.state();
                let Some(next) = state.next() else {
                    state.free += 1;
                    return;
                };
                next
            };
            match next.send(Lane(self.clone())) {
                Ok(()) => return,
                // Nobody waits there any more: the lane is still in hand.
                Err(lane) => std::mem::forget(lane),
            }
        }
    }
}

impl State {
    fn next(&mut self) -> Option<oneshot::Sender<Lane>> {
        let next = self.waiting.iter_mut().find_map(VecDeque::pop_front)?;
        self.turn = self.turn.saturating_add(1);
        Some(next)
    }

    /// Whether it is the turn of what can be told later.
    fn is_turn(&self) -> bool {
        self.turn >= TURNS
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Urgency::{First, Last, Mass};
    use futures::FutureExt as _;
    use std::time::Duration;

    /// The order in which those who wait are served when lanes become free one by one.
    async fn order(waiting: &[Urgency]) -> Vec<usize> {
        let lanes = Lanes::new(1);
        let taken = lanes.take(First).await;
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for (at, urgency) in waiting.iter().copied().enumerate() {
            let (lanes, served) = (lanes.clone(), served.clone());
            tasks.spawn(async move {
                let _lane = lanes.take(urgency).await;
                served.lock().unwrap().push(at);
            });
            tokio::task::yield_now().await;
        }
        drop(taken);
        tasks.join_all().await;
        assert_eq!(lanes.state().free, 1, "every lane is given back");
        std::mem::take(&mut *served.lock().unwrap())
    }

    #[tokio::test]
    async fn what_others_wait_for_goes_first_and_equals_in_the_order_they_came() {
        assert_eq!(order(&[Mass, First, Mass, First]).await, [1, 3, 0, 2]);
    }

    #[tokio::test]
    async fn what_can_be_told_later_has_what_is_to_spare_and_one_of_many_turns() {
        let lanes = Lanes::new(1);
        assert_eq!(lanes.spare(), 1);
        let mut taken = lanes.take(Last).await.unwrap();
        for round in 0..3 {
            for _ in 0..TURNS {
                assert_eq!(lanes.spare(), 0, "in round {round}");
                assert!(lanes.take(Last).await.is_none(), "in round {round}");
                let next = lanes.take(Mass);
                tokio::pin!(next);
                assert!(next.as_mut().now_or_never().is_none());
                drop(taken);
                taken = next.await.unwrap();
            }
            assert_eq!(lanes.spare(), 1, "in round {round}");
            let (mass, last) = (lanes.take(Mass), lanes.take(Last));
            tokio::pin!(mass, last);
            assert!(mass.as_mut().now_or_never().is_none() && last.as_mut().now_or_never().is_none());
            drop(taken);
            let last = tokio::time::timeout(Duration::from_secs(20), last).await;
            drop(last.expect("its turn, before the mass").unwrap());
            taken = mass.await.unwrap();
            lanes.state().turn = 0;
        }
        drop(taken);
        assert_eq!(lanes.spare(), 1);
    }

    #[tokio::test]
    async fn a_turn_of_one_who_is_gone_is_the_next_ones() {
        let lanes = Lanes::new(1);
        let taken = lanes.take(First).await;
        let mut gone = Box::pin(lanes.take(First));
        let mut granted = Box::pin(lanes.take(First));
        assert!(gone.as_mut().now_or_never().is_none() && granted.as_mut().now_or_never().is_none());
        drop(gone);
        drop(taken);
        drop(granted);
        assert_eq!(
            lanes.state().free,
            1,
            "one had given up, the other had its lane and never looked"
        );
    }
}
