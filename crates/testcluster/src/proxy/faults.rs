//! Which faults there are, and which of them a request meets.
//!
//! What happens to a request follows from the seed, its method and path, and how often that was asked before: never from
//! the clock or from what other requests do in between. So a run of the same program with the same seed meets the same
//! faults, however its tasks interleave.

use std::collections::HashMap;
use std::time::Duration;

use http::{Method, Uri};

use crate::modules::Fnv;

/// What goes wrong between a client and the API server. Probabilities are between 0 and 1; the default is that nothing
/// does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Other seeds, other faults.
    pub seed: u64,
    /// Answers instead of the API server's to reads: single objects, and lists. Watches are not among them.
    pub reads: Rejections,
    /// Answers instead of the API server's to writes, which then do not reach it.
    pub writes: Rejections,
    /// What `Retry-After` of a 429 says, in seconds.
    pub retry_after_secs: u32,
    /// How likely a new watch is told that its resource version is too old: half of the time with the status 410, half
    /// of the time with an event in the stream.
    pub gone: f64,
    /// Every watch is cut after a random time of at most this: half of the time in the middle of an event.
    pub cut: Option<Duration>,
    /// Requests that wait before they are passed on.
    pub delay: Delay,
    /// How likely a write takes effect while its client is not told: half of the time the connection dies, half of the
    /// time the answer is a 500.
    pub drop_after: f64,
    /// Nothing gets through, and open watches are cut: the client is alone.
    pub outage: bool,
    /// Only requests whose path has one of these in it meet faults; all do if there is none.
    pub only: Vec<String>,
}

/// How likely a request is refused, by status.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rejections {
    /// 409, as if another client had written first.
    pub conflict: f64,
    /// 429, as if there were too many requests.
    pub too_many: f64,
    /// 500, as if the API server failed.
    pub internal: f64,
}

/// How likely and how long a request waits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// How likely.
    pub probability: f64,
    /// The longest; the time is random.
    pub longest: Duration,
}

impl Faults {
    /// Whether a request for this meets faults at all.
    pub(super) fn reach(&self, uri: &Uri) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| uri.path().contains(part))
    }

    /// Random numbers that follow from the seed, a path and something more. The query is left out: it carries resource
    /// versions, which differ from run to run.
    pub(super) fn random(&self, uri: &Uri, more: &[u8]) -> fastrand::Rng {
        let mut hash = Fnv::new();
        for part in [uri.path().as_bytes(), more, &self.seed.to_le_bytes()] {
            hash.add(part);
        }
        fastrand::Rng::with_seed(hash.value())
    }
}

/// What a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    Read,
    Write,
    Watch,
}

impl Intent {
    pub fn of(method: &Method, uri: &Uri) -> Intent {
        let mut pairs = uri.query().unwrap_or_default().split('&');
        match *method {
            Method::GET if pairs.any(|pair| matches!(pair, "watch" | "watch=true" | "watch=1")) => {
                Intent::Watch
            }
            Method::GET | Method::HEAD | Method::OPTIONS => Intent::Read,
            _ => Intent::Write,
        }
    }
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Fate {
    /// It waits first.
    pub delay: Option<Duration>,
    /// And then.
    pub outcome: Outcome,
}

/// How a request ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// As the API server wants.
    Pass,
    /// With a status that the API server did not send.
    Refused(Refusal),
    /// A watch: with an event that tells that its version is too old.
    GoneInStream,
    /// A watch: cut after a time, perhaps in the middle of an event.
    Cut { after: Duration, torn: bool },
    /// A write: it takes effect, and the connection dies.
    AppliedThenDead,
    /// A write: it takes effect, and the answer is a 500.
    AppliedThenFailed,
    /// The connection dies.
    Dead,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Conflict,
    TooMany,
    Internal,
    Gone,
}

/// Draws the fate of every request.
#[derive(Debug, Default)]
pub struct Schedule {
    faults: Faults,
    /// How often each method and path was asked, watches and reads apart.
    asked: HashMap<(Method, bool, String), u32>,
}

impl Schedule {
    /// From the beginning.
    pub fn new(faults: Faults) -> Self {
        Schedule {
            faults,
            asked: HashMap::new(),
        }
    }

    /// The faults that it draws from.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The fate of the next request with this method and path.
    pub fn next(&mut self, method: &Method, uri: &Uri) -> Fate {
        let intent = Intent::of(method, uri);
        let faults = &self.faults;
        if !faults.reach(uri) {
            return Fate {
                delay: None,
                outcome: Outcome::Pass,
            };
        }
        let key = (method.clone(), intent == Intent::Watch, uri.path().to_owned());
        let times = self.asked.entry(key).or_default();
        let mut random = faults.random(uri, format!("{method} {intent:?} {times}").as_bytes());
        *times += 1;
        let delayed = random.f64() < faults.delay.probability;
        let delay = delayed.then(|| faults.delay.longest.mul_f64(random.f64()));
        let outcome = match intent {
            _ if faults.outage => Outcome::Dead,
            Intent::Watch => watch(faults, &mut random),
            Intent::Read => refused(&faults.reads, &mut random).unwrap_or(Outcome::Pass),
            Intent::Write => {
                let refused = refused(&faults.writes, &mut random);
                refused.unwrap_or_else(|| write(faults, &mut random))
            }
        };
        Fate { delay, outcome }
    }
}

fn watch(faults: &Faults, random: &mut fastrand::Rng) -> Outcome {
    if random.f64() < faults.gone {
        return if random.bool() {
            Outcome::Refused(Refusal::Gone)
        } else {
            Outcome::GoneInStream
        };
    }
    match faults.cut {
        Some(longest) => Outcome::Cut {
            after: longest.mul_f64(random.f64()),
            torn: random.bool(),
        },
        None => Outcome::Pass,
    }
}

/// One roll for all statuses, so that their probabilities add up.
fn refused(rejections: &Rejections, random: &mut fastrand::Rng) -> Option<Outcome> {
    let mut roll = random.f64();
    for (probability, refusal) in [
        (rejections.conflict, Refusal::Conflict),
        (rejections.too_many, Refusal::TooMany),
        (rejections.internal, Refusal::Internal),
    ] {
        if roll < probability {
            return Some(Outcome::Refused(refusal));
        }
        roll -= probability;
    }
    None
}

fn write(faults: &Faults, random: &mut fastrand::Rng) -> Outcome {
    if random.f64() >= faults.drop_after {
        return Outcome::Pass;
    }
    if random.bool() {
        Outcome::AppliedThenDead
    } else {
        Outcome::AppliedThenFailed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(seed: u64) -> Faults {
        let rejections = Rejections {
            conflict: 0.1,
            too_many: 0.1,
            internal: 0.1,
        };
        Faults {
            seed,
            reads: rejections,
            writes: rejections,
            gone: 0.3,
            cut: Some(Duration::from_secs(10)),
            delay: Delay {
                probability: 0.3,
                longest: Duration::from_millis(100),
            },
            drop_after: 0.2,
            ..Faults::default()
        }
    }

    fn requests() -> Vec<(Method, Uri)> {
        let mut requests = Vec::new();
        for at in 0..200 {
            requests.push((Method::POST, format!("/api/v1/namespaces/ns/pods/p{at}/binding")));
            requests.push((
                Method::GET,
                format!("/api/v1/nodes?watch=true&resourceVersion={at}"),
            ));
            requests.push((Method::GET, "/api/v1/pods?limit=500".to_owned()));
            requests.push((Method::PATCH, "/api/v1/namespaces/ns/pods/p/status".to_owned()));
        }
        let parsed = |(method, path): (Method, String)| (method, path.parse().unwrap());
        requests.into_iter().map(parsed).collect()
    }

    /// The fate of each request, in the order of [`requests`], when they come in a given order.
    fn fates(seed: u64, order: &[usize]) -> Vec<Option<Fate>> {
        let requests = requests();
        let mut schedule = Schedule::new(faults(seed));
        let mut fates = vec![None; requests.len()];
        for at in order {
            fates[*at] = Some(schedule.next(&requests[*at].0, &requests[*at].1));
        }
        fates
    }

    #[test]
    fn the_same_seed_draws_the_same_faults_and_another_seed_others() {
        let order: Vec<usize> = (0..requests().len()).collect();
        assert_eq!(fates(7, &order), fates(7, &order));
        assert_ne!(fates(7, &order), fates(8, &order));
    }

    #[test]
    fn faults_do_not_depend_on_what_other_clients_do_in_between() {
        let order: Vec<usize> = (0..requests().len()).collect();
        // All of one kind, then all of the next: the order within a path stays.
        let grouped: Vec<usize> = (0..4)
            .flat_map(|kind| order.iter().copied().filter(move |at| at % 4 == kind))
            .collect();
        assert_eq!(fates(7, &order), fates(7, &grouped));
    }

    #[test]
    fn every_fault_happens_about_as_often_as_it_should() {
        let mut schedule = Schedule::new(faults(1));
        let mut count = |method: Method, path: &str, what: fn(&Outcome) -> bool| {
            let fates =
                (0..2000).map(|at| schedule.next(&method, &format!("{path}{at}?watch=0").parse().unwrap()));
            fates.filter(|fate| what(&fate.outcome)).count()
        };
        let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused(_));
        let applied =
            |outcome: &Outcome| matches!(outcome, Outcome::AppliedThenDead | Outcome::AppliedThenFailed);
        for (got, expected) in [
            (count(Method::GET, "/r", refused), 600),
            (count(Method::PUT, "/w", refused), 600),
            (count(Method::PUT, "/a", applied), 280),
        ] {
            assert!(got.abs_diff(expected) < 100, "{got} instead of about {expected}");
        }
    }

    #[test]
    fn by_default_nothing_goes_wrong() {
        let mut schedule = Schedule::new(Faults::default());
        for (method, uri) in requests() {
            let fate = schedule.next(&method, &uri);
            assert_eq!((fate.delay, fate.outcome), (None, Outcome::Pass));
        }
    }

    #[test]
    fn an_outage_is_total_and_paths_can_be_spared() {
        let mut schedule = Schedule::new(Faults {
            outage: true,
            only: vec!["/pods".to_owned()],
            ..Faults::default()
        });
        let mut outcome = |path: &str| schedule.next(&Method::GET, &path.parse().unwrap()).outcome;
        assert_eq!(outcome("/api/v1/pods?watch=1"), Outcome::Dead);
        assert_eq!(outcome("/api/v1/nodes"), Outcome::Pass);
    }

    #[test]
    fn watches_are_told_from_reads_and_writes() {
        let intent = |method: Method, path: &str| Intent::of(&method, &path.parse().unwrap());
        assert_eq!(
            intent(Method::GET, "/api/v1/pods?limit=1&watch=true"),
            Intent::Watch
        );
        assert_eq!(intent(Method::GET, "/api/v1/pods?watch=1"), Intent::Watch);
        assert_eq!(intent(Method::GET, "/api/v1/pods?watch=false"), Intent::Read);
        assert_eq!(intent(Method::GET, "/api/v1/pods"), Intent::Read);
        assert_eq!(intent(Method::DELETE, "/api/v1/pods?watch=true"), Intent::Write);
    }
}
