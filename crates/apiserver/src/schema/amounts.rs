//! Amounts of built-in kinds: whoever reads them finds them in one form, however they were sent.

use super::Schema;
use serde_json::Value;
use volcano_api::quantity::{Quantity, QuantityError};

/// What Kubernetes says of a text that is no amount.
const FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// And of one whose suffix is made of the right letters in a wrong way.
const SUFFIX: &str = "unable to parse quantity's suffix";

/// Writes amounts as Kubernetes does: `0.5` becomes `500m`, `1024Mi` `1Gi`. What is wrong with the first that is none.
pub fn write_amounts(value: &mut Value, schema: &Schema) -> Result<(), &'static str> {
    if !schema.has_amounts {
        return Ok(());
    }
    if schema.is_amount {
        return write_amount(value);
    }
    match value {
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, below)| {
            let known = schema.field(name);
            known.map_or(Ok(()), |known| write_amounts(below, known))
        }),
        Value::Array(items) => items.iter_mut().try_for_each(|item| {
            let known = schema.items.as_ref();
            known.map_or(Ok(()), |known| write_amounts(item, known))
        }),
        _ => Ok(()),
    }
}

fn write_amount(value: &mut Value) -> Result<(), &'static str> {
    let amount = match &*value {
        Value::Null => return Ok(()),
        Value::String(text) => Quantity::parse(text.trim()),
        other => Quantity::parse(&other.to_string()),
    };
    let text = amount.map_err(|error| problem(&error))?.to_string();
    if *value != text {
        *value = text.into();
    }
    Ok(())
}

fn problem(error: &QuantityError) -> &'static str {
    let is_letter = |letter: char| letter.is_ascii_digit() || "eEinumkKMGTP+-".contains(letter);
    match error {
        QuantityError::Suffix { suffix, .. } if suffix.chars().all(is_letter) => SUFFIX,
        _ => FORM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin::schema;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    #[test]
    fn amounts_are_written_in_one_form_wherever_they_are() {
        let schema = schema::<Pod>();
        let pod = |cpu: Value| {
            json!({"metadata": {"labels": {"cpu": "0.5"}}, "spec": {"overhead": {"cpu": cpu},
                "initContainers": [{"resources": {"limits": {"memory": cpu}}}],
                "containers": [{"resources": {"requests": {"cpu": cpu}}}]}})
        };
        for (sent, expected) in [
            (json!("0.5"), "500m"),
            (json!("1024Mi"), "1Gi"),
            (json!(2), "2"),
            (json!(1.5), "1500m"),
            (json!("1000m"), "1"),
            (json!(" 1k "), "1k"),
        ] {
            let mut found = pod(sent);
            assert_eq!(write_amounts(&mut found, &schema), Ok(()));
            assert_eq!(found, pod(json!(expected)));
        }
        for (sent, problem) in [
            ("much", FORM),
            ("", FORM),
            ("1.5x", FORM),
            ("1 Gi", FORM),
            ("1KK", SUFFIX),
        ] {
            assert_eq!(
                write_amounts(&mut pod(json!(sent)), &schema),
                Err(problem),
                "{sent:?}"
            );
        }
    }
}
