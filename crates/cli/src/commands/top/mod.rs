//! `vcctl top`: queues, jobs and nodes on the whole screen, as they change.
//!
//! ```text
//! watches ─> Cluster ─> tables ─┐
//! keys ───────────────> Screen ─┴─> terminal
//! ```

mod amounts;
mod cluster;
mod screen;
mod tables;

use crate::api::{Api, Scope};
use crate::args::ConnectArgs;
use crate::failure::Failure;
use crate::live::{Item, Live};
use crate::output::{colour, times};
use cluster::{Cluster, News};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use screen::{Screen, Step};
use std::io::IsTerminal as _;
use std::time::Duration;
use tokio::sync::mpsc;
use volcano_api::names::{Kind, kinds};

/// While changes pour in, the screen is drawn this often.
const DRAW: Duration = Duration::from_millis(200);
/// Ages and the clock go on without changes.
const TICK: Duration = Duration::from_secs(1);
/// News that wait to be taken in.
const WAITING: usize = 4096;

const NODE: Kind = Kind {
    kind: "Node",
    plural: "nodes",
    namespaced: false,
    ..kinds::POD
};

/// Watch queues, jobs and nodes on the whole screen
///
/// Keys: Tab, 1, 2, 3 or left and right switch between queues, jobs and nodes; s sorts by the next column, r the other
/// way round; up, down, PgUp, PgDn, Home and End scroll; q ends.
#[derive(Clone, Debug, clap::Args)]
pub struct TopArgs {
    /// Only jobs of this namespace [default: all]
    #[arg(
        long,
        short = 'n',
        value_name = "NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    namespace: String,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Runs the command.
pub async fn run(args: &TopArgs) -> Result<u8, Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::new("standard input and output are not a terminal").hint(
            "vcctl queue list, vcctl job list and kubectl top nodes print the same to a file or a pipe",
        ));
    }
    let api = Api::connect(&args.connect).await?;
    // What cannot be reached is told on a whole line, before the screen is taken.
    api.list::<serde_json::Value>(Scope::new(kinds::QUEUE, ""))
        .await?;
    let (news, received) = mpsc::channel(WAITING);
    follow(&api, Scope::new(kinds::QUEUE, ""), &news, News::Queue);
    follow(&api, Scope::new(kinds::POD_GROUP, ""), &news, News::Group);
    follow(&api, Scope::new(kinds::JOB, &args.namespace), &news, News::Job);
    follow(&api, Scope::new(NODE, ""), &news, News::Node);
    follow(&api, Scope::new(kinds::POD, ""), &news, News::Pod);
    let terminal =
        ratatui::try_init().map_err(|error| Failure::new(format!("cannot use the terminal: {error}")))?;
    let outcome = show(terminal, received).await;
    ratatui::restore();
    outcome.map(|()| 0)
}

/// Follows a kind for as long as somebody looks.
fn follow<T>(api: &Api, scope: Scope, news: &mpsc::Sender<News>, wrap: fn(crate::live::Change<T>) -> News)
where
    T: Item + Send + 'static,
{
    let mut live = Live::<T>::new(api, scope);
    let news = news.clone();
    tokio::spawn(async move { while news.send(wrap(live.next().await)).await.is_ok() {} });
}

async fn show(mut terminal: ratatui::DefaultTerminal, mut news: mpsc::Receiver<News>) -> Result<(), Failure> {
    let mut cluster = Cluster::default();
    let mut screen = Screen::new(colour::are_wanted(|name| std::env::var_os(name)));
    let mut keys = keys();
    let mut tick = tokio::time::interval(TICK);
    let mut draw = tokio::time::interval(DRAW);
    draw.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut is_stale = true;
    loop {
        tokio::select! {
            Some(first) = news.recv() => {
                cluster.take(first);
                while let Ok(more) = news.try_recv() {
                    cluster.take(more);
                }
                is_stale = true;
            }
            key = keys.recv() => {
                let Some(event) = key else { return Ok(()) };
                if let Event::Key(key) = event
                    && key.kind == KeyEventKind::Press
                    && screen.press(key) == Step::Quit
                {
                    return Ok(());
                }
                // A key shows its effect at once.
                paint(&mut terminal, &mut screen, &cluster)?;
                is_stale = false;
            }
            _ = tick.tick() => is_stale = true,
            _ = draw.tick(), if is_stale => {
                paint(&mut terminal, &mut screen, &cluster)?;
                is_stale = false;
            }
        }
    }
}

fn paint(
    terminal: &mut ratatui::DefaultTerminal,
    screen: &mut Screen,
    cluster: &Cluster,
) -> Result<(), Failure> {
    let drawn = terminal.draw(|frame| screen.draw(frame, cluster, times::now()));
    drawn.map(drop).map_err(Failure::from)
}

/// What is typed, read by a thread of its own: a terminal cannot be waited for otherwise.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(64);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(DRAW) {
                Ok(false) => {}
                Ok(true) => match event::read() {
                    Ok(event) => {
                        if sender.blocking_send(event).is_err() {
                            return;
                        }
                    }
                    Err(_) => return,
                },
                Err(_) => return,
            }
        }
    });
    receiver
}
