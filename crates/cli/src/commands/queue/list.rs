//! `vcctl queue list`: all queues with their PodGroups by phase.

use super::table::{Counts, GroupItem, QueueItem, columns, counts, row};
use crate::api::{Api, Scope};
use crate::args::{ConnectArgs, IgnoredArgs, ListingArgs};
use crate::commands::listing::{Listing, deleted};
use crate::failure::Failure;
use crate::live::{Change, Live};
use crate::output::{Format, Out, Table};
use std::collections::BTreeMap;
use std::io::Write as _;
use volcano_api::names::kinds;

/// The column that says how a queue is.
const STATE: usize = 2;

/// List all queues
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    how: ListingArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &ListArgs, out: &mut Out) -> Result<u8, Failure> {
    let api = Api::connect(&args.connect).await?;
    let format = args.how.output.output;
    let is_wide = format == Some(Format::Wide);
    let is_table = format.is_none() || is_wide;
    let scope = Scope::new(kinds::QUEUE, "").labelled(&args.how.label_selector);
    if args.how.watch && is_table {
        return Watch::new(is_wide).run(&api, scope, out).await;
    }
    let counts = match is_table {
        true => counts(&api)
            .await
            .map_err(|failure| failure.after("failed to list podgroups with err: "))?,
        false => BTreeMap::new(),
    };
    let listing = Listing::<QueueItem> {
        scope,
        how: &args.how,
        columns: columns(is_wide),
        state: Some(STATE),
        order: 0,
        keep: &|_| true,
        row: &|queue| {
            let counts = counts.get(&queue.metadata.name).copied().unwrap_or_default();
            row(queue, counts, is_wide)
        },
        bare_header: false,
    };
    listing.show(&api, out).await
}

/// Queues that change, and so do the numbers of their PodGroups.
struct Watch {
    is_wide: bool,
    queues: BTreeMap<String, QueueItem>,
    /// Queue and phase of each PodGroup.
    groups: BTreeMap<(String, String), (String, String)>,
    counts: BTreeMap<String, Counts>,
    shown: BTreeMap<String, Vec<String>>,
}

impl Watch {
    fn new(is_wide: bool) -> Self {
        Watch {
            is_wide,
            queues: BTreeMap::new(),
            groups: BTreeMap::new(),
            counts: BTreeMap::new(),
            shown: BTreeMap::new(),
        }
    }

    async fn run(mut self, api: &Api, scope: Scope, out: &mut Out) -> Result<u8, Failure> {
        let mut queues = Live::<QueueItem>::new(api, scope);
        let mut groups = Live::<GroupItem>::new(api, Scope::new(kinds::POD_GROUP, ""));
        let (mut queues_listed, mut groups_listed) = (false, false);
        let mut layout = None;
        loop {
            let mut went = None;
            let touched = tokio::select! {
                change = queues.next() => match change {
                    Change::Applied(queue) => {
                        let name = queue.metadata.name.clone();
                        self.queues.insert(name.clone(), queue);
                        vec![name]
                    }
                    Change::Gone(gone) => {
                        went = self.remove(&gone.key.name);
                        vec![]
                    }
                    Change::Listed => {
                        queues_listed = true;
                        vec![]
                    }
                    Change::Trouble(failure) if !queues_listed => return Err(failure),
                    Change::Trouble(_) => vec![],
                },
                change = groups.next() => match change {
                    Change::Applied(group) => {
                        let key = (group.metadata.namespace, group.metadata.name);
                        self.count(key, Some((group.spec.queue, group.status.phase)))
                    }
                    Change::Gone(gone) => self.count((gone.key.namespace, gone.key.name), None),
                    Change::Listed => {
                        groups_listed = true;
                        vec![]
                    }
                    Change::Trouble(failure) if !groups_listed => {
                        return Err(failure.after("failed to list podgroups with err: "));
                    }
                    Change::Trouble(_) => vec![],
                },
            };
            if !queues_listed || !groups_listed {
                continue;
            }
            let Some(layout) = &layout else {
                let mut table = Table::new(columns(self.is_wide));
                let names: Vec<_> = self.queues.keys().cloned().collect();
                for row in names.iter().filter_map(|name| self.news(name)) {
                    table.push(row);
                }
                layout = Some(table.print(out)?);
                out.flush()?;
                continue;
            };
            let news = touched.iter().filter_map(|name| self.news(name));
            for row in went.into_iter().chain(news) {
                layout.print(out, &row)?;
                out.flush()?;
            }
        }
    }

    /// Counts a PodGroup as it is now. The queues whose numbers changed.
    fn count(&mut self, key: (String, String), now: Option<(String, String)>) -> Vec<String> {
        let before = match &now {
            Some(now) => self.groups.insert(key, now.clone()),
            None => self.groups.remove(&key),
        };
        let mut touched = Vec::new();
        for (place, count) in [(before, -1), (now, 1)] {
            if let Some((queue, phase)) = place {
                self.counts.entry(queue.clone()).or_default().add(&phase, count);
                touched.push(queue);
            }
        }
        touched.dedup();
        touched
    }

    /// Forgets a queue. Its last row, if it was shown.
    fn remove(&mut self, name: &str) -> Option<Vec<String>> {
        self.queues.remove(name);
        let row = self.shown.remove(name)?;
        Some(deleted(row, Some(STATE)))
    }

    /// The row of a queue, if it differs from what was shown.
    fn news(&mut self, name: &str) -> Option<Vec<String>> {
        let queue = self.queues.get(name)?;
        let counts = self.counts.get(name).copied().unwrap_or_default();
        let row = row(queue, counts, self.is_wide);
        let is_new = self.shown.get(name) != Some(&row);
        self.shown.insert(name.to_owned(), row.clone());
        is_new.then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_goes_is_told_and_comes_back_as_a_new_one() {
        let queue = || QueueItem {
            metadata: crate::api::Meta {
                name: "q".to_owned(),
                ..Default::default()
            },
            ..QueueItem::default()
        };
        let mut watch = Watch::new(false);
        watch.queues.insert("q".to_owned(), queue());
        let row = watch.news("q").unwrap();
        assert_eq!(watch.news("q"), None, "nothing is new");
        assert_eq!(watch.remove("q").unwrap()[..3], ["q", "0", "Deleted"]);
        assert_eq!(watch.remove("q"), None);
        watch.queues.insert("q".to_owned(), queue());
        assert_eq!(watch.news("q"), Some(row));
    }
}
