//! The three tables: cells with what is shown and what they are sorted by.

use super::amounts::{self, CPU, MEMORY, PODS};
use super::cluster::Cluster;
use crate::commands::queue::table::QueueItem;
use crate::output::age;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use volcano_api::core::{Node, ResourceList};
use volcano_api::names::queues::ROOT;
use volcano_api::quantity::Quantity;
use volcano_api::time::Time;

/// A table.
pub struct Table {
    /// Headers, each with whether its column is one of numbers.
    pub headers: &'static [(&'static str, bool)],
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What a column of numbers is sorted by.
    pub number: f64,
}

fn text(text: impl Into<String>) -> Cell {
    Cell {
        text: text.into(),
        number: 0.0,
    }
}

fn count(number: i64) -> Cell {
    Cell {
        text: number.to_string(),
        number: number as f64,
    }
}

fn valued(text: String, number: f64) -> Cell {
    Cell { text, number }
}

impl Table {
    /// Sorts by a column: texts upwards, numbers from the largest down; the other way round if wished.
    pub fn sort(&mut self, column: usize, is_reversed: bool) {
        let is_number = self.headers.get(column).is_some_and(|(_, is_number)| *is_number);
        let compare = |a: &Vec<Cell>, b: &Vec<Cell>| -> Ordering {
            let (Some(a), Some(b)) = (a.get(column), b.get(column)) else {
                return Ordering::Equal;
            };
            if is_number {
                b.number.total_cmp(&a.number)
            } else {
                a.text.cmp(&b.text)
            }
        };
        self.rows.sort_by(compare);
        if is_reversed {
            self.rows.reverse();
        }
    }
}

const QUEUES: &[(&str, bool)] = &[
    ("Queue", false),
    ("State", false),
    ("Weight", true),
    ("Share", true),
    ("Allocated", true),
    ("Deserved", true),
    ("Pending", true),
    ("Inqueue", true),
    ("Running", true),
];

/// The queues: how much of what they deserve they have, and what waits in them.
pub fn queues(cluster: &Cluster) -> Table {
    let parts = Parts::of(cluster);
    let rows = cluster.queues.values().map(|queue| {
        let (name, spec) = (&queue.metadata.name, &queue.spec);
        let counts = cluster.counts.get(name).copied().unwrap_or_default();
        let allocated = &queue.status.allocated;
        let deserved = parts.of_queue(queue, cluster.queues.len());
        // Marked, since it is our sum.
        let is_sum = spec.deserved.is_empty() && name != ROOT;
        let mark = if is_sum { "~" } else { "" };
        let share = share(allocated, &deserved);
        vec![
            text(name),
            text(&queue.status.state),
            count(spec.weight),
            match share {
                Some(share) => valued(format!("{:.0}%", share * 100.0), share),
                None => valued("-".to_owned(), -1.0),
            },
            valued(amounts::line(allocated), amounts::of(allocated, CPU).as_f64()),
            valued(
                format!("{mark}{}", amounts::line(&deserved)),
                amounts::of(&deserved, CPU).as_f64(),
            ),
            count(counts.pending),
            count(counts.inqueue),
            count(counts.running),
        ]
    });
    Table {
        headers: QUEUES,
        rows: rows.collect(),
    }
}

/// What is to be divided among the queues, by what each is below.
struct Parts<'a> {
    queues: &'a BTreeMap<String, QueueItem>,
    total: ResourceList,
    /// The weights of the queues below one, taken together.
    weights: BTreeMap<&'a str, i64>,
}

impl<'a> Parts<'a> {
    fn of(cluster: &'a Cluster) -> Self {
        let mut parts = Parts {
            queues: &cluster.queues,
            total: cluster.total(),
            weights: BTreeMap::new(),
        };
        for queue in cluster
            .queues
            .values()
            .filter(|queue| queue.metadata.name != ROOT)
        {
            let parent = parts.parent(queue);
            *parts.weights.entry(parent).or_default() += queue.spec.weight;
        }
        parts
    }

    /// The queue above; the root where none is named, or none is there.
    fn parent(&self, queue: &'a QueueItem) -> &'a str {
        let parent = queue.spec.parent.as_str();
        if self.queues.contains_key(parent) {
            parent
        } else {
            ROOT
        }
    }

    /// What a queue deserves. Without a share of its own it has the part of its parent's that its weight stands for beside
    /// its siblings, up to its limit. `depth` ends a chain of parents that goes in circles.
    fn of_queue(&self, queue: &'a QueueItem, depth: usize) -> ResourceList {
        let spec = &queue.spec;
        if !spec.deserved.is_empty() {
            return spec.deserved.clone();
        }
        if queue.metadata.name == ROOT || depth == 0 {
            return self.total.clone();
        }
        let parent = self.parent(queue);
        let above = match self.queues.get(parent) {
            Some(above) => self.of_queue(above, depth - 1),
            None => self.total.clone(),
        };
        let weights = self.weights.get(parent).copied().unwrap_or(0);
        by_weight(&above, spec.weight, weights, &spec.capability)
    }
}

/// The part of an amount that a weight stands for.
fn by_weight(total: &ResourceList, weight: i64, weights: i64, limit: &ResourceList) -> ResourceList {
    let part = |(name, amount): (&String, &Quantity)| {
        let nanos = amount.nanos().saturating_mul(i128::from(weight)) / i128::from(weights.max(1));
        let share = Quantity::from_nanos(nanos, amount.format());
        let share = limit.get(name).map_or(share, |limit| share.min(*limit));
        (name.clone(), share)
    };
    total.iter().map(part).collect()
}

/// The largest part of what is deserved that is allocated, over processor, memory and the like.
fn share(allocated: &ResourceList, deserved: &ResourceList) -> Option<f64> {
    let parts = deserved
        .iter()
        .filter(|(name, _)| *name != PODS)
        .filter_map(|(name, deserved)| amounts::part(amounts::of(allocated, name), *deserved));
    parts.max_by(f64::total_cmp)
}

const JOBS: &[(&str, bool)] = &[
    ("Namespace", false),
    ("Job", false),
    ("Queue", false),
    ("Phase", false),
    ("Min", true),
    ("Replicas", true),
    ("Pending", true),
    ("Running", true),
    ("Succeeded", true),
    ("Failed", true),
    ("Age", true),
];

/// The Jobs.
pub fn jobs(cluster: &Cluster, now: Time) -> Table {
    let rows = cluster.jobs.values().map(|job| {
        let (meta, status) = (&job.metadata, &job.status);
        let created = meta.creation_timestamp;
        let old = created.map_or(0.0, |created| now.seconds_since(created));
        vec![
            text(&meta.namespace),
            text(&meta.name),
            text(&job.spec.queue),
            text(&status.state.phase),
            count(status.min_available),
            count(job.replicas()),
            count(status.pending),
            count(status.running),
            count(status.succeeded),
            count(status.failed),
            valued(age::since(now, created), old),
        ]
    });
    Table {
        headers: JOBS,
        rows: rows.collect(),
    }
}

const NODES: &[(&str, bool)] = &[
    ("Node", false),
    ("Status", false),
    ("CPU", true),
    ("CPU%", true),
    ("Memory", true),
    ("Mem%", true),
    ("Pods", true),
    ("Other", false),
];

/// The nodes: what pods ask for, of what they may.
pub fn nodes(cluster: &Cluster) -> Table {
    let nothing = super::cluster::Used::default();
    let rows = cluster.nodes.iter().map(|(name, node)| {
        let used = cluster.used.get(name).unwrap_or(&nothing);
        let room = &node.status.allocatable;
        let of = |resource: &str| {
            let (taken, all) = (amounts::of(&used.requests, resource), amounts::of(room, resource));
            let shown = format!(
                "{}/{}",
                amounts::short(resource, taken),
                amounts::short(resource, all)
            );
            let part = amounts::part(taken, all).unwrap_or(0.0);
            (
                valued(shown, taken.as_f64()),
                valued(format!("{:.0}%", part * 100.0), part),
            )
        };
        let ((cpu, cpu_part), (memory, memory_part)) = (of(CPU), of(MEMORY));
        let pods = format!("{}/{}", used.pods, amounts::short(PODS, amounts::of(room, PODS)));
        let others = room.keys().filter(|name| name.contains('/')).map(|name| {
            let short = name.rsplit('/').next().unwrap_or(name);
            format!("{short} {}", of(name).0.text)
        });
        vec![
            text(name),
            text(status(node)),
            cpu,
            cpu_part,
            memory,
            memory_part,
            valued(pods, used.pods as f64),
            text(others.collect::<Vec<_>>().join(" ")),
        ]
    });
    Table {
        headers: NODES,
        rows: rows.collect(),
    }
}

fn status(node: &Node) -> String {
    let is_ready = node
        .status
        .conditions
        .iter()
        .any(|c| c.kind == "Ready" && c.status == "True");
    let word = if is_ready { "Ready" } else { "NotReady" };
    match node.spec.unschedulable {
        true => format!("{word},cordoned"),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        let amount = |text: &str| Quantity::parse(text).unwrap();
        pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), amount(text)))
            .collect()
    }

    #[test]
    fn a_share_is_of_the_resource_that_is_scarcest() {
        let deserved = list(&[("cpu", "10"), ("memory", "10Gi"), ("pods", "1")]);
        let allocated = list(&[("cpu", "2"), ("memory", "5Gi"), ("pods", "100")]);
        assert_eq!(share(&allocated, &deserved), Some(0.5));
        assert_eq!(share(&allocated, &ResourceList::new()), None);
    }

    #[test]
    fn a_weight_stands_for_its_part_up_to_the_limit() {
        let total = list(&[("cpu", "12"), ("memory", "12Gi")]);
        let part = by_weight(&total, 1, 3, &list(&[("cpu", "2")]));
        assert_eq!(part, list(&[("cpu", "2"), ("memory", "4Gi")]));
    }

    #[test]
    fn what_a_queue_has_is_divided_among_those_below_it() {
        let mut cluster = Cluster::default();
        for (name, parent, weight) in [
            ("root", "", 1),
            ("team", "root", 1),
            ("other", "", 3),
            ("a", "team", 1),
            ("b", "team", 1),
            ("lost", "nowhere", 4),
            ("round", "about", 1),
            ("about", "round", 1),
        ] {
            let queue =
                serde_json::json!({"metadata": {"name": name}, "spec": {"parent": parent, "weight": weight}});
            let queue = serde_json::from_value(queue).unwrap();
            cluster.queues.insert(name.to_owned(), queue);
        }
        let node = serde_json::json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "16"}}});
        let node = serde_json::from_value(node).unwrap();
        cluster.nodes.insert("n".to_owned(), node);
        let table = queues(&cluster);
        let deserved = |name: &str| {
            let row = table.rows.iter().find(|row| row[0].text == name).unwrap();
            row[5].text.clone()
        };
        let cases = [
            ("root", "16 cpu"),
            ("team", "~2 cpu"),
            ("other", "~6 cpu"),
            ("lost", "~8 cpu"),
            ("a", "~1 cpu"),
            ("b", "~1 cpu"),
        ];
        for (name, expected) in cases {
            assert_eq!(deserved(name), expected, "{name}");
        }
    }

    #[test]
    fn numbers_are_sorted_from_the_largest_and_texts_upwards() {
        let mut table = Table {
            headers: &[("Name", false), ("Count", true)],
            rows: vec![
                vec![text("b"), count(10)],
                vec![text("a"), count(9)],
                vec![text("c"), count(100)],
            ],
        };
        let names = |table: &Table| -> String { table.rows.iter().map(|row| row[0].text.as_str()).collect() };
        table.sort(0, false);
        assert_eq!(names(&table), "abc");
        table.sort(1, false);
        assert_eq!(names(&table), "cba");
        table.sort(1, true);
        assert_eq!(names(&table), "abc");
    }
}
