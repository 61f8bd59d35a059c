//! Schemas of the types that are kept raw: they are Kubernetes' own.

use std::borrow::Cow;

use k8s_openapi::api::core::v1 as core;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::meta::{PersistentVolumeClaimSpec, PodTemplate};

/// Gives a raw type the schema of the type of Kubernetes that it holds.
macro_rules! schema_of {
    ($raw:ty, $kubernetes:ty) => {
        impl JsonSchema for $raw {
            fn schema_name() -> Cow<'static, str> {
                stringify!($raw).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                generator.subschema_for::<$kubernetes>()
            }
        }
    };
}

schema_of!(PodTemplate, core::PodTemplateSpec);
schema_of!(PersistentVolumeClaimSpec, core::PersistentVolumeClaimSpec);
