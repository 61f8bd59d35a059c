//! A table that is printed row by row, while the next one is still being measured.

/// Columns of fixed width.
pub struct Table {
    heads: Vec<&'static str>,
    widths: Vec<usize>,
}

impl Table {
    /// A table with these columns; the first is aligned to the left.
    pub fn new(heads: &[&'static str]) -> Self {
        let width = |(at, head): (usize, &&str)| if at == 0 { 22 } else { head.len().max(10) };
        Table {
            heads: heads.to_vec(),
            widths: heads.iter().enumerate().map(width).collect(),
        }
    }

    /// Prints the names of the columns.
    pub fn print_head(&self) {
        println!("{}", self.line(self.heads.iter().copied()));
    }

    /// Prints a row.
    pub fn print(&self, cells: &[String]) {
        println!("{}", self.line(cells.iter().map(String::as_str)));
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>) -> String {
        let mut line = String::new();
        for (at, (cell, &width)) in cells.zip(&self.widths).enumerate() {
            if at == 0 {
                line.push_str(&format!("{cell:<width$}"));
            } else {
                line.push_str(&format!("  {cell:>width$}"));
            }
        }
        line.trim_end().to_owned()
    }
}

/// Milliseconds in a unit that reads well.
pub fn millis(ms: f64) -> String {
    match ms {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms >= 1000.0 => format!("{:.2} s", ms / 1000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms if ms >= 0.1 => format!("{ms:.2} ms"),
        ms => format!("{:.1} us", ms * 1000.0),
    }
}

/// Mebibytes in a unit that reads well.
pub fn mib(mib: f64) -> String {
    if mib >= 1024.0 {
        format!("{:.2} GiB", mib / 1024.0)
    } else {
        format!("{mib:.0} MiB")
    }
}

/// A count with a comma between the thousands.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Pods per second.
pub fn rate(pods: u64, ms: f64) -> String {
    if ms <= 0.0 {
        String::new()
    } else {
        count((pods as f64 / ms * 1000.0).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let times: Vec<_> = [0.05, 1.234, 45.6, 1234.0, 80_000.0]
            .into_iter()
            .map(millis)
            .collect();
        assert_eq!(times, ["50.0 us", "1.23 ms", "46 ms", "1.23 s", "80.0 s"]);
        assert_eq!(
            [count(7), count(1_000), count(1_234_567)],
            ["7", "1,000", "1,234,567"]
        );
        assert_eq!([mib(300.4), mib(6144.0)], ["300 MiB", "6.00 GiB"]);
        assert_eq!(rate(10_000, 50.0), "200,000");
    }

    #[test]
    fn columns_line_up() {
        let table = Table::new(&["scenario", "pods", "cycle/target"]);
        let head = table.line(["scenario", "pods", "cycle/target"].into_iter());
        let row = table.line(["a", "10", "0.50"].into_iter());
        assert_eq!(head.len(), row.len());
    }
}
