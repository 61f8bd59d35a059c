mod between_pods;
mod local;
mod volumes;

use crate::dispatch::Plugins;
use crate::model::Model;
use crate::relations::testing::plugins;
use serde_json::Value;

fn predicates(m: &Model) -> Plugins {
    plugins(m, &[("predicates", &[])])
}

fn without(m: &Model, filter: &str) -> Plugins {
    plugins(
        m,
        &[(
            "predicates",
            &[(&format!("predicate.{filter}Enable"), Value::Bool(false))],
        )],
    )
}
