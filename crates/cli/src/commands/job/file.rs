//! The Job of a file, for `vcctl job run` and `vcctl plan`.

use crate::failure::Failure;
use crate::output::files;
use serde_json::Value;
use std::path::Path;
use volcano_api::batch::Job;
use volcano_api::names::kinds;

/// The Job of a file, as it is written and as it is understood.
///
/// # Errors
/// In Volcano's words, when the file has no Job.
pub fn read(path: &Path) -> Result<(Value, Job), Failure> {
    let name = path.to_string_lossy();
    if !name.contains(".yaml") && !name.contains(".yml") {
        return Err(Failure::new("only support yaml file"));
    }
    let text =
        files::read(path).map_err(|error| Failure::new(format!("failed to read file, err: {error}")))?;
    let wrong = |error: String| {
        // One line, whatever the reader of YAML draws around its place.
        let line = error.split_whitespace().collect::<Vec<_>>().join(" ");
        Failure::new(format!("failed to unmarshal file, err:  {line}"))
    };
    let written = files::object(&text)
        .and_then(|job| files::of_kind(job, kinds::JOB))
        .map_err(wrong)?;
    let job = serde_json::from_value(written.clone()).map_err(|error| wrong(error.to_string()))?;
    Ok((written, job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_jobs_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = |name: &str, text: Option<&str>| {
            let path = folder.path().join(name);
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            match read(&path) {
                Err(Failure::Told { message, .. }) => message,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(told("job.json", Some("{}")), "only support yaml file");
        assert!(told("none.yaml", None).starts_with("failed to read file, err: open "));
        let wrong = told("wrong.yml", Some("a: [1\nb"));
        assert!(
            wrong.starts_with("failed to unmarshal file, err:  ") && !wrong.contains('\n'),
            "{wrong}"
        );
        let kind = told("pod.yaml", Some("apiVersion: v1\nkind: Pod\n"));
        assert!(kind.contains("apiVersion is \"v1\""), "{kind}");
        let field = told("field.yaml", Some("spec: {minAvailable: x}\n"));
        assert!(field.contains("invalid type"), "{field}");
    }
}
