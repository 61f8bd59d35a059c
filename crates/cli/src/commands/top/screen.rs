//! What is on the screen: which table, sorted how, from which row on; and how keys change it.

use super::cluster::Cluster;
use super::tables::{self, Table};
use crate::output::times;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table as Grid};
use volcano_api::time::Time;

/// What to do after a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Go on.
    Stay,
    /// End.
    Quit,
}

const TABS: [&str; 3] = ["Queues", "Jobs", "Nodes"];
const KEYS: &str = " Tab 1 2 3 switch   s sort   r reverse   ↑ ↓ PgUp PgDn scroll   q quit";

/// The state of the screen.
#[derive(Debug, Default)]
pub struct Screen {
    tab: usize,
    views: [View; 3],
    /// Rows that fit, as they were drawn last.
    height: usize,
    colours: bool,
}

/// How one table is looked at.
#[derive(Debug, Default)]
struct View {
    column: usize,
    columns: usize,
    is_reversed: bool,
    selected: usize,
    offset: usize,
    rows: usize,
}

impl Screen {
    /// With colours, if they are wanted.
    pub fn new(colours: bool) -> Self {
        Screen {
            colours,
            ..Screen::default()
        }
    }

    /// A key was pressed.
    pub fn press(&mut self, key: KeyEvent) -> Step {
        let page = self.height.max(1);
        let view = &mut self.views[self.tab];
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Step::Quit,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Step::Quit,
            KeyCode::Tab | KeyCode::Right => self.tab = (self.tab + 1) % TABS.len(),
            KeyCode::BackTab | KeyCode::Left => self.tab = (self.tab + TABS.len() - 1) % TABS.len(),
            KeyCode::Char(digit @ '1'..='3') => self.tab = digit as usize - '1' as usize,
            KeyCode::Char('s') => view.column = (view.column + 1) % view.columns.max(1),
            KeyCode::Char('S') => view.column = (view.column + view.columns.max(1) - 1) % view.columns.max(1),
            KeyCode::Char('r') => view.is_reversed = !view.is_reversed,
            KeyCode::Down | KeyCode::Char('j') => view.selected += 1,
            KeyCode::Up | KeyCode::Char('k') => view.selected = view.selected.saturating_sub(1),
            KeyCode::PageDown => view.selected += page,
            KeyCode::PageUp => view.selected = view.selected.saturating_sub(page),
            KeyCode::Home => view.selected = 0,
            KeyCode::End => view.selected = view.rows,
            _ => {}
        }
        Step::Stay
    }

    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>, cluster: &Cluster, now: Time) {
        let areas = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .split(frame.area());
        frame.render_widget(Paragraph::new(summary(cluster, now)), areas[0]);
        frame.render_widget(Paragraph::new(self.tabs()), areas[1]);
        let table = match self.tab {
            0 => tables::queues(cluster),
            1 => tables::jobs(cluster, now),
            _ => tables::nodes(cluster),
        };
        self.table(frame, areas[2], table);
        frame.render_widget(Paragraph::new(foot(cluster, self.colours)), areas[3]);
    }

    fn tabs(&self) -> Line<'static> {
        let tab = |(at, name): (usize, &&'static str)| {
            let text = format!(" {} {name} ", at + 1);
            match at == self.tab {
                true => Span::styled(text, Style::new().add_modifier(Modifier::REVERSED)),
                false => Span::raw(text),
            }
        };
        Line::from(TABS.iter().enumerate().map(tab).collect::<Vec<_>>())
    }

    fn table(&mut self, frame: &mut Frame<'_>, area: Rect, mut table: Table) {
        self.height = usize::from(area.height).saturating_sub(1);
        let view = &mut self.views[self.tab];
        view.columns = table.headers.len();
        view.rows = table.rows.len();
        view.keep_in_sight(self.height);
        table.sort(view.column, view.is_reversed);
        let widths = table.headers.iter().enumerate().map(|(at, (header, _))| {
            let values = table.rows.iter().map(|row| row[at].text.chars().count());
            let width = values.max().unwrap_or(0).max(header.chars().count() + 1);
            Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX))
        });
        let widths: Vec<_> = widths.collect();
        let sign = if view.is_reversed { '▲' } else { '▼' };
        let headers = table
            .headers
            .iter()
            .enumerate()
            .map(|(at, (header, _))| match at == view.column {
                true => format!("{header}{sign}"),
                false => (*header).to_owned(),
            });
        let header = Row::new(headers).style(Style::new().add_modifier(Modifier::BOLD));
        let colours = self.colours;
        let seen = table.rows.iter().enumerate().skip(view.offset).take(self.height);
        let rows = seen.map(|(at, row)| {
            let cells = row
                .iter()
                .map(|cell| Cell::from(cell.text.clone()).style(colour(&cell.text, colours)));
            let style = match at == view.selected {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => Style::new(),
            };
            Row::new(cells).style(style)
        });
        frame.render_widget(Grid::new(rows, widths).header(header).column_spacing(2), area);
    }
}

impl View {
    /// The selected row exists, and is among those that are shown.
    fn keep_in_sight(&mut self, height: usize) {
        self.selected = self.selected.min(self.rows.saturating_sub(1));
        self.offset = self.offset.min(self.selected);
        if height > 0 && self.selected >= self.offset + height {
            self.offset = self.selected + 1 - height;
        }
    }
}

fn summary(cluster: &Cluster, now: Time) -> String {
    let running = cluster
        .jobs
        .values()
        .filter(|job| job.status.state.phase == "Running")
        .count();
    let pending = cluster
        .jobs
        .values()
        .filter(|job| job.status.state.phase == "Pending")
        .count();
    format!(
        " {}  queues {}  jobs {} ({running} running, {pending} pending)  nodes {}",
        times::clock(now),
        cluster.queues.len(),
        cluster.jobs.len(),
        cluster.nodes.len(),
    )
}

/// What cannot be read, else the keys.
fn foot(cluster: &Cluster, colours: bool) -> Line<'static> {
    match cluster.troubles.iter().next() {
        Some((kind, trouble)) => Line::styled(
            format!(" cannot read {kind}: {trouble}"),
            painted(Color::Red, colours),
        ),
        None => Line::styled(KEYS, Style::new().add_modifier(Modifier::DIM)),
    }
}

fn colour(text: &str, colours: bool) -> Style {
    match text {
        "Running" | "Open" | "Ready" => painted(Color::Green, colours),
        "Pending" | "Inqueue" | "Restarting" | "Closing" => painted(Color::Yellow, colours),
        "Failed" | "Aborted" | "Terminated" | "Closed" | "NotReady" => painted(Color::Red, colours),
        _ => Style::new(),
    }
}

fn painted(colour: Color, colours: bool) -> Style {
    match colours {
        true => Style::new().fg(colour),
        false => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::News;
    use super::*;
    use crate::live::Change;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::{Value, json};

    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        let applied = |value: Value| serde_json::from_value(value).unwrap();
        for (name, weight, allocated) in [("default", 1, "4"), ("research", 3, "2")] {
            let queue = json!({"metadata": {"name": name}, "spec": {"weight": weight},
                "status": {"state": "Open", "allocated": {"cpu": allocated, "memory": "1Gi"}}});
            cluster.take(News::Queue(Change::Applied(
                serde_json::from_value(queue).unwrap(),
            )));
        }
        let group = json!({"metadata": {"namespace": "ns", "name": "g"}, "spec": {"queue": "research"},
            "status": {"phase": "Pending"}});
        cluster.take(News::Group(Change::Applied(
            serde_json::from_value(group).unwrap(),
        )));
        for (name, phase, running) in [("train", "Running", 4), ("wait", "Pending", 0)] {
            let job = json!({"metadata": {"namespace": "ns", "name": name,
                "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"queue": "default", "tasks": [{"replicas": 4}]},
                "status": {"state": {"phase": phase}, "running": running, "minAvailable": 4}});
            cluster.take(News::Job(Change::Applied(serde_json::from_value(job).unwrap())));
        }
        let node = json!({"metadata": {"name": "n1"}, "status": {
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"},
            "conditions": [{"type": "Ready", "status": "True"}]}});
        cluster.take(News::Node(Change::Applied(applied(node))));
        cluster
    }

    fn drawn(screen: &mut Screen, cluster: &Cluster) -> String {
        let mut terminal = Terminal::new(TestBackend::new(110, 7)).unwrap();
        let now = Time::parse("2026-01-01T00:05:00Z").unwrap();
        terminal.draw(|frame| screen.draw(frame, cluster, now)).unwrap();
        let text = terminal.backend().to_string();
        // The clock is in the zone of the machine.
        text.lines()
            .skip(1)
            .map(|line| format!("{}\n", line.trim_matches('"').trim_end()))
            .collect()
    }

    fn press(screen: &mut Screen, code: KeyCode) -> Step {
        screen.press(KeyEvent::from(code))
    }

    #[test]
    fn each_tab_has_its_table() {
        let (cluster, mut screen) = (cluster(), Screen::default());
        let mut all = drawn(&mut screen, &cluster);
        press(&mut screen, KeyCode::Tab);
        all += &drawn(&mut screen, &cluster);
        press(&mut screen, KeyCode::Char('3'));
        all += &drawn(&mut screen, &cluster);
        insta::assert_snapshot!(all);
    }

    #[test]
    fn keys_sort_scroll_and_quit() {
        let (cluster, mut screen) = (cluster(), Screen::default());
        press(&mut screen, KeyCode::Char('2'));
        let first = |text: &str| {
            text.lines()
                .nth(2)
                .unwrap()
                .split_whitespace()
                .nth(1)
                .unwrap()
                .to_owned()
        };
        assert_eq!(first(&drawn(&mut screen, &cluster)), "train");
        press(&mut screen, KeyCode::Char('r'));
        assert_eq!(first(&drawn(&mut screen, &cluster)), "wait");
        for _ in 0..7 {
            press(&mut screen, KeyCode::Char('s'));
        }
        let text = drawn(&mut screen, &cluster);
        assert!(text.contains("Running▲"), "{text}");
        press(&mut screen, KeyCode::End);
        drawn(&mut screen, &cluster);
        assert_eq!(screen.views[1].selected, 1);
        assert_eq!(press(&mut screen, KeyCode::Down), Step::Stay);
        assert_eq!(press(&mut screen, KeyCode::Char('q')), Step::Quit);
    }

    #[test]
    fn colours_are_for_those_who_want_them() {
        let mut cluster = cluster();
        cluster.troubles.insert("nodes", "forbidden".to_owned());
        let now = Time::parse("2026-01-01T00:05:00Z").unwrap();
        for colours in [true, false] {
            let mut terminal = Terminal::new(TestBackend::new(110, 7)).unwrap();
            let mut screen = Screen::new(colours);
            terminal.draw(|frame| screen.draw(frame, &cluster, now)).unwrap();
            let cells = terminal.backend().buffer().content();
            let painted: std::collections::BTreeSet<String> = cells
                .iter()
                .filter(|cell| cell.fg != Color::Reset)
                .map(|cell| cell.fg.to_string())
                .collect();
            let expected: &[&str] = if colours { &["Green", "Red"] } else { &[] };
            assert_eq!(painted.iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn trouble_takes_the_place_of_the_keys() {
        let (mut cluster, mut screen) = (cluster(), Screen::default());
        cluster.troubles.insert("nodes", "forbidden".to_owned());
        let text = drawn(&mut screen, &cluster);
        assert!(text.contains("cannot read nodes: forbidden"), "{text}");
    }
}
