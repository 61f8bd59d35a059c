//! The live cluster, read for a plan: every kind that the scheduler looks at, and how it is set up. Nothing is written.

use crate::api::{Api, Scope};
use crate::failure::Failure;
use crate::output::{Out, files, objects, times};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use volcano_api::names::Kind;
use volcano_api::names::kinds::{CONFIG_MAP, JOB};
use volcano_engine::config::SchedulerConf;
use volcano_plan::live::{KINDS, Listed};
use volcano_plan::{Cluster, Conf, Explanation, Fault, Reader, Source, configuration};

/// Where an installation has the configuration of its scheduler.
const INSTALLED_IN: &str = "volcano-system";
const CONFIG: &str = "volcano-scheduler-configmap";
const KEY: &str = "volcano-scheduler.conf";

/// How the scheduler of the cluster is set up.
#[derive(Clone, Debug, clap::Args)]
pub struct SchedulerArgs {
    /// The scheduler's configuration [default: that of the installation in volcano-system, else the built-in one]
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    scheduler_conf: OsString,
}

impl SchedulerArgs {
    /// The configuration of a file; that of the installation when its name is empty.
    pub fn of(file: OsString) -> Self {
        SchedulerArgs { scheduler_conf: file }
    }
}

/// How an explanation is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// For people
    Text,
    /// As data
    Json,
    /// As data
    Yaml,
}

/// How an explanation is printed, `-o`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FormArgs {
    /// For people, or as data
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    output: Form,
}

impl FormArgs {
    /// Prints an explanation.
    pub fn print(self, explanation: &Explanation, out: &mut Out) -> Result<(), Failure> {
        let data = || serde_json::to_value(explanation).map_err(|error| Failure::new(error.to_string()));
        let text = match self.output {
            Form::Text => format!("{explanation}"),
            Form::Json => objects::json_indented(&data()?, b"  ")?,
            Form::Yaml => objects::to_yaml(&data()?)?,
        };
        Ok(writeln!(out, "{}", text.trim_end())?)
    }
}

/// Reads the cluster.
///
/// # Errors
/// When something cannot be read without which there is no plan.
pub async fn read(api: &Api, args: &SchedulerArgs) -> Result<(Reader, Conf), Failure> {
    let mut reader = Reader::with_jobs();
    for listed in KINDS {
        if let Err(failure) = add(api, &listed, &mut reader).await {
            return Err(failure.after(&format!("{}: ", listed.plural)));
        }
    }
    Ok((reader, conf(api, args).await?))
}

/// Adds a kind. One that a plan can do without may be missing, or not be for the user to see.
async fn add(api: &Api, listed: &Listed, reader: &mut Reader) -> Result<(), Failure> {
    let kind = Kind {
        group: listed.group,
        version: listed.version,
        kind: listed.kind,
        plural: listed.plural,
        short_names: &[],
        namespaced: true,
        status_subresource: false,
    };
    let mut pages = api.pages::<Box<RawValue>>(Scope::new(kind, ""), None);
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(()),
            Err(error) if listed.optional && error.is_not_found() => return Ok(()),
            Err(error) if listed.optional && error.is_forbidden() => {
                eprintln!("note: {} are left out: {error}", listed.plural);
                return Ok(());
            }
            Err(error) => return Err(api.failure(&error)),
        };
        let list = List {
            api_version: kind.api_version(),
            kind: format!("{}List", kind.kind),
            items: page,
        };
        let text = serde_json::to_string(&list).map_err(|error| Failure::new(error.to_string()))?;
        reader.add(&Source::from_json(listed.plural, text))?;
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: String,
    kind: String,
    items: Vec<Box<RawValue>>,
}

/// Adds a Job, if it is there.
pub async fn add_job(api: &Api, namespace: &str, name: &str, reader: &mut Reader) -> Result<(), Failure> {
    match api.find::<Value>(JOB, namespace, name).await? {
        Ok(job) => Ok(reader.add(&Source::from_json(name, job.to_string()))?),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(api.failure(&error)),
    }
}

/// The cluster as it was read.
pub fn finish(reader: Reader, conf: &Conf) -> Result<Cluster, Failure> {
    let mut cluster = reader.finish()?;
    cluster.complete(&conf.default_queue);
    Ok(cluster)
}

/// The scheduler's configuration: that of the file, of the installation, or the built-in one.
async fn conf(api: &Api, args: &SchedulerArgs) -> Result<Conf, Failure> {
    let conf = |name: &str, text: &str| Ok(Conf::new(configuration(name, text)?, times::now()));
    if !args.scheduler_conf.is_empty() {
        let path = Path::new(&args.scheduler_conf);
        let text = files::read(path).map_err(Failure::new)?;
        return conf(&path.display().to_string(), &text);
    }
    let found = api.find::<Value>(CONFIG_MAP, INSTALLED_IN, CONFIG).await?;
    match found {
        Ok(map) => match map["data"][KEY].as_str() {
            Some(text) => return conf(&format!("ConfigMap {INSTALLED_IN}/{CONFIG}"), text),
            None => eprintln!(
                "note: ConfigMap {INSTALLED_IN}/{CONFIG} has no {KEY}; the built-in configuration counts"
            ),
        },
        Err(error) if error.is_not_found() => {}
        Err(error) if error.is_forbidden() => eprintln!(
            "note: the scheduler's configuration cannot be read, the built-in one counts; --scheduler-conf gives another: {error}"
        ),
        Err(error) => return Err(api.failure(&error)),
    }
    conf("built-in", SchedulerConf::default_text())
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let failure = Failure::new(fault.message);
        match fault.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
