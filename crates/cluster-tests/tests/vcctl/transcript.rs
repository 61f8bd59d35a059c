//! Commands as they are typed, with all that they print: a golden file each.

use regex::Regex;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::process::binary;
use volcano_cluster_tests::stage::Stage;

/// What stands for the namespace of a test; as long as one, so that columns keep their widths.
const NAMESPACE: &str = "test-00000000";

/// Commands so far, and what they printed.
pub struct Transcript {
    namespace: String,
    kubeconfig: PathBuf,
    text: String,
}

impl Transcript {
    /// Of the namespace of a test.
    pub fn of(stage: &Stage) -> Self {
        Transcript {
            namespace: stage.namespace.clone(),
            kubeconfig: cluster().kubeconfig_path(),
            text: String::new(),
        }
    }

    /// Runs a tool and notes what it prints. `NS` in the line is the test's namespace.
    pub fn run(&mut self, line: &str) -> Output {
        let output = tool(line, &self.namespace, &self.kubeconfig).output().unwrap();
        self.note(line, &output);
        output
    }

    /// The same with a file of the stage: `FILE` in the line is its path, of which the name that the test gave it is shown.
    pub fn run_file(&mut self, line: &str, file: &Path) {
        self.run_files(line, &[("FILE", file)]);
    }

    /// The same with several files, each with what stands for it in the line.
    pub fn run_files(&mut self, line: &str, files: &[(&str, &Path)]) {
        let (mut real, mut shown) = (line.to_owned(), line.to_owned());
        for (word, file) in files {
            let name = file.file_name().unwrap().to_string_lossy();
            let given = name.trim_start_matches(&self.namespace).trim_start_matches('-');
            real = real.replace(word, &file.display().to_string());
            shown = shown.replace(word, given);
        }
        let output = tool(&real, &self.namespace, &self.kubeconfig).output().unwrap();
        self.note(&shown, &output);
    }

    fn note(&mut self, line: &str, output: &Output) {
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        writeln!(self.text, "$ {}", line.replace("NS", NAMESPACE)).unwrap();
        self.text.push_str(&out);
        for said in err.lines() {
            writeln!(self.text, "[stderr] {said}").unwrap();
        }
        let code = output.status.code();
        writeln!(
            self.text,
            "[exit {}]\n",
            code.map_or("signal".to_owned(), |code| code.to_string())
        )
        .unwrap();
    }

    /// All of it, with what differs from run to run replaced.
    pub fn text(&self) -> String {
        normal(&self.text, &self.namespace)
    }
}

/// A tool with its words; the kubeconfig comes from the environment, as users have it.
pub fn tool(line: &str, namespace: &str, kubeconfig: &Path) -> Command {
    let mut command = Command::new(binary());
    command.args(words(&line.replace("NS", namespace)));
    command
        .env("KUBECONFIG", kubeconfig)
        .env("TZ", "UTC")
        .env_remove("NO_COLOR");
    command
}

/// The words of a line; quotes hold them together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Ages grow while the test runs, and with them their column: it is made as wide as its name and two blanks. Before and
/// after it everything stays, blanks too; how wide it is to be is tested where the present can be chosen.
fn without_ages(text: &str) -> String {
    let header = Regex::new(r"  (Age +)").unwrap();
    let mut column = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let is_table = !line.contains('\t') && !line.starts_with('[');
        let found = header.captures(line).and_then(|found| found.get(1));
        let (word, place) = match found.filter(|_| is_table) {
            Some(found) => ("Age  ", Some(found.range())),
            None => ("AGE  ", column.filter(|_| is_table)),
        };
        lines.push(match &place {
            Some(place) if line.len() >= place.end => {
                format!("{}{word}{}", &line[..place.start], &line[place.end..])
            }
            _ => line.to_owned(),
        });
        column = place;
    }
    lines.join("\n") + "\n"
}

fn normal(text: &str, namespace: &str) -> String {
    let mut text = without_ages(text)
        .replace(namespace, NAMESPACE)
        .replace(&cluster().url(), "https://SERVER")
        .replace(&cluster().data_directory().display().to_string(), "FOLDER");
    for (pattern, with) in [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "UID",
        ),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "TIME"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"20\d\d-\d\d-\d\d", "YYYY-MM-DD"),
        (
            r"(?m)^(\s*(Resource Version: +\t|resourceVersion: )).+$",
            "${1}VERSION",
        ),
        (r#""resourceVersion": "\d+""#, r#""resourceVersion": "VERSION""#),
        (
            r"(-(?:abort|resume)job-|-(?:open|close)queue-)[a-z0-9]{5}\b",
            "${1}xxxxx",
        ),
        // What was built, when, by what and for which machine.
        (
            r"(?m)^((?:Version|Git SHA|Built At|Go Version|Go OS/Arch): ).+$",
            "${1}BUILD",
        ),
        (r"\b\d\dy\b", "NNy"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}
