//! The gc controller: deletes a Job some time after its end.
//!
//! Deleting cannot be taken back, and the time may have been changed since the Job was last seen. So a Job whose time
//! has come is read, and looked at again as it is then.

use super::core::Look;
use super::store::Store;
use serde_json::Value;
use tracing::warn;
use volcano_api::batch::Job;
use volcano_api::time::Time;
use volcano_reconcile::ttl;
use volcano_reconcile::write::{Plan, Target};

/// What is to be done for a Job that may have ended.
pub fn look(store: &Store, at: &str, now: Time) -> Look {
    let Some(job) = store.job(at).and_then(|entry| entry.job()) else {
        return Look::Plan(Plan::default());
    };
    let plan = plan(job, now);
    if plan.steps.is_empty() {
        return Look::Plan(plan);
    }
    Look::Read(vec![Target::of(job)])
}

/// What is to be done for a Job as it was read.
pub fn look_again(read: &Value, now: Time) -> Plan {
    match serde_json::from_value::<Job>(read.clone()) {
        Ok(job) => plan(&job, now),
        Err(error) => {
            warn!(%error, "a Job that is to be deleted cannot be read");
            Plan::default()
        }
    }
}

fn plan(job: &Job, now: Time) -> Plan {
    ttl::plan(job, now).unwrap_or_else(|error| {
        warn!(%error, "the Job is not deleted");
        Plan::default()
    })
}
