//! The score of volume binding: how full volumes, or the storage that they are made of, would be.

use crate::config::{Arguments, Value};
use crate::plugin::MAX_NODE_SCORE;
use std::collections::BTreeMap;
use volcano_api::core::CsiStorageCapacity;
use volcano_api::quantity::Quantity;

/// The highest score of a point in a configuration.
const MAX_POINT_SCORE: i64 = 10;
const FULL: i64 = 100;

/// What claims ask for, and what is there for them, in bytes and by class.
#[derive(Default)]
pub(super) struct Fill<'a>(BTreeMap<&'a str, (i64, i64)>);

impl<'a> Fill<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A claim gets a volume: each brings its own room.
    pub(super) fn add_volume(&mut self, class: &'a str, asked: Quantity, volume: Quantity) {
        let (used, room) = self.0.entry(class).or_default();
        *used = used.saturating_add(asked.value());
        *room = room.saturating_add(volume.value());
    }

    /// A claim gets a volume that is made: all of a class share the storage.
    pub(super) fn add_storage(&mut self, class: &'a str, asked: Quantity, place: &CsiStorageCapacity) {
        let free = place.capacity.or(place.maximum_volume_size).unwrap_or_default();
        let (used, room) = self.0.entry(class).or_default();
        *used = used.saturating_add(asked.value());
        *room = free.value();
    }
}

/// The score by use: lines between points whose uses go up, level before the first and after the last.
pub(in super::super) struct Shape(Vec<(i64, i64)>);

impl Shape {
    /// That of `volumebinding.shape`; without it, the emptier the better.
    pub(in super::super) fn of(arguments: &Arguments) -> Self {
        let number = |point: &Value, key| point[key].as_i64().unwrap_or(0);
        let point = |point: &Value| (number(point, "utilization"), number(point, "score"));
        let given = arguments.get("volumebinding.shape").and_then(Value::as_array);
        let mut points = given.map_or_else(Vec::new, |points| points.iter().map(point).collect());
        if points.is_empty() {
            points = vec![(0, MAX_POINT_SCORE), (FULL, 0)];
        }
        for (_, score) in &mut points {
            *score *= MAX_NODE_SCORE / MAX_POINT_SCORE;
        }
        Shape(points)
    }

    /// The mean of all classes, 0 without any.
    pub(super) fn mean(&self, fill: &Fill<'_>) -> i64 {
        if fill.is_empty() {
            return 0;
        }
        let sum: i64 = fill
            .0
            .values()
            .map(|&(used, room)| self.at(use_of(used, room)))
            .sum();
        (sum as f64 / fill.0.len() as f64).round() as i64
    }

    fn at(&self, utilization: i64) -> i64 {
        let after = self.0.partition_point(|&(point, _)| point < utilization);
        match (
            after.checked_sub(1).map(|before| self.0[before]),
            self.0.get(after),
        ) {
            (Some((from, low)), Some(&(to, high))) => low + (high - low) * (utilization - from) / (to - from),
            (_, Some(&(_, score))) | (Some((_, score)), None) => score,
            (None, None) => 0,
        }
    }
}

/// In percent; what has no room, or too little, is full.
fn use_of(used: i64, room: i64) -> i64 {
    if room == 0 || used > room {
        return FULL;
    }
    let percent = i128::from(used) * i128::from(FULL) / i128::from(room);
    percent.try_into().unwrap_or(FULL)
}
