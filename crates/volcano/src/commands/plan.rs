//! `volcano plan`: what would the scheduler do with these objects?

use super::{files, print, tell};
use crate::failure::Failure;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use volcano_api::names::{SCHEDULER, queues};
use volcano_api::time::Time;
use volcano_engine::config::SchedulerConf;
use volcano_engine::model::SchedulerNames;
use volcano_plan::case::{self, CaseResult, Verdict};
use volcano_plan::cluster::{Cluster, Reader};
use volcano_plan::output::{self, Timing};
use volcano_plan::session::{self, Session, Setup};
use volcano_plan::submit::{self, Submitted};
use volcano_plan::table;

/// Exit code when a case is not as expected.
const DIFFERS: u8 = 1;

/// Show what the scheduler would do with the objects of files; nothing is written anywhere
///
/// Reads nodes, pods, PodGroups, queues and whatever else scheduling looks at, runs the configured actions over
/// them, and prints which pods would be placed where, who would be evicted for whom, and why others wait:
///
///   kubectl get nodes,pods,podgroups,queues,priorityclasses -A -o json | volcano plan -f -
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("input").required(true).args(["files", "case", "cases"])))]
#[command(
    after_help = "Exit codes: 0 planned, or all cases as expected; 1 a case differs; 2 wrong usage or input."
)]
pub struct PlanArgs {
    /// Objects: YAML or JSON, several documents, Lists; a directory means its *.yaml, *.yml and *.json files; -
    /// reads standard input. May be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Scheduler configuration, as the scheduler reads it [default: that of a snapshot, else that of a scheduler
    /// without one]
    #[arg(long, value_name = "FILE")]
    scheduler_conf: Option<PathBuf>,

    /// A new Job, planned as the youngest of the cluster: would it start now? May be repeated
    #[arg(long, value_name = "FILE", requires = "files")]
    submit: Vec<PathBuf>,

    /// Cycles to run; between two, bound pods start to run and evicted pods are gone
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    cycles: u32,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    /// Tell how long loading, the cycle and each action took
    #[arg(long)]
    timings: bool,

    /// Place pods that ask for this scheduler. May be repeated [default: those of a snapshot, else volcano]
    #[arg(long, value_name = "NAME")]
    scheduler_name: Vec<String>,

    /// The queue of PodGroups that name none [default: that of a snapshot, else default]
    #[arg(long, value_name = "NAME")]
    default_queue: Option<String>,

    /// The moment of the first cycle, RFC 3339 [default: that of a snapshot, else the current time]
    #[arg(long, value_name = "TIME")]
    now: Option<String>,

    /// Run one conformance case and print how its outcome differs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "cases", "scheduler_conf"])]
    case: Option<PathBuf>,

    /// Run all conformance cases (*.json) of a directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "scheduler_conf"])]
    cases: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Runs the command.
///
/// # Errors
/// When the input cannot be used.
pub fn run(args: &PlanArgs) -> Result<ExitCode, Failure> {
    match (&args.case, &args.cases) {
        (Some(file), _) => run_case(file),
        (_, Some(directory)) => run_cases(directory),
        _ => run_plan(args),
    }
}

fn run_plan(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let given_now = given_moment(args)?;
    if args
        .files
        .iter()
        .chain(&args.submit)
        .filter(|path| files::is_stdin(path))
        .count()
        > 1
    {
        return Err(Failure::new("standard input (-) can be read only once"));
    }
    let started = Instant::now();
    let mut cluster = read(&args.files)?;
    let conf = configuration(args, &cluster)?;
    let now = given_now.or(cluster.settings.now).unwrap_or_else(current_moment);
    let scheduler_names = scheduler_names(args, &cluster);
    let default_queue = default_queue(args, &cluster);
    cluster.complete(&default_queue);
    let submitted = add_jobs(args, &mut cluster, &scheduler_names, now)?;
    // A scheduler's own snapshot has pods of others only to show whose their groups are.
    if !cluster.settings.complete {
        cluster.note_strangers(&scheduler_names);
    }
    let mut notes = std::mem::take(&mut cluster.notes);
    let plugins = session::missing_plugins(&conf)
        .into_iter()
        .map(|name| ("plugin", name));
    let actions = session::missing_actions(&conf)
        .into_iter()
        .map(|name| ("action", name));
    for (what, name) in plugins.chain(actions) {
        notes.push(format!(
            "{what} {name} of the configuration is not available yet: planned without it"
        ));
    }
    let setup = Setup {
        conf,
        names: SchedulerNames::Only(scheduler_names),
        default_queue,
        cycles: args.cycles,
        now,
    };
    let session = Session::load(setup, cluster);
    let load_ms = started.elapsed().as_secs_f64() * 1000.0;
    let outcome = session.run(&mut || started.elapsed().as_secs_f64() * 1000.0);
    let cycle_ms = outcome.steps.iter().map(|(_, took_ms)| took_ms).sum();
    let timing = args.timings.then_some(Timing { load_ms, cycle_ms });
    let text = match args.output {
        Format::Json => output::json(&outcome, timing)?,
        Format::Yaml => output::yaml(&outcome, timing)?,
        Format::Table => table::render(&outcome, &submitted, timing, terminal_width()),
    };
    print(&text)?;
    for note in notes {
        tell(&format_args!("note: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn add_jobs(
    args: &PlanArgs,
    cluster: &mut Cluster,
    scheduler_names: &[String],
    now: Time,
) -> Result<Vec<Submitted>, Failure> {
    let scheduler_name = scheduler_names.first().map_or(SCHEDULER, String::as_str);
    let files = files::expand(&args.submit)?;
    let sources = files.iter().map(|file| files::open(file));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    Ok(submit::submit(cluster, &sources, scheduler_name, now)?)
}

/// The objects of files, one file in memory at a time.
fn read(paths: &[PathBuf]) -> Result<Cluster, Failure> {
    let mut reader = Reader::default();
    for path in files::expand(paths)? {
        reader.add(&files::open(&path)?)?;
    }
    Ok(reader.finish()?)
}

/// The configuration of the command line, else the one that came with the objects, else the default.
fn configuration(args: &PlanArgs, cluster: &Cluster) -> Result<SchedulerConf, Failure> {
    if let Some(path) = &args.scheduler_conf {
        let source = files::open(path)?;
        return Ok(session::configuration(&source.name, source.text())?);
    }
    Ok(match &cluster.settings.conf {
        Some(text) => session::configuration("conf of the input", text)?,
        None => session::configuration("default configuration", SchedulerConf::default_text())?,
    })
}

/// The names of the command line, else those that came with the objects, else the usual one.
fn scheduler_names(args: &PlanArgs, cluster: &Cluster) -> Vec<String> {
    match &cluster.settings.scheduler_names {
        _ if !args.scheduler_name.is_empty() => args.scheduler_name.clone(),
        Some(names) => names.clone(),
        None => vec![SCHEDULER.to_owned()],
    }
}

/// The queue of the command line, else the one that came with the objects, else the usual one.
fn default_queue(args: &PlanArgs, cluster: &Cluster) -> String {
    let given = args
        .default_queue
        .as_ref()
        .or(cluster.settings.default_queue.as_ref());
    given.map_or(queues::DEFAULT, String::as_str).to_owned()
}

fn given_moment(args: &PlanArgs) -> Result<Option<Time>, Failure> {
    let parsed = args.now.as_deref().map(Time::parse).transpose();
    parsed.map_err(|error| Failure::new(format!("--now: {error}")))
}

fn current_moment() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The width of the terminal that is printed to; `None` for a pipe or a file.
fn terminal_width() -> Option<usize> {
    let out = std::io::stdout();
    let (width, _) = out
        .is_terminal()
        .then(|| terminal_size::terminal_size_of(&out))
        .flatten()?;
    Some(usize::from(width.0))
}

fn run_case(file: &Path) -> Result<ExitCode, Failure> {
    let result = case_of(file)?;
    let mut text = format!("{}: {}\n", result.name, word(&result.verdict));
    if let Verdict::Failed(differences) = &result.verdict {
        for difference in differences {
            text.push_str(&format!("  {difference}\n"));
        }
    }
    print(&text)?;
    Ok(exit_code(&[result]))
}

fn case_of(file: &Path) -> Result<CaseResult, Failure> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    Ok(case::run(&name, &files::open(file)?)?)
}

fn run_cases(directory: &Path) -> Result<ExitCode, Failure> {
    if !directory.is_dir() {
        return Err(Failure::new(format!("{}: not a directory", directory.display()))
            .hint("--case FILE runs a single case"));
    }
    let files = files::expand(&[directory.to_owned()])?;
    let cases = files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    let results = cases.map(|file| case_of(file)).collect::<Result<Vec<_>, _>>()?;
    if results.is_empty() {
        return Err(Failure::new(format!(
            "{}: no *.json files in this directory",
            directory.display()
        )));
    }
    let mut rows = vec![vec!["CASE".to_owned(), "RESULT".to_owned()]];
    for result in &results {
        rows.push(vec![result.file.clone(), word(&result.verdict)]);
        if let Verdict::Failed(differences) = &result.verdict {
            rows.extend(
                differences
                    .iter()
                    .map(|difference| vec![String::new(), format!("  {difference}")]),
            );
        }
    }
    let mut text = String::new();
    table::columns(&mut text, &rows, terminal_width());
    let count =
        |wanted: fn(&Verdict) -> bool| results.iter().filter(|result| wanted(&result.verdict)).count();
    text.push_str(&format!(
        "\n{} passed, {} failed, {} skipped\n",
        count(|verdict| *verdict == Verdict::Passed),
        count(|verdict| matches!(verdict, Verdict::Failed(_))),
        count(|verdict| matches!(verdict, Verdict::Skipped(_) | Verdict::Known(_)))
    ));
    print(&text)?;
    Ok(exit_code(&results))
}

fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => "passed".to_owned(),
        Verdict::Failed(_) => "failed".to_owned(),
        Verdict::Known(reason) => format!("differs (known): {reason}"),
        Verdict::Skipped(why) => format!("skipped: {why}"),
    }
}

fn exit_code(results: &[CaseResult]) -> ExitCode {
    let failed = results
        .iter()
        .any(|result| matches!(result.verdict, Verdict::Failed(_)));
    if failed {
        ExitCode::from(DIFFERS)
    } else {
        ExitCode::SUCCESS
    }
}
