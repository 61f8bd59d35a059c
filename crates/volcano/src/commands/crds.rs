//! `volcano crds`: prints the CustomResourceDefinitions, for `kubectl apply -f -` and for charts.

use std::io::{self, Write};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Arguments of `volcano crds`.
#[derive(Debug, Default, clap::Args)]
pub struct CrdsArgs {
    /// Print only these: kinds, plurals, short names or full names such as `jobs.batch.volcano.sh`.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

/// Prints the CRDs as YAML documents.
///
/// # Errors
/// When a name is that of no CRD, or when standard output cannot be written.
pub fn run(args: &CrdsArgs) -> anyhow::Result<()> {
    let text = render(args)?;
    match io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("writing to standard output"),
    }
}

/// The wanted CRDs as YAML documents, in the order in which they are generated.
fn render(args: &CrdsArgs) -> anyhow::Result<String> {
    let crds = volcano_api::crd::all();
    for name in &args.names {
        if !crds.iter().any(|crd| goes_by(crd, name)) {
            let known: Vec<_> = crds
                .iter()
                .filter_map(|crd| crd["metadata"]["name"].as_str())
                .collect();
            bail!(
                "no CRD is named {name:?}\nHint: the names are {}",
                known.join(", ")
            );
        }
    }
    let mut text = String::new();
    for crd in &crds {
        if args.names.is_empty() || args.names.iter().any(|name| goes_by(crd, name)) {
            text.push_str("---\n");
            text.push_str(&serde_saphyr::to_string(crd).context("writing YAML")?);
        }
    }
    Ok(text)
}

/// Whether a CRD has a name, in any of the forms that `kubectl` takes.
fn goes_by(crd: &Value, name: &str) -> bool {
    let names = &crd["spec"]["names"];
    let short = names["shortNames"].as_array().into_iter().flatten();
    [
        &crd["metadata"]["name"],
        &names["kind"],
        &names["plural"],
        &names["singular"],
    ]
    .into_iter()
    .chain(short)
    .filter_map(Value::as_str)
    .any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(names: &[&str]) -> Vec<Value> {
        let args = CrdsArgs {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        serde_saphyr::from_multiple(&render(&args).expect("the names are known")).expect("it is YAML")
    }

    #[test]
    fn what_is_printed_reads_back_as_what_was_generated() {
        assert_eq!(documents(&[]), volcano_api::crd::all());
    }

    #[test]
    fn any_name_that_kubectl_takes_selects_a_crd() {
        for name in ["Job", "jobs", "vcjob", "jobs.batch.volcano.sh"] {
            let printed = documents(&[name]);
            assert_eq!(printed.len(), 1, "{name}");
            assert_eq!(printed[0]["metadata"]["name"], "jobs.batch.volcano.sh", "{name}");
        }
        assert_eq!(documents(&["q", "pg"]).len(), 2);
    }

    #[test]
    fn a_name_that_is_not_known_is_an_error_with_the_names_that_are() {
        let error = render(&CrdsArgs {
            names: vec!["jop".into()],
        })
        .expect_err("there is no such CRD");
        assert!(
            error.to_string().contains("\"jop\"")
                && error.to_string().contains("queues.scheduling.volcano.sh")
        );
    }
}
