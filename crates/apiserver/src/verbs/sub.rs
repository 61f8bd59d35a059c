//! Subresources with a life of their own: binding, eviction, scale, the end of a namespace.

use super::{Call, DeleteOptions, Written, asks_dry_run};
use crate::chores::budgets;
use crate::fault::{Fault, FieldError};
use crate::resources::Nature;
use crate::server::Server;
use serde_json::{Value, json};

impl Server {
    /// Puts a pod on a node.
    pub async fn bind(&self, call: &Call<'_>, binding: &Value) -> Result<(), Fault> {
        let target = &binding["target"];
        let node = target["name"].as_str().unwrap_or_default().to_owned();
        let about = crate::fault::About {
            group: "",
            what: "Binding",
            name: call.name,
        };
        let kind = target["kind"].as_str().unwrap_or_default();
        if !matches!(kind, "" | "Node") {
            let error = FieldError::not_supported(
                "target.kind",
                kind.into(),
                &["Node".to_owned(), "<empty>".to_owned()],
            );
            return Err(Fault::invalid(&about, &[error]));
        }
        if node.is_empty() {
            return Err(Fault::invalid(&about, &[FieldError::required("target.name", "")]));
        }
        let uid = binding["metadata"]["uid"].as_str().unwrap_or_default();
        let now = self.now();
        let as_binding = crate::fault::About {
            group: "",
            what: "pods/binding",
            name: call.name,
        };
        let change = |old: &Value| {
            let pod = &old["metadata"];
            if !uid.is_empty() && pod["uid"] != uid {
                let found = pod["uid"].as_str().unwrap_or_default();
                let why =
                    format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
                return Err(Fault::conflict(&as_binding, &why));
            }
            if !pod["deletionTimestamp"].is_null() {
                let why = format!("pod {} is being deleted, cannot be assigned to a host", call.name);
                return Err(Fault::conflict(&as_binding, &why));
            }
            if let Some(other) = old["spec"]["nodeName"].as_str().filter(|other| !other.is_empty()) {
                let why = format!("pod {} is already assigned to node {other:?}", call.name);
                return Err(Fault::conflict(&as_binding, &why));
            }
            if old["spec"]["schedulingGates"]
                .as_array()
                .is_some_and(|gates| !gates.is_empty())
            {
                let why = format!("pod {} has non-empty .spec.schedulingGates", call.name);
                return Err(Fault::conflict(&as_binding, &why));
            }
            let mut new = old.clone();
            new["spec"]["nodeName"] = node.as_str().into();
            for field in ["annotations", "labels"] {
                for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
                    if !value.is_string() {
                        return Err(Fault::bad_request(format!(
                            "metadata.{field}: {key:?} is not a text"
                        )));
                    }
                    new["metadata"][field][key] = value.clone();
                }
            }
            let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
            let conditions = &mut new["status"]["conditions"];
            if !conditions.is_array() {
                *conditions = json!([]);
            }
            if let Some(conditions) = conditions.as_array_mut() {
                conditions.retain(|one| one["type"] != "PodScheduled");
                conditions.push(condition);
            }
            Ok(new)
        };
        self.modify(call, change).await.map(drop)
    }

    /// Deletes a pod, if no budget forbids it.
    pub async fn evict(&self, call: &Call<'_>, eviction: &Value) -> Result<(), Fault> {
        let named = eviction["metadata"]["name"].as_str().unwrap_or_default();
        if !named.is_empty() && named != call.name {
            return Err(Fault::bad_request(
                "name in URL does not match name in Eviction object",
            ));
        }
        let pod = self
            .get(call.resource.table, &call.key())
            .ok_or_else(|| call.not_found())?
            .value();
        let mut options = DeleteOptions::read(&eviction["deleteOptions"], |_| None)?;
        options.uid = options
            .uid
            .or_else(|| pod["metadata"]["uid"].as_str().map(str::to_owned));
        let may_evict = |pod: &Value| self.ask_budgets(call, pod);
        // kubectl asks for a dry run here, not in the query.
        if call.dry_run || asks_dry_run(&eviction["deleteOptions"]) {
            return may_evict(&pod);
        }
        let plain = Call {
            subresource: "",
            warnings: std::sync::Mutex::default(),
            manager: None,
            ..*call
        };
        self.delete_if(&plain, &options, Some(&may_evict)).await.map(drop)
    }

    fn ask_budgets(&self, call: &Call<'_>, pod: &Value) -> Result<(), Fault> {
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        let is_free = matches!(phase, "Succeeded" | "Failed" | "Pending")
            || !pod["metadata"]["deletionTimestamp"].is_null();
        if is_free {
            return Ok(());
        }
        let all: Vec<Value> = self
            .all(Nature::Budget, call.namespace)
            .iter()
            .map(|budget| budget.value())
            .collect();
        let matching: Vec<&Value> = all.iter().filter(|budget| budgets::covers(budget, pod)).collect();
        if matching.len() > 1 {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Fault::new(500, "InternalError", message));
        }
        let Some(budget) = matching.first() else {
            return Ok(());
        };
        let pods: Vec<Value> = self
            .all(Nature::Pod, call.namespace)
            .iter()
            .map(|pod| pod.value())
            .collect();
        let count = budgets::count(budget, &pods);
        // One that is not well takes nothing away from those that are, as long as these are enough.
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        let enough = count.desired > 0 && count.healthy >= count.desired;
        if count.allowed > 0 || !budgets::is_ready(pod) && (always || enough) {
            return Ok(());
        }
        let name = budget["metadata"]["name"].as_str().unwrap_or_default();
        let said = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            count.desired, count.healthy
        );
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut fault = Fault::new(429, "TooManyRequests", message);
        fault.details = Some(json!({"causes": [{"reason": "DisruptionBudget", "message": said}]}));
        Err(fault)
    }

    /// Reads the scale of an object.
    pub async fn scale(&self, call: &Call<'_>) -> Result<Value, Fault> {
        let object = self.read_one(call).await?;
        scale_of(call, &object.value())
    }

    /// Changes the wished replicas through the scale.
    pub async fn set_scale(
        &self,
        call: &Call<'_>,
        change: impl Fn(&mut Value) -> Result<(), Fault>,
    ) -> Result<Value, Fault> {
        let Some(paths) = call.resource.scale.clone() else {
            return Err(Fault::no_resource());
        };
        let plain = Call {
            subresource: "",
            warnings: std::sync::Mutex::default(),
            manager: call.manager.clone(),
            ..*call
        };
        let written = self
            .modify(&plain, |old| {
                let mut scale = scale_of(call, old)?;
                change(&mut scale)?;
                let version = scale["metadata"]["resourceVersion"].as_str().unwrap_or_default();
                if !version.is_empty() && old["metadata"]["resourceVersion"] != version {
                    return Err(Fault::modified(&call.resource.about(call.name)));
                }
                let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
                if replicas < 0 {
                    let error =
                        FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
                    let about = crate::fault::About {
                        group: "autoscaling",
                        what: "Scale",
                        name: call.name,
                    };
                    return Err(Fault::invalid(&about, &[error]));
                }
                let mut new = old.clone();
                set(&mut new, &paths.spec, replicas.into());
                Ok(new)
            })
            .await?;
        scale_of(call, &written.object.value())
    }

    /// Takes away what holds a namespace.
    pub async fn finalize(&self, call: &Call<'_>, body: &Value) -> Result<Written, Fault> {
        let finalizers = &body["spec"]["finalizers"];
        let is_list = finalizers
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_string));
        if !finalizers.is_null() && !is_list {
            return Err(Fault::bad_request("spec.finalizers is not a list of texts"));
        }
        self.modify(call, |old| {
            let mut new = old.clone();
            new["spec"]["finalizers"] = body["spec"]["finalizers"].clone();
            if new["spec"]["finalizers"].is_null() {
                new["spec"] = json!({});
            }
            Ok(new)
        })
        .await
    }
}

fn scale_of(call: &Call<'_>, object: &Value) -> Result<Value, Fault> {
    let Some(paths) = &call.resource.scale else {
        return Err(Fault::no_resource());
    };
    let at = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or_default();
    if object.pointer(&paths.spec).is_none() {
        let path = paths.spec.replace('/', ".");
        return Err(Fault::internal(format!(
            "the spec replicas field {path:?} does not exist"
        )));
    }
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": at(&paths.spec)},
        "status": {"replicas": at(&paths.status)},
    });
    if let Some(selector) = paths.selector.as_deref().and_then(|path| object.pointer(path)) {
        scale["status"]["selector"] = selector.clone();
    }
    Ok(scale)
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for part in pointer.trim_start_matches('/').split('/') {
        place = &mut place[part];
    }
    *place = value;
}
