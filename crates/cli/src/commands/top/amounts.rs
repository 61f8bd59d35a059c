//! Amounts, short enough for a column.

use volcano_api::core::ResourceList;
use volcano_api::quantity::Quantity;

/// The processor.
pub const CPU: &str = "cpu";
/// Memory.
pub const MEMORY: &str = "memory";
/// Places for pods.
pub const PODS: &str = "pods";

/// The amount of a resource; zero when it is not named.
pub fn of(list: &ResourceList, name: &str) -> Quantity {
    list.get(name).copied().unwrap_or_default()
}

/// An amount of a resource: bytes in units of 1024, everything else as a number.
pub fn short(name: &str, amount: Quantity) -> String {
    let is_bytes = name == MEMORY || name.ends_with("storage");
    if is_bytes {
        bytes(amount.as_f64())
    } else {
        number(amount.as_f64())
    }
}

fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    if rounded.fract() == 0.0 {
        format!("{rounded:.0}")
    } else {
        format!("{rounded:.1}")
    }
}

fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let (mut value, mut unit) = (value, 0);
    while value.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{}{}", number(value), UNITS[unit])
}

/// Processor, memory and what else there is, on one line.
pub fn line(list: &ResourceList) -> String {
    if list.is_empty() {
        return "-".to_owned();
    }
    let rank = |name: &&String| match name.as_str() {
        CPU => 0,
        MEMORY => 1,
        _ => 2,
    };
    let mut names: Vec<_> = list.keys().filter(|name| *name != PODS).collect();
    names.sort_by_key(|name| (rank(name), (*name).clone()));
    let parts = names.iter().map(|name| {
        let amount = short(name, of(list, name));
        match name.as_str() {
            CPU => format!("{amount} cpu"),
            MEMORY => amount,
            other => format!("{amount} {}", other.rsplit('/').next().unwrap_or(other)),
        }
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// How much of an amount another one is; none of nothing.
pub fn part(used: Quantity, of: Quantity) -> Option<f64> {
    (of.as_f64() > 0.0).then(|| used.as_f64() / of.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        let amount = |text: &str| Quantity::parse(text).unwrap();
        assert_eq!(short(CPU, amount("1500m")), "1.5");
        assert_eq!(short(CPU, amount("64")), "64");
        assert_eq!(short(MEMORY, amount("1536Mi")), "1.5Gi");
        assert_eq!(short(MEMORY, amount("100")), "100");
        let list = [
            ("nvidia.com/gpu", "8"),
            ("memory", "1Gi"),
            ("cpu", "2"),
            ("pods", "110"),
        ];
        let list = list.map(|(name, text)| (name.to_owned(), amount(text))).into();
        assert_eq!(line(&list), "2 cpu 1Gi 8 gpu");
        assert_eq!(line(&ResourceList::new()), "-");
        assert_eq!(part(amount("1"), amount("4")), Some(0.25));
        assert_eq!(part(amount("1"), amount("0")), None);
    }
}
