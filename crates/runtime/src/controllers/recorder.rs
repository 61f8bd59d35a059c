//! Tells users what happens: Kubernetes events, counted together when they repeat, limited in rate, and dropped before
//! they delay anything else.

use crate::client::Client;
use crate::fence::Fence;
use crate::metrics::Process;
use crate::writes::events::Events;
use crate::writes::order::{Event, ObjectRef};
use crate::writes::send::Sender;
use crate::writes::work::Answer;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use volcano_reconcile::write;

/// Events that wait to be taken in.
const WAITING: usize = 4096;
/// Requests under way at the same time.
const LANES: usize = 4;
/// How often it is looked whether dropped events have to be counted.
const COUNT: Duration = Duration::from_secs(5);

/// Takes events to be told. Clones tell through the same line.
#[derive(Clone)]
pub struct Recorder {
    to: mpsc::Sender<Event>,
    metrics: Process,
}

impl Recorder {
    /// Starts to tell events in the name of a component.
    pub fn start(
        client: &Client,
        fence: Fence,
        metrics: Process,
        component: &str,
        per_second: f64,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (to, waiting) = mpsc::channel(WAITING);
        let sender = Arc::new(Sender::new(client, fence, metrics.clone(), component.into()));
        tasks.spawn(run(sender, Events::new(per_second), metrics.clone(), waiting));
        Recorder { to, metrics }
    }

    /// Has an event told, some time.
    pub fn tell(&self, event: &write::Event) {
        let about = &event.about;
        let event = Event {
            object: ObjectRef {
                api_version: about.kind.api_version().into(),
                kind: about.kind.kind,
                namespace: about.namespace.as_str().into(),
                name: about.name.as_str().into(),
                uid: about.uid.as_str().into(),
            },
            warning: event.warning,
            reason: event.reason.clone().into(),
            message: event.message.as_str().into(),
        };
        if self.to.try_send(event).is_err() {
            self.metrics.events_dropped(1);
        }
    }
}

async fn run(sender: Arc<Sender>, mut events: Events, metrics: Process, mut waiting: mpsc::Receiver<Event>) {
    let mut running: JoinSet<(u64, Answer)> = JoinSet::new();
    loop {
        while running.len() < LANES
            && let Some((key, write)) = events.next(Instant::now())
        {
            let sender = sender.clone();
            running.spawn(async move { (key, sender.event(&write).await) });
        }
        tokio::select! {
            event = waiting.recv() => match event {
                Some(event) => events.order(event, Instant::now()),
                None => return,
            },
            Some(ended) = running.join_next() => {
                if let Ok((key, answer)) = ended {
                    events.answered(key, &answer);
                }
            }
            () = tokio::time::sleep(COUNT) => {}
        }
        let dropped = events.take_dropped();
        if dropped > 0 {
            metrics.events_dropped(dropped);
        }
    }
}
