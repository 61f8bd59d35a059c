use super::*;
use std::cell::RefCell;
use std::rc::Rc;
use tokio::task::LocalSet;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn wall(second: i64) -> Time {
    Time::from_unix_seconds(second)
}

fn stamp(second: u32) -> Option<String> {
    Some(format!("1970-01-01T00:00:{second:02}.000000Z"))
}

fn record(holder: &str, renewed: u32, transitions: u32) -> Record {
    Record {
        holder: holder.to_owned(),
        duration_seconds: 15,
        acquire_time: stamp(1),
        renew_time: stamp(renewed),
        transitions,
    }
}

fn election() -> Election {
    Election::new("me", 15 * SECOND, 10 * SECOND)
}

/// What a candidate that sees these records at these seconds does last.
fn last_step(sights: &[(u64, Option<Record>)]) -> Step {
    let mut election = election();
    let start = Instant::now();
    let mut last = Step::Wait;
    for (second, found) in sights {
        last = election.decide(found.clone(), start + *second as u32 * SECOND, wall(9));
    }
    last
}

fn taken(transitions: u32, acquired: u32) -> Step {
    Step::Update(Record {
        holder: "me".to_owned(),
        duration_seconds: 15,
        acquire_time: stamp(acquired),
        renew_time: stamp(9),
        transitions,
    })
}

#[test]
fn what_a_candidate_does_depends_on_what_it_has_seen_and_for_how_long() {
    let create = match taken(0, 9) {
        Step::Update(record) => Step::Create(record),
        other => other,
    };
    let free = Record::default();
    let short = Record {
        duration_seconds: 1,
        ..record("you", 2, 4)
    };
    type Case = (&'static str, Vec<(u64, Option<Record>)>, Step);
    let cases: Vec<Case> = vec![
        ("no lease is made", vec![(0, None)], create),
        (
            "another's is left alone at first sight, however old its times look",
            vec![(0, Some(record("you", 2, 4)))],
            Step::Wait,
        ),
        (
            "and until its duration has passed since",
            vec![(0, Some(record("you", 2, 4))), (14, Some(record("you", 2, 4)))],
            Step::Wait,
        ),
        (
            "then it is taken",
            vec![(0, Some(record("you", 2, 4))), (15, Some(record("you", 2, 4)))],
            taken(5, 9),
        ),
        (
            "a renewal begins the wait anew",
            vec![
                (0, Some(record("you", 2, 4))),
                (14, Some(record("you", 3, 4))),
                (28, Some(record("you", 3, 4))),
            ],
            Step::Wait,
        ),
        (
            "the holder's duration counts, not one's own",
            vec![(0, Some(short.clone())), (1, Some(short))],
            taken(5, 9),
        ),
        (
            "one that was given back is taken at once",
            vec![(0, Some(record("", 2, 4)))],
            taken(5, 9),
        ),
        ("so is an empty one", vec![(0, Some(free))], taken(1, 9)),
        (
            "one's own goes on as it is: an answer may have been lost",
            vec![(0, Some(record("me", 2, 4)))],
            taken(4, 1),
        ),
    ];
    for (what, sights, expected) in cases {
        assert_eq!(last_step(&sights), expected, "{what}");
    }
}

#[test]
fn a_leader_renews_what_it_wrote_and_stops_at_its_deadline() {
    let mut election = election();
    let start = Instant::now();
    assert_eq!(election.renewal(wall(9)), None, "there is nothing to renew yet");
    let Step::Create(first) = election.decide(None, start, wall(9)) else {
        panic!("no lease is made");
    };
    election.written(first, start, start + SECOND);
    assert_eq!(
        election.leadership(),
        Leadership::Leading {
            transitions: 0,
            term: 1
        }
    );
    let renewal = election.renewal(wall(11)).unwrap();
    assert_eq!(
        (&renewal.acquire_time, &renewal.renew_time, renewal.transitions),
        (&stamp(9), &stamp(11), 0)
    );
    election.written(renewal, start + 2 * SECOND, start + 3 * SECOND);
    assert_eq!(
        election.deadline(),
        Some(start + 12 * SECOND),
        "counted from when the renewal was sent"
    );
    assert!(!election.expire(start + 11 * SECOND) && election.leadership().leads());
    assert!(election.expire(start + 12 * SECOND));
    assert_eq!(
        election.leadership(),
        Leadership::Standby {
            holder: Some("me".to_owned())
        }
    );
    // Nobody else came: the same lease, a new term.
    let Step::Update(again) = election.decide(election.seen_record(), start + 13 * SECOND, wall(13)) else {
        panic!("its own lease goes on");
    };
    election.written(again, start + 13 * SECOND, start + 13 * SECOND);
    assert_eq!(
        election.leadership(),
        Leadership::Leading {
            transitions: 0,
            term: 2
        }
    );
}

#[test]
fn a_leader_that_reads_another_name_leads_no_longer() {
    let mut election = election();
    let start = Instant::now();
    election.written(record("me", 1, 0), start, start);
    let step = election.decide(Some(record("you", 2, 1)), start + SECOND, wall(2));
    assert_eq!(step, Step::Wait);
    assert_eq!(
        election.leadership(),
        Leadership::Standby {
            holder: Some("you".to_owned())
        }
    );
    assert_eq!(
        election.release(&record("you", 2, 1), wall(3)),
        None,
        "it is not ours to give back"
    );
}

#[test]
fn giving_back_is_what_client_go_writes() {
    let mut election = election();
    let start = Instant::now();
    election.written(record("me", 1, 3), start, start);
    let given = election.release(&record("me", 1, 3), wall(5)).unwrap();
    let mut lease = json!({"metadata": {"name": "volcano"}, "spec": {"strategy": "kept"}});
    given.write(&mut lease);
    assert_eq!(
        lease,
        json!({"metadata": {"name": "volcano"}, "spec": {
            "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3, "strategy": "kept",
            "acquireTime": "1970-01-01T00:00:05.000000Z", "renewTime": "1970-01-01T00:00:05.000000Z",
        }})
    );
    assert!(!election.leadership().leads());
}

#[test]
fn leases_are_read_as_client_go_writes_them() {
    let lease = json!({"spec": {
        "holderIdentity": "host-1_5f4d", "leaseDurationSeconds": 15, "leaseTransitions": 2,
        "acquireTime": "2026-01-02T03:04:05.000006Z", "renewTime": "2026-01-02T03:04:07.000008Z",
    }});
    let mut read_and_written = lease.clone();
    Record::of(&lease).write(&mut read_and_written);
    assert_eq!(read_and_written, lease);
    for odd in [
        json!({}),
        json!({"spec": null}),
        json!({"spec": {"holderIdentity": 7}}),
    ] {
        assert_eq!(Record::of(&odd), Record::default());
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let good = settings("me");
    assert_eq!(good.validate(), Ok(()));
    let cases: Vec<(Settings, &str)> = vec![
        (
            Settings {
                lease_duration: Duration::ZERO,
                ..good.clone()
            },
            "--leader-elect-lease-duration must be greater than zero",
        ),
        (
            Settings {
                renew_deadline: Duration::ZERO,
                ..good.clone()
            },
            "--leader-elect-renew-deadline must be greater than zero",
        ),
        (
            Settings {
                retry_period: Duration::ZERO,
                ..good.clone()
            },
            "--leader-elect-retry-period must be greater than zero",
        ),
        (
            Settings {
                lease_duration: 10_900 * MS,
                renew_deadline: 10_500 * MS,
                ..good.clone()
            },
            "in whole seconds, must be greater than --leader-elect-renew-deadline",
        ),
        (
            Settings {
                retry_period: 9 * SECOND,
                ..good.clone()
            },
            "--leader-elect-renew-deadline must be greater than --leader-elect-retry-period times 1.2",
        ),
        (
            Settings {
                name: String::new(),
                ..good.clone()
            },
            "--leader-elect-resource-name must not be empty",
        ),
        (
            Settings {
                namespace: String::new(),
                ..good.clone()
            },
            "--leader-elect-resource-namespace must not be empty",
        ),
    ];
    for (settings, message) in cases {
        let error = settings.validate().unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

fn settings(identity: &str) -> Settings {
    Settings {
        lease_duration: 15 * SECOND,
        renew_deadline: 10 * SECOND,
        retry_period: 2 * SECOND,
        namespace: "volcano-system".to_owned(),
        name: "volcano".to_owned(),
        identity: identity.to_owned(),
    }
}

/// One lease in memory, guarded by versions as the API server guards it. Slow and failing on demand.
#[derive(Clone, Default)]
struct Memory {
    stored: Rc<RefCell<Stored>>,
    faults: Rc<RefCell<Faults>>,
    /// What its candidate told users.
    told: Rc<RefCell<Vec<String>>>,
}

#[derive(Default)]
struct Stored {
    lease: Option<Value>,
    version: u64,
}

#[derive(Clone, Default)]
struct Faults {
    /// The longest way of a request, and of an answer.
    slowness: Duration,
    /// How many of a hundred requests, and of a hundred answers, get lost.
    losses: u32,
}

impl Memory {
    fn now(&self) -> Option<Value> {
        self.stored.borrow().lease.clone()
    }

    /// Carries a request there and its answer back. One that was sent arrives even if nobody waits for it.
    async fn carry(
        &self,
        request: impl FnOnce(&mut Stored) -> Result<Value, CallError> + 'static,
    ) -> Result<Value, CallError> {
        let Faults { slowness, losses } = self.faults.borrow().clone();
        let way = || slowness.mul_f64(fastrand::f64());
        let lost = || fastrand::u32(0..100) < losses;
        let (there, back) = ((way(), lost()), (way(), lost()));
        let stored = self.stored.clone();
        let carried = tokio::task::spawn_local(async move {
            sleep(there.0).await;
            if there.1 {
                return Err(CallError::NoAnswer("lost".to_owned()));
            }
            let answer = request(&mut stored.borrow_mut());
            sleep(back.0).await;
            if back.1 {
                return Err(CallError::NoAnswer("lost".to_owned()));
            }
            answer
        });
        carried.await.unwrap()
    }
}

fn refused(code: u16) -> CallError {
    CallError::Refused {
        code,
        reason: String::new(),
        message: String::new(),
        retry_after: None,
    }
}

impl Stored {
    fn store(&mut self, lease: &Value) -> Value {
        self.version += 1;
        let mut lease = lease.clone();
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        lease
    }
}

impl Leases for Memory {
    async fn read(&self, path: &str) -> Result<Value, CallError> {
        assert_eq!(
            path,
            "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano"
        );
        self.carry(|stored| stored.lease.clone().ok_or(refused(404)))
            .await
    }

    async fn create(&self, path: &str, lease: &Value) -> Result<Value, CallError> {
        assert_eq!(
            path,
            "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"
        );
        let lease = lease.clone();
        self.carry(move |stored| match stored.lease {
            Some(_) => Err(refused(409)),
            None => Ok(stored.store(&lease)),
        })
        .await
    }

    async fn update(&self, _: &str, lease: &Value) -> Result<Value, CallError> {
        let lease = lease.clone();
        self.carry(move |stored| {
            let current = stored.lease.as_ref().ok_or(refused(404))?;
            if current["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
                return Err(refused(409));
            }
            Ok(stored.store(&lease))
        })
        .await
    }

    fn tell(&self, lease: &Value, message: String) -> JoinHandle<()> {
        assert!(lease["metadata"]["name"] == "volcano");
        self.told.borrow_mut().push(message);
        // Whoever would wait for an answer waited for ever.
        tokio::task::spawn_local(std::future::pending())
    }
}

/// A candidate that campaigns.
struct Running {
    fence: Fence,
    state: watch::Receiver<Leadership>,
    stop: watch::Sender<bool>,
}

impl Running {
    fn start(memory: &Memory, identity: &str) -> Self {
        let fence = Fence::closed();
        let (tell, state) = watch::channel(Leadership::default());
        let (stop, stopped) = watch::channel(false);
        let task = campaign(memory.clone(), settings(identity), fence.clone(), stopped, tell);
        tokio::task::spawn_local(task);
        Running { fence, state, stop }
    }

    fn leads(&self) -> bool {
        self.state.borrow().leads()
    }

    async fn wait(&mut self, wanted: fn(&Leadership) -> bool) {
        let found = timeout(600 * SECOND, self.state.wait_for(wanted)).await.is_ok();
        assert!(found, "still {:?}", *self.state.borrow());
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_the_second_takes_over_soon_after_it_is_given_back() {
    let local = LocalSet::new();
    local
        .run_until(async {
            let memory = Memory::default();
            let mut first = Running::start(&memory, "first");
            first.wait(Leadership::leads).await;
            assert!(first.fence.passes());
            let mut second = Running::start(&memory, "second");
            sleep(120 * SECOND).await;
            assert!(first.leads() && !second.leads() && !second.fence.passes());
            assert_eq!(
                *second.state.borrow(),
                Leadership::Standby {
                    holder: Some("first".to_owned())
                }
            );
            first.stop.send_replace(true);
            first.wait(|state| *state == Leadership::Stopped).await;
            assert!(!first.fence.passes());
            let given_back = Instant::now();
            second.wait(Leadership::leads).await;
            assert!(
                given_back.elapsed() <= (2 * SECOND).mul_f64(1.0 + JITTER),
                "within one attempt, not after the lease's duration"
            );
            assert_eq!(memory.now().unwrap()["spec"]["leaseTransitions"], 1);
            assert!(second.fence.passes());
            let told = [
                "first became leader",
                "first stopped leading",
                "second became leader",
            ];
            assert_eq!(*memory.told.borrow(), told);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_begins_and_comes_back() {
    let local = LocalSet::new();
    local
        .run_until(async {
            let memory = Memory::default();
            let mut first = Running::start(&memory, "first");
            first.wait(Leadership::leads).await;
            let cut = Memory {
                stored: memory.stored.clone(),
                ..Memory::default()
            };
            let mut second = Running::start(&cut, "second");
            sleep(20 * SECOND).await;
            memory.faults.borrow_mut().losses = 100;
            first.wait(|state| !state.leads()).await;
            assert!(!first.fence.passes());
            assert!(!second.leads());
            second.wait(Leadership::leads).await;
            memory.faults.borrow_mut().losses = 0;
            sleep(60 * SECOND).await;
            assert_eq!(
                *first.state.borrow(),
                Leadership::Standby {
                    holder: Some("second".to_owned())
                }
            );
            assert_eq!(
                *memory.told.borrow(),
                ["first became leader", "first stopped leading"]
            );
            second.stop.send_replace(true);
            first.wait(Leadership::leads).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_overwritten_is_lost_at_once() {
    let local = LocalSet::new();
    local
        .run_until(async {
            let memory = Memory::default();
            let mut first = Running::start(&memory, "first");
            first.wait(Leadership::leads).await;
            let mut lease = memory.now().unwrap();
            lease["spec"]["holderIdentity"] = json!("somebody");
            memory.stored.borrow_mut().store(&lease);
            let overwritten = Instant::now();
            first.wait(|state| !state.leads()).await;
            assert!(overwritten.elapsed() <= 2 * SECOND, "at the next renewal");
        })
        .await;
}

/// Three candidates over a slow network that loses much: never two leaders at once, and one again and again.
#[tokio::test(start_paused = true)]
async fn under_faults_there_is_never_more_than_one_leader() {
    for seed in 0..20 {
        fastrand::seed(seed);
        let local = LocalSet::new();
        local
            .run_until(async {
                let memory = Memory::default();
                let candidates: Vec<_> = ["a", "b", "c"]
                    .iter()
                    .map(|identity| {
                        let own = Memory {
                            stored: memory.stored.clone(),
                            ..Memory::default()
                        };
                        (own.clone(), Running::start(&own, identity))
                    })
                    .collect();
                let mut led = [0; 3];
                for step in 0..12_000 {
                    if step % 200 == 0 {
                        for (memory, _) in &candidates {
                            *memory.faults.borrow_mut() = Faults {
                                slowness: SECOND * fastrand::u32(0..12),
                                losses: [0, 0, 20, 60, 100][fastrand::usize(0..5)],
                            };
                        }
                    }
                    sleep(100 * MS).await;
                    let leaders: Vec<_> = (0..3).filter(|at| candidates[*at].1.leads()).collect();
                    assert!(leaders.len() <= 1, "seed {seed}, step {step}: {leaders:?} lead");
                    for leader in leaders {
                        led[leader] += 1;
                    }
                }
                assert!(
                    led.iter().sum::<i32>() > 2_000,
                    "seed {seed}: somebody leads a good part of the time: {led:?}"
                );
            })
            .await;
    }
}

#[tokio::test]
async fn a_process_knows_at_its_start_whether_it_begins_with_a_term() {
    use crate::testing::{Say, Server};
    let mut held = json!({});
    record("other", 9, 3).write(&mut held);
    let free = Server::default().says("POST", [Say::Status(201, json!({}))]);
    let taken = Server::default().says("GET", [Say::Status(200, held)]);
    let away = Server::default().says("", [Say::Status(500, Value::Null)]);
    for (server, is_elected, expected) in [
        (&free, true, Some(1)),
        (&taken, true, None),
        (&away, true, None),
        (&free, false, None),
    ] {
        let settings = is_elected.then(|| settings("me"));
        let client = server.start().await;
        let mut campaign = Campaign::start(settings.as_ref(), client, "vc", &Fence::closed());
        assert_eq!(campaign.first_term().await, expected);
        campaign.end().await;
    }
}

#[tokio::test]
async fn events_on_the_lease_tell_who_leads_as_client_go_does() {
    use crate::testing::{Say, Server};
    let stored = json!({"metadata": {
        "namespace": "volcano-system", "name": "volcano", "uid": "u", "resourceVersion": "7",
    }, "spec": {"holderIdentity": "me"}});
    let events = "POST /api/v1/namespaces/volcano-system/events";
    let server = Server::default()
        .says(events, [Say::Status(403, Value::Null), Say::Nothing])
        .says("POST", [Say::Status(201, stored.clone())])
        .says("PUT", [Say::Status(200, stored)]);
    let client = server.start().await;
    let mut campaign = Campaign::start(Some(&settings("me")), client, "vc", &Fence::closed());
    assert_eq!(
        campaign.first_term().await,
        Some(1),
        "whatever becomes of the event"
    );
    server.wait_for(events, 1).await;
    campaign.end().await;
    server.wait_for(events, 2).await;
    let mut told = server.bodies(events);
    let said = |event: &mut Value| event["message"].take();
    assert_eq!(
        told.iter_mut().map(said).collect::<Vec<_>>(),
        [json!("me became leader"), json!("me stopped leading")]
    );
    let mut event = told.swap_remove(0);
    let name = event["metadata"]["name"].take();
    assert!(name.as_str().unwrap().starts_with("volcano."), "{name}");
    for time in ["firstTimestamp", "lastTimestamp"] {
        Time::parse(event[time].take().as_str().unwrap()).unwrap();
    }
    assert_eq!(
        event,
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "volcano-system", "name": null},
            "involvedObject": {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": "volcano-system",
                "name": "volcano", "uid": "u", "resourceVersion": "7",
            },
            "type": "Normal", "reason": "LeaderElection", "message": null, "count": 1,
            "firstTimestamp": null, "lastTimestamp": null,
            "source": {"component": "vc"}, "reportingComponent": "vc",
        })
    );
}
