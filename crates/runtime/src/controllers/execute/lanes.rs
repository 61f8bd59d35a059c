//! Who is sent next while all lanes are taken.
//!
//! ```text
//! what others wait for:  phases, PodGroups, Services …  ─┐
//! the mass:              pods                            ├─> lanes
//! what can be told later: counts                        ─┘
//! ```
//!
//! A scheduler can place a Job once its PodGroup is there, and a user sees counts that change with every pod: in a flood
//! of Jobs the first are not kept waiting by the pods of others, and the last are written once instead of many times.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use volcano_api::names::kinds::POD;
use volcano_reconcile::write::Write;

/// Of so many lanes that become free, one goes to what is least urgent, so that it is late but never kept waiting for
/// ever.
const TURNS: u32 = 64;

/// How much hangs on a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Others wait for it.
    First,
    /// It is one of many.
    Mass,
    /// Nobody waits for it.
    Last,
}

impl Urgency {
    /// That of a write in a plan that changes the phase, or does not.
    pub fn of(write: &Write, changes_phase: bool) -> Self {
        match write {
            Write::Patch { status: true, .. } if !changes_phase => Urgency::Last,
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
    turn: u32,
    waiting: [VecDeque<oneshot::Sender<Lane>>; 3],
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

    /// Takes a lane when it is its turn.
    pub async fn take(&self, urgency: Urgency) -> Lane {
        let turn = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Lane(self.clone());
            }
            let (giver, turn) = oneshot::channel();
            state.waiting[urgency as usize].push_back(giver);
            turn
        };
        match turn.await {
            Ok(lane) => lane,
            Err(_) => unreachable!("those who wait are kept until they have their turn"),
        }
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
        self.turn = (self.turn + 1) % TURNS;
        let mut lines = self.waiting.iter_mut();
        match self.turn {
            0 => lines.rev().find_map(VecDeque::pop_front),
            _ => lines.find_map(VecDeque::pop_front),
        }
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
        assert_eq!(
            order(&[Last, Mass, First, Mass, First, Last]).await,
            [2, 4, 1, 3, 0, 5]
        );
    }

    #[tokio::test]
    async fn nothing_waits_for_ever() {
        let mut waiting = vec![Mass; 140];
        waiting.extend([Last, Last]);
        let order = order(&waiting).await;
        let turns: Vec<_> = (0..order.len()).filter(|turn| order[*turn] >= 140).collect();
        assert_eq!(turns, [63, 127]);
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
