//! The cases whose outcome differs on purpose. The list is short by rule: a long one would hide mistakes.

/// The list, one case a line.
const TEXT: &str = include_str!("known-differences.txt");

/// Why a case is known to differ; `case` is its file name without the extension.
pub fn reason(case: &str) -> Option<&'static str> {
    entries(TEXT)
        .find(|(name, _)| *name == case)
        .map(|(_, reason)| reason)
}

fn entries(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, reason)| (name.trim(), reason.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_well_formed_and_short() {
        let lines = TEXT
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
            .count();
        assert_eq!(
            entries(TEXT)
                .filter(|(name, reason)| !name.is_empty() && !reason.is_empty())
                .count(),
            lines
        );
        assert!(lines <= 3, "{lines} known differences");
    }

    #[test]
    fn lines_are_a_name_and_a_reason() {
        let text = "# comment\n\nallocate-001: ties are broken by name: n1\n";
        assert_eq!(
            entries(text).collect::<Vec<_>>(),
            [("allocate-001", "ties are broken by name: n1")]
        );
        assert_eq!(reason("no-such-case"), None);
    }
}
