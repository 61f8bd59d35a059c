//! `volcano manifests`: prints everything that an installation needs, for `kubectl apply -f -`.

use crate::failure::Failure;
use crate::manifests::{Group, Images, Program, Values};
use clap::ArgAction::Set;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use volcano_admission::ResourceGroups;
use volcano_admission::webhooks::{self, ALL};
use volcano_cli::go_flags::boolean;
use volcano_engine::config::{SchedulerConf, catalog};

/// What the chart of Volcano installs when nothing else is said.
const SCHEDULER_CONF: &str = include_str!("../manifests/volcano-scheduler.conf");
const ADMISSION_CONF: &str = include_str!("../manifests/volcano-admission.conf");
/// A larger file does not fit into a ConfigMap.
const LARGEST: u64 = 1 << 20;
/// Longest name of a release, so that the names made from it are names.
const LONGEST_RELEASE: usize = 53;

/// Print everything that an installation needs, for `kubectl apply -f -`
///
/// Names, ports and settings are those of Volcano's chart. Roles are limited to what the programs use.
#[derive(Clone, Debug, clap::Args)]
pub struct ManifestsArgs {
    /// Print only these parts
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    only: Vec<Group>,

    /// Namespace of the installation
    #[arg(long, value_name = "NAME", default_value = "volcano-system")]
    namespace: String,

    /// Beginning of the names of its objects
    #[arg(long, value_name = "NAME", default_value = "volcano")]
    release: String,

    /// Place pods that ask for this scheduler instead of volcano. May be repeated
    #[arg(long, value_name = "NAME")]
    scheduler_name: Vec<String>,

    /// Elect a leader, so that several replicas and rolling upgrades are safe
    #[arg(long, value_name = "BOOL", value_parser = boolean, action = Set, default_value = "true")]
    leader_elect: bool,

    /// Configuration of the scheduler
    #[arg(long, value_name = "FILE")]
    scheduler_conf: Option<PathBuf>,

    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    sizes: SizeArgs,
    #[command(flatten)]
    admission: AdmissionArgs,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Images")]
struct ImageArgs {
    /// Where images come from
    #[arg(long, value_name = "HOST", default_value = "docker.io")]
    image_registry: String,

    /// Their version
    #[arg(long, value_name = "TAG", default_value = "latest")]
    image_tag: String,

    /// When they are pulled
    #[arg(long, value_name = "POLICY", default_value = "Always", value_parser = ["Always", "IfNotPresent", "Never"])]
    image_pull_policy: String,

    /// Secret for the registry
    #[arg(long, value_name = "NAME")]
    image_pull_secret: Option<String>,

    /// Image of the scheduler
    #[arg(long, value_name = "NAME", default_value = "volcanosh/vc-scheduler")]
    scheduler_image: String,

    /// Image of the controller manager
    #[arg(long, value_name = "NAME", default_value = "volcanosh/vc-controller-manager")]
    controller_image: String,

    /// Image of the webhook manager
    #[arg(long, value_name = "NAME", default_value = "volcanosh/vc-webhook-manager")]
    admission_image: String,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Replicas and logs")]
struct SizeArgs {
    /// Schedulers, of which one leads
    #[arg(long, value_name = "N", default_value_t = 1)]
    scheduler_replicas: u32,

    /// Controller managers, of which one leads
    #[arg(long, value_name = "N", default_value_t = 1)]
    controller_replicas: u32,

    /// Webhook managers, all of which work
    #[arg(long, value_name = "N", default_value_t = 1)]
    admission_replicas: u32,

    /// How much the scheduler logs
    #[arg(long, value_name = "N", default_value_t = 3)]
    scheduler_log_level: i32,

    /// How much the controller manager logs
    #[arg(long, value_name = "N", default_value_t = 4)]
    controller_log_level: i32,

    /// How much the webhook manager logs
    #[arg(long, value_name = "N", default_value_t = 4)]
    admission_log_level: i32,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Admission")]
struct AdmissionArgs {
    /// Paths that are served and registered [default: jobs, podgroups/validate, queues, hypernodes and cronjobs]
    #[arg(long, value_name = "PATHS")]
    enabled_admission: Option<String>,

    /// Port of the webhook manager
    #[arg(long, value_name = "PORT", default_value_t = 8443, value_parser = clap::value_parser!(u16).range(1..))]
    admission_port: u16,

    /// Secret of its certificate, which it makes itself
    #[arg(long, value_name = "NAME", default_value = "volcano-admission-secret")]
    admission_secret_name: String,

    /// Resource groups
    #[arg(long, value_name = "FILE")]
    admission_conf: Option<PathBuf>,

    /// A further condition on the labels of namespaces whose objects are reviewed: KEY, !KEY, KEY=A,B or KEY!=A,B. May be
    /// repeated
    #[arg(long, value_name = "CONDITION")]
    webhook_namespace_selector: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// When an option makes no sense, or a file cannot be used.
pub fn run(args: &ManifestsArgs) -> Result<ExitCode, Failure> {
    super::print(&render(args)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The objects as YAML documents.
fn render(args: &ManifestsArgs) -> Result<String, Failure> {
    let values = values(args)?;
    let wanted: BTreeSet<_> = args.only.iter().copied().collect();
    let groups = Group::ALL.into_iter();
    let groups = groups.filter(|group| wanted.is_empty() || wanted.contains(group));
    let mut text = String::new();
    for object in groups.flat_map(|group| group.objects(&values)) {
        text.push_str("---\n");
        let yaml = serde_saphyr::to_string(&object);
        text.push_str(&yaml.map_err(|error| Failure::new(format!("writing YAML: {error}")))?);
    }
    Ok(text)
}

fn values(args: &ManifestsArgs) -> Result<Values, Failure> {
    check_name("--namespace", &args.namespace, 63)?;
    check_name("--release", &args.release, LONGEST_RELEASE)?;
    check_dotted_name("--admission-secret-name", &args.admission.admission_secret_name)?;
    let enabled = match &args.admission.enabled_admission {
        Some(list) => webhooks::enabled(list).map_err(|error| Failure::new(error.to_string()))?,
        None => ALL.iter().filter(|webhook| webhook.rendered_by_default).collect(),
    };
    let conditions = args.admission.webhook_namespace_selector.iter();
    let (images, sizes) = (&args.images, &args.sizes);
    let program = |image: &String, replicas: u32, log_level: i32| Program {
        image: image.clone(),
        replicas,
        log_level,
    };
    Ok(Values {
        namespace: args.namespace.clone(),
        release: args.release.clone(),
        images: Images {
            registry: images.image_registry.clone(),
            tag: images.image_tag.clone(),
            pull_policy: images.image_pull_policy.clone(),
            pull_secret: images.image_pull_secret.clone(),
        },
        scheduler_names: args.scheduler_name.clone(),
        leader_elect: args.leader_elect,
        scheduler: program(
            &images.scheduler_image,
            sizes.scheduler_replicas,
            sizes.scheduler_log_level,
        ),
        controllers: program(
            &images.controller_image,
            sizes.controller_replicas,
            sizes.controller_log_level,
        ),
        admission: program(
            &images.admission_image,
            sizes.admission_replicas,
            sizes.admission_log_level,
        ),
        enabled,
        admission_port: args.admission.admission_port,
        admission_secret: args.admission.admission_secret_name.clone(),
        namespace_expressions: conditions.map(|text| condition(text)).collect::<Result<_, _>>()?,
        scheduler_conf: scheduler_conf(args.scheduler_conf.as_deref())?,
        admission_conf: admission_conf(args.admission.admission_conf.as_deref())?,
    })
}

/// Names are parts of other names and of YAML: only what Kubernetes takes.
fn check_name(flag: &str, name: &str, longest: usize) -> Result<(), Failure> {
    if name.len() <= longest && is_label(name) {
        return Ok(());
    }
    Err(Failure::new(format!("{flag} {name:?}: not a name")).hint(format!(
        "lower-case letters, digits and dashes inside, up to {longest} of them"
    )))
}

/// The same for an object of which nothing else is named: it may have several parts.
fn check_dotted_name(flag: &str, name: &str) -> Result<(), Failure> {
    const LONGEST: usize = 253;
    if name.len() <= LONGEST && name.split('.').all(is_label) {
        return Ok(());
    }
    Err(Failure::new(format!("{flag} {name:?}: not a name")).hint(format!(
        "lower-case letters, digits, and dashes and dots inside, up to {LONGEST} of them"
    )))
}

fn is_label(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inside) && !text.starts_with('-') && !text.ends_with('-')
}

fn scheduler_conf(path: Option<&Path>) -> Result<String, Failure> {
    let Some(path) = path else {
        return Ok(SCHEDULER_CONF.to_owned());
    };
    let text = read(path)?;
    SchedulerConf::parse(&text, catalog::PLANNED_PLUGINS, catalog::ACTIONS)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok(text)
}

fn admission_conf(path: Option<&Path>) -> Result<String, Failure> {
    let Some(path) = path else {
        return Ok(ADMISSION_CONF.to_owned());
    };
    let text = read(path)?;
    ResourceGroups::parse(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok(text)
}

fn read(path: &Path) -> Result<String, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| wrong(&error))?.len();
    if size > LARGEST {
        return Err(wrong(&format!(
            "{size} bytes; a ConfigMap holds at most {LARGEST}"
        )));
    }
    std::fs::read_to_string(path).map_err(|error| wrong(&error))
}

/// A condition on labels, as `kubectl -l` takes them.
fn condition(text: &str) -> Result<Value, Failure> {
    let text = text.trim();
    let (key, operator, values) = if let Some((key, values)) = text.split_once("!=") {
        (key, "NotIn", Some(values))
    } else if let Some((key, values)) = text.split_once('=') {
        (key, "In", Some(values))
    } else if let Some(key) = text.strip_prefix('!') {
        (key, "DoesNotExist", None)
    } else {
        (text, "Exists", None)
    };
    let key = key.trim();
    if key.is_empty() {
        let message = format!("--webhook-namespace-selector {text:?}: no label is named");
        return Err(Failure::new(message).hint("write KEY, !KEY, KEY=A,B or KEY!=A,B"));
    }
    let mut condition = json!({"key": key, "operator": operator});
    if let Some(values) = values {
        condition["values"] = values.split(',').map(str::trim).collect();
    }
    Ok(condition)
}

#[cfg(test)]
mod tests;
