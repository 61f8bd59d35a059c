//! `vcctl jobflow` and `vcctl jobtemplate`: the same commands for two kinds.

pub mod create;
pub mod delete;
pub mod describe;
pub mod get;
pub mod list;
pub mod table;

use crate::failure::Failure;
use crate::output::{Out, files};
use serde_json::{Value, json};
use std::path::Path;
use volcano_api::names::{Kind, kinds};

/// One of the two kinds, with its words.
#[derive(Debug)]
pub struct Noun {
    /// The kind.
    pub kind: Kind,
    /// What is said without a name to delete.
    pub missing_to_delete: &'static str,
    /// What is said without a name to get.
    pub missing_to_get: &'static str,
    /// Whether the table has phase and age.
    pub has_phase: bool,
}

/// JobFlows.
pub const JOB_FLOW: Noun = Noun {
    kind: kinds::JOB_FLOW,
    missing_to_delete: "jobflow name must be specified",
    missing_to_get: "name is mandatory to get the particular jobflow details",
    has_phase: true,
};

/// JobTemplates.
pub const JOB_TEMPLATE: Noun = Noun {
    kind: kinds::JOB_TEMPLATE,
    missing_to_delete: "job template name must be specified",
    missing_to_get: "name is mandatory to get the particular job template details",
    has_phase: false,
};

/// A command of the groups.
#[derive(clap::Subcommand)]
pub enum FlowCommand {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Get(get::GetArgs),
    Delete(delete::DeleteArgs),
    Describe(describe::DescribeArgs),
}

impl FlowCommand {
    /// Runs it for a kind.
    pub async fn run(&self, noun: &Noun, out: &mut Out) -> Result<u8, Failure> {
        match self {
            FlowCommand::Create(args) => create::run(args, noun, out).await,
            FlowCommand::List(args) => list::run(args, noun, out).await,
            FlowCommand::Get(args) => get::run(args, noun, out).await,
            FlowCommand::Delete(args) => delete::run(args, noun, out).await,
            FlowCommand::Describe(args) => describe::run(args, noun, out).await,
        }
    }
}

/// An object of a file.
pub struct FromFile {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object.
    pub object: Value,
}

/// The objects of a file, those of another kind as what is to be said of them. Nothing is done with any of them when one
/// cannot be read.
pub fn from_file(path: &Path, noun: &Noun) -> Result<Vec<Result<FromFile, Failure>>, Failure> {
    let text = files::read(path).map_err(Failure::new)?;
    let wrong = |error: String| {
        let line = error.split_whitespace().collect::<Vec<_>>().join(" ");
        Failure::new(format!("{}: {line}", path.display()))
    };
    let objects = files::objects(&text).map_err(wrong)?;
    let taken = objects.into_iter().map(|object| {
        let mut object = files::of_kind(object, noun.kind).map_err(Failure::new)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut namespace = text(&object["metadata"]["namespace"]);
        if namespace.is_empty() {
            crate::args::DEFAULT_NAMESPACE.clone_into(&mut namespace);
        }
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["namespace"] = json!(namespace);
        let name = text(&object["metadata"]["name"]);
        Ok(FromFile {
            namespace,
            name,
            object,
        })
    });
    Ok(taken.collect())
}

#[cfg(test)]
mod tests {
    use crate::fake::{Answer, Fake};
    use std::io::Write as _;

    #[tokio::test]
    async fn another_kind_is_told_in_its_place_and_does_not_keep_the_others_away() {
        let fake = Fake::serve(|_| Answer::object(&serde_json::json!({}))).await;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(
            file,
            "metadata: {{name: a}}\n---\nkind: Pod\n---\nmetadata: {{name: b}}\n"
        )
        .unwrap();
        let path = file.path().display().to_string();
        for (command, word, done) in [("create", "create", "Created"), ("delete", "delete", "Deleted")] {
            let (printed, ended) = fake.vcctl(&["jobflow", command, "-f", &path]).await;
            let expected = format!(
                "{done} JobFlow: default/a\n\
                 Failed to {word} JobFlow: kind is \"Pod\", where \"JobFlow\" is expected\n\
                 {done} JobFlow: default/b\n"
            );
            assert_eq!((printed, ended), (expected, Ok(0)));
        }
    }
}
