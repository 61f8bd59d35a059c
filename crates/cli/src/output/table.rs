//! Tables as Volcano's tools print them: every column padded, the last one too, and nothing cut.

use super::{Out, colour};
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    header: &'static str,
    width: Width,
    is_state: bool,
}

#[derive(Clone, Copy, Debug)]
enum Width {
    Fixed(usize),
    /// As wide as the header or the longest value, with so many blanks after each.
    Longest {
        header: usize,
        value: usize,
    },
}

impl Column {
    /// Of a fixed width; a longer value spills over.
    pub const fn fixed(header: &'static str, width: usize) -> Self {
        Column {
            header,
            width: Width::Fixed(width),
            is_state: false,
        }
    }

    /// As wide as its longest value or the header, and so many blanks.
    pub const fn longest(header: &'static str, blanks: usize) -> Self {
        Column::spaced(header, blanks, blanks)
    }

    /// The wider of the header and its blanks, and the longest value and its blanks.
    pub const fn spaced(header: &'static str, after_header: usize, after_value: usize) -> Self {
        Column {
            header,
            width: Width::Longest {
                header: after_header,
                value: after_value,
            },
            is_state: false,
        }
    }

    /// The same, coloured by what its values say.
    #[must_use]
    pub const fn state(mut self) -> Self {
        self.is_state = true;
        self
    }
}

/// Rows of cells. Only these are kept of a list, however large its objects.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Table {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Puts the rows in the order of so many of their first cells; those that are equal stay as they are.
    pub fn sort(&mut self, cells: usize) {
        self.rows
            .sort_by(|a, b| a.iter().take(cells).cmp(b.iter().take(cells)));
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the header and all rows. The widths, for rows that follow.
    pub fn print(&self, out: &mut Out) -> io::Result<Layout> {
        let layout = self.layout();
        let header: Vec<_> = self
            .columns
            .iter()
            .map(|column| column.header.to_owned())
            .collect();
        out.write_all(layout.line(&header, false).as_bytes())?;
        for row in &self.rows {
            layout.print(out, row)?;
        }
        Ok(layout)
    }

    /// What is printed, without colours.
    #[cfg(test)]
    pub fn lines(&self) -> String {
        let header: Vec<_> = self
            .columns
            .iter()
            .map(|column| column.header.to_owned())
            .collect();
        let layout = self.layout();
        let rows = std::iter::once(&header).chain(&self.rows);
        rows.map(|row| layout.line(row, false)).collect()
    }

    /// The widths that the rows so far ask for.
    pub fn layout(&self) -> Layout {
        let count = |text: &str| text.chars().count();
        let width = |(at, column): (usize, &Column)| match column.width {
            Width::Fixed(width) => width,
            Width::Longest { header, value } => {
                let values = self.rows.iter().filter_map(|row| row.get(at));
                let longest = values.map(|text| count(text) + value).max().unwrap_or(0);
                longest.max(count(column.header) + header)
            }
        };
        Layout {
            widths: self.columns.iter().enumerate().map(width).collect(),
            states: self.columns.iter().map(|column| column.is_state).collect(),
        }
    }
}

/// The widths of a table.
#[derive(Debug)]
pub struct Layout {
    widths: Vec<usize>,
    states: Vec<bool>,
}

impl Layout {
    /// Prints a row.
    pub fn print(&self, out: &mut Out, row: &[String]) -> io::Result<()> {
        let line = self.line(row, out.has_colours());
        out.write_all(line.as_bytes())
    }

    fn line(&self, row: &[String], colours: bool) -> String {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let width = self.widths.get(at).copied().unwrap_or(0);
            let blanks = width.saturating_sub(cell.chars().count());
            let is_state = self.states.get(at).copied().unwrap_or(false);
            match colour::of_state(cell).filter(|_| colours && is_state) {
                Some(colour) => line.push_str(&colour.paint(cell)),
                None => line.push_str(cell),
            }
            let _ = write!(line, "{:blanks$}", "");
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_are_padded_and_never_cut() {
        let mut table = Table::new(vec![
            Column::longest("Name", 3),
            Column::fixed("Phase", 8).state(),
            Column::spaced("Age", 2, 8),
        ]);
        table.push(row(&["a", "Running", "5s"]));
        table.push(row(&["a-long-name", "Restarting", "3m"]));
        let layout = table.layout();
        assert_eq!(layout.widths, [14, 8, 10]);
        let line = |at: usize, colours| layout.line(&table.rows[at], colours);
        assert_eq!(line(0, false), "a             Running 5s        \n");
        assert_eq!(line(1, false), "a-long-name   Restarting3m        \n");
        assert_eq!(line(0, true), "a             \x1b[32mRunning\x1b[0m 5s        \n");
    }

    #[test]
    fn a_header_can_be_the_widest() {
        let table = Table::new(vec![
            Column::longest("Namespace", 3),
            Column::spaced("Ready", 2, 8),
        ]);
        assert_eq!(table.layout().widths, [12, 7]);
    }
}
