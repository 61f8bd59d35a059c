//! An object as files have it: with its type, and with times to the microsecond.

use crate::model::delta::Delta;
use crate::model::kind::Kind;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::{Value, json};
use volcano_api::time::{MicroTime, Time};

/// The object of a change, to be written with `apiVersion` and `kind`. Only for changes that bring an object.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a>(pub &'a Delta);

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Typed<'a, T> {
    api_version: String,
    kind: &'static str,
    #[serde(flatten)]
    object: &'a T,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some((kind, _, _)) = self.0.key() else {
            return Err(S::Error::custom("this change brings no object"));
        };
        match self.0 {
            Delta::Pod(object) => {
                let meta = object.metadata.creation_timestamp;
                write(
                    kind,
                    &**object,
                    &[(CREATED, meta), (STARTED, object.status.start_time)],
                    to,
                )
            }
            Delta::PodGroup(object) => own(&**object, object.metadata.creation_timestamp, to),
            Delta::Queue(object) => own(&**object, object.metadata.creation_timestamp, to),
            Delta::HyperNode(object) => object.serialize(to),
            Delta::NodeShard(object) => object.serialize(to),
            Delta::Node(object) => write(kind, &**object, &[], to),
            Delta::PriorityClass(object) => write(kind, object, &[], to),
            Delta::Namespace(object) => write(kind, object, &[], to),
            Delta::Claim(object) => write(kind, &**object, &[], to),
            Delta::Volume(object) => write(kind, &**object, &[], to),
            Delta::StorageClass(object) => write(kind, &**object, &[], to),
            Delta::CsiNode(object) => write(kind, &**object, &[], to),
            Delta::CsiDriver(object) => write(kind, &**object, &[], to),
            Delta::StorageCapacity(object) => write(kind, &**object, &[], to),
            Delta::ResourceQuota(object) => write(kind, &**object, &[], to),
            Delta::DisruptionBudget(object) => write(kind, &**object, &[], to),
            _ => Err(S::Error::custom("this change brings no object")),
        }
    }
}

const CREATED: &str = "/metadata/creationTimestamp";
const STARTED: &str = "/status/startTime";

fn write<S: Serializer>(
    kind: Kind,
    object: &impl Serialize,
    times: &[(&str, Option<Time>)],
    to: S,
) -> Result<S::Ok, S::Error> {
    let typed = Typed {
        api_version: kind.api_version(),
        kind: kind.name(),
        object,
    };
    exactly(&typed, times, to)
}

/// An object of this project's own kinds, which knows its type.
fn own<S: Serializer>(object: &impl Serialize, created: Option<Time>, to: S) -> Result<S::Ok, S::Error> {
    exactly(object, &[(CREATED, created)], to)
}

/// The API writes times to the second, and so do its objects. Order may depend on less: where there is a fraction, it is
/// put in.
fn exactly<S: Serializer>(
    object: &impl Serialize,
    times: &[(&str, Option<Time>)],
    to: S,
) -> Result<S::Ok, S::Error> {
    let fractions: Vec<_> = times
        .iter()
        .filter_map(|&(path, time)| Some((path, time?)))
        .filter(|(_, time)| *time != Time::from_unix_seconds(time.unix_seconds()))
        .collect();
    if fractions.is_empty() {
        return object.serialize(to);
    }
    let mut value: Value = serde_json::to_value(object).map_err(S::Error::custom)?;
    for (path, time) in fractions {
        if let Some(written) = value.pointer_mut(path) {
            *written = json!(MicroTime(time));
        }
    }
    value.serialize(to)
}
