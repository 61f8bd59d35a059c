//! What the cluster is told of a pod, and its removal.

use super::{FIRST_RETRY, QUIET, Worker, later};
use crate::lifecycle::State;
use crate::status;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

impl Worker {
    /// Writes the status, if it is another one than was written last.
    pub(super) async fn report(&mut self, now: Timestamp) -> bool {
        let nothing_yet =
            self.state.containers.iter().all(|live| {
                matches!(&live.state, State::Waiting { message: None, .. }) && live.last.is_none()
            });
        let is_quiet = nothing_yet && self.state.ending.is_none() && now < later(self.seen, QUIET);
        if self.is_gone || self.is_stopping || is_quiet {
            return true;
        }
        let address = self.room.as_ref().map(|room| room.address().to_owned());
        let address = address.or_else(|| self.written.as_ref()?.pod_ip.clone());
        let mut basis = Pod::clone(&self.pod);
        if let Some(written) = &self.written {
            // The times of conditions are those that were written, even where the watch has not told of it yet.
            keep_times(&mut basis, written);
        }
        let status = status::status(
            &basis,
            &self.state,
            address.as_deref(),
            &self.context.host_address,
            now,
        );
        if self.written.as_ref() == Some(&status) {
            return true;
        }
        let namespace = self.pod.namespace().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), &namespace);
        let patch =
            Patch::Strategic(json!({"metadata": {"uid": self.uid}, "status": written(&self.pod, &status)}));
        match pods
            .patch_status(&self.pod.name_any(), &PatchParams::default(), &patch)
            .await
        {
            Ok(_) => {
                self.written = Some(status);
                if self.room.is_some() {
                    self.retry = None;
                }
                true
            }
            // Gone, or another one of the same name: the watch will tell.
            Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => true,
            Err(error) => {
                tracing::warn!(pod = self.pod.name_any(), namespace, %error, "status not written, trying again");
                self.retry = Some(later(now, FIRST_RETRY * 2));
                false
            }
        }
    }

    /// Takes down what the pod had, and reports its end.
    pub(super) async fn close(&mut self) {
        self.context.names.remove(&self.uid);
        if let Some(room) = self.room.take() {
            let address = room.address().to_owned();
            let written = self.written.get_or_insert_default();
            written.pod_ip = Some(address);
        }
        let directory = self.context.directory.join(&self.uid);
        let removal = tokio::task::spawn_blocking(move || {
            for part in ["volumes", "containers"] {
                let _ = std::fs::remove_dir_all(directory.join(part));
            }
        });
        if self.is_stopping {
            let _ = removal.await;
            return;
        }
        while !self.report(Timestamp::now()).await {
            self.wait(self.retry).await;
        }
    }

    /// The pod is over; its logs stay until it is deleted.
    pub(super) async fn wait_for_removal(&mut self) {
        let mut retry = None;
        loop {
            if self.is_gone || self.is_stopping {
                break;
            }
            if self.pod.metadata.deletion_timestamp.is_some() {
                let removed = self.remove().await;
                retry = (!removed).then(|| later(Timestamp::now(), FIRST_RETRY * 2));
            }
            self.wait(retry).await;
        }
        if self.is_gone {
            self.context.logs.forget(&self.uid);
            let directory = self.context.directory.join(&self.uid);
            let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(directory)).await;
        }
    }

    /// The last step of a deletion: nothing of the pod runs any more.
    async fn remove(&self) -> bool {
        let namespace = self.pod.namespace().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), &namespace);
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some(self.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match pods.delete(&self.pod.name_any(), &parameters).await {
            Ok(_) => true,
            Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => true,
            Err(error) => {
                tracing::warn!(pod = self.pod.name_any(), namespace, %error, "pod not removed, trying again");
                false
            }
        }
    }
}

/// The part of a status that is this node's to write. Lists of conditions are merged by type, so that those of others stay as
/// they are by now; what a condition does not say any more has to be taken away by name.
fn written(pod: &Pod, status: &PodStatus) -> Value {
    let before = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let is_scheduled = before.into_iter().any(|one| one.type_ == "PodScheduled");
    let mut value = json!(status);
    if let Some(conditions) = value["conditions"].as_array_mut() {
        conditions.retain(|one| {
            let kind = one["type"].as_str().unwrap_or_default();
            status::CONDITIONS.contains(&kind) || (kind == "PodScheduled" && !is_scheduled)
        });
        for one in conditions.iter_mut().filter_map(Value::as_object_mut) {
            for field in ["reason", "message"] {
                one.entry(field).or_insert(Value::Null);
            }
        }
    }
    value
}

fn keep_times(pod: &mut Pod, written: &PodStatus) {
    let status = pod.status.get_or_insert_default();
    let conditions = status.conditions.get_or_insert_default();
    for ours in written.conditions.iter().flatten() {
        match conditions.iter_mut().find(|one| one.type_ == ours.type_) {
            Some(one) if one.type_ != "PodScheduled" => *one = ours.clone(),
            Some(_) => {}
            None => conditions.push(ours.clone()),
        }
    }
}
