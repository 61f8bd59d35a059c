//! Amounts of queues as the scheduler counts them: CPU in thousandths, memory in bytes, pods whole, everything else in
//! thousandths. Counts of objects are no amounts.

use std::collections::BTreeMap;
use std::fmt;

use volcano_api::meta::ResourceList;
use volcano_api::names::resources::{COUNT_PREFIX, CPU, MEMORY, PODS};
use volcano_api::quantity::{Format, Quantity};

const ONE: Quantity = Quantity::from_value(1, Format::DecimalSi);
const THOUSANDTH: Quantity = Quantity::from_milli(1, Format::DecimalSi);

/// Amounts by resource. What is not there is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts<'a>(BTreeMap<&'a str, i128>);

impl<'a> Amounts<'a> {
    pub fn of(list: &'a ResourceList) -> Self {
        let mut amounts = Amounts::default();
        amounts.add(list);
        amounts
    }

    pub fn add(&mut self, list: &'a ResourceList) {
        for (name, quantity) in list {
            if let Some(value) = amount(name, *quantity) {
                *self.0.entry(name).or_default() += value;
            }
        }
    }

    fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Whether any amount is larger than the limit's. CPU and memory always have a limit, if need be of nothing; of
    /// everything else that the limit does not name even nothing is too much.
    pub fn exceeds(&self, limit: &Amounts<'_>) -> bool {
        self.0.iter().any(|(name, value)| {
            let unnamed = !limit.0.contains_key(name) && ![CPU, MEMORY].contains(name);
            unnamed || *value > limit.get(name)
        })
    }
}

/// How much of a resource a queue has; nothing for what is not counted.
pub(super) fn amount(name: &str, quantity: Quantity) -> Option<i128> {
    match name {
        MEMORY | PODS => Some(parts(quantity, ONE)),
        _ if name.starts_with(COUNT_PREFIX) => None,
        _ => Some(parts(quantity, THOUSANDTH)),
    }
}

/// How many parts of a size there are, one that is begun included. Sums of very large amounts stay exact.
fn parts(quantity: Quantity, size: Quantity) -> i128 {
    let (nanos, size) = (quantity.nanos(), size.nanos());
    nanos / size + (nanos % size).signum()
}

/// An amount as messages about a single resource show it.
pub(super) fn text(name: &str, value: i128) -> String {
    let units = i64::try_from(value).unwrap_or(i64::MAX);
    match name {
        CPU => Quantity::from_milli(units, Format::DecimalSi).to_string(),
        MEMORY => Quantity::from_value(units, Format::BinarySi).to_string(),
        _ => format!("{value}.00"),
    }
}

impl fmt::Display for Amounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu {}.00, memory {}.00", self.get(CPU), self.get(MEMORY))?;
        let others = self.0.iter().filter(|(name, _)| ![CPU, MEMORY].contains(*name));
        others
            .into_iter()
            .try_for_each(|(name, value)| write!(f, ", {name} {value}.00"))
    }
}
