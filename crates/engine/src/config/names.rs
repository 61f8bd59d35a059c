//! The nearest valid name for a mistyped one.

use super::ArgSpec;

/// The candidate that differs least from `name`, if it is close enough to be what was meant. Letter case does not
/// count; of several equally near, the first.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ranked = candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(name, candidate)?, candidate)));
    ranked
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The nearest argument key. For a family of keys such as `binpack.resources.*` the part before the `*` is
/// corrected and what follows is kept.
pub(super) fn nearest_argument(key: &str, specs: &[ArgSpec]) -> Option<String> {
    let ranked = specs.iter().filter_map(|spec| match spec.prefix() {
        None => Some((distance(key, spec.key)?, spec.key.to_owned())),
        Some(prefix) => {
            let (start, rest) = split_segments(key, prefix.matches('.').count())?;
            Some((distance(start, prefix)?, format!("{prefix}{rest}")))
        }
    });
    ranked.min_by_key(|(distance, _)| *distance).map(|(_, key)| key)
}

/// The number of typing errors between two names; `None` if there are too many for their length.
fn distance(name: &str, candidate: &str) -> Option<usize> {
    let (length, candidate_length) = (name.chars().count(), candidate.chars().count());
    let allowed = (length / 4).clamp(1, 4);
    if length.abs_diff(candidate_length) > allowed {
        return None;
    }
    let distance = strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase());
    (distance <= allowed && distance < candidate_length).then_some(distance)
}

/// Splits after the given number of dots; `None` if nothing is left behind them.
fn split_segments(key: &str, dots: usize) -> Option<(&str, &str)> {
    let (end, _) = key.match_indices('.').nth(dots.checked_sub(1)?)?;
    let (start, rest) = key.split_at(end + 1);
    (!rest.is_empty()).then_some((start, rest))
}

#[cfg(test)]
mod tests {
    use super::super::catalog;
    use super::*;

    #[test]
    fn only_a_close_name_is_suggested() {
        let plugins = || catalog::PLANNED_PLUGINS.iter().map(|plugin| plugin.name);
        for (name, suggestion) in [
            ("gangs", Some("gang")),
            ("predicate", Some("predicates")),
            ("Binpack", Some("binpack")),
            ("numaaware", Some("numa-aware")),
            ("network_topology_aware", Some("network-topology-aware")),
            ("cdb", Some("cdp")),
            ("fairshare", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, plugins()), suggestion, "{name:?}");
        }
    }

    #[test]
    fn the_start_of_a_family_is_corrected_and_its_rest_kept() {
        for (key, suggestion) in [
            (
                "binpack.resource.nvidia.com/gpu",
                Some("binpack.resources.nvidia.com/gpu"),
            ),
            ("binpack.wieght", Some("binpack.weight")),
            ("binpack.resources.", Some("binpack.resources")),
            ("nodeaffinity.weight", None),
        ] {
            assert_eq!(
                nearest_argument(key, catalog::BINPACK).as_deref(),
                suggestion,
                "{key:?}"
            );
        }
    }
}
