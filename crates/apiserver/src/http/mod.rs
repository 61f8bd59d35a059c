//! HTTP: from a request to a verb, and from what came of it to an answer.

mod answer;
mod discovery;
mod openapi;
mod protobuf;
mod query;
mod route;

pub use answer::{Body, Format, partial};

use crate::fault::Fault;
use crate::limits;
use crate::resources::{Nature, Resource};
use crate::server::{Server, locked};
use crate::verbs::{
    Call, Caller, DeleteOptions, Deleted, ListOptions, Patch, Validation, asks_dry_run, page_metadata,
    rendered,
};
use crate::watch;
use answer::{failed, json_answer, negotiate, object_answer, plain, status_success};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::FutureExt as _;
use http::header::{CONTENT_TYPE, HeaderValue, WARNING};
use http::request::Parts;
use http::{HeaderMap, Method, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use query::Query;
use route::{Place, Route};
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tracing::error;

/// Warnings of one answer, at most.
const MOST_WARNINGS: usize = 50;

/// Answers a request.
pub async fn handle<B>(server: &Arc<Server>, caller: &Caller, request: http::Request<B>) -> Response<Body>
where
    B: hyper::body::Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, limits::LARGEST).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return failed(&Fault::too_large(limits::LARGEST)),
        Err(error) => return failed(&Fault::bad_request(format!("the request broke off: {error}"))),
    };
    // A request that ends in a panic is that request's trouble only: locks are held for whole steps.
    let dispatched = AssertUnwindSafe(dispatch(server, caller, &parts, body)).catch_unwind();
    match dispatched.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(fault)) => failed(&fault),
        Err(_) => {
            error!(method = %parts.method, path = parts.uri.path(), "a request ended in a panic");
            failed(&Fault::internal(
                "the request could not be served; the log says where",
            ))
        }
    }
}

async fn dispatch(
    server: &Arc<Server>,
    caller: &Caller,
    parts: &Parts,
    body: Bytes,
) -> Result<Response<Body>, Fault> {
    let registry = server.registry();
    let query = Query::new(parts.uri.query().unwrap_or_default());
    match route::route(&registry, parts.uri.path()) {
        Route::Health => Ok(match server.problem() {
            None => plain(200, "ok".to_owned()),
            Some(problem) => plain(500, format!("[-]data-file failed: {problem}\ncheck failed\n")),
        }),
        Route::Version => Ok(json_answer(200, &discovery::version())),
        Route::Discovery(place) => discovery::answer(&registry, &place, &parts.headers),
        Route::OpenApi(path) => openapi::answer(&registry, &path),
        Route::Access(kind) => access(parts, &kind, caller, &body),
        Route::Nothing => Err(Fault::no_resource()),
        Route::Resource(place) => {
            let manager = query.get("fieldManager").filter(|manager| !manager.is_empty());
            if manager.as_ref().is_some_and(|manager| manager.len() > 128) {
                return Err(Fault::bad_request("fieldManager: must be no more than 128 bytes"));
            }
            let call = Call {
                resource: &place.resource,
                namespace: &place.namespace,
                name: &place.name,
                subresource: &place.subresource,
                caller,
                dry_run: dry_run(&query)?,
                manager,
                force: query.flag("force"),
                validation: validation(&query)?,
                warnings: std::sync::Mutex::default(),
            };
            let mut answer = match verb(server, &call, &place, parts, &query, body).await {
                Ok(answer) => answer,
                Err(fault) => {
                    // That something is there, or is not, has to hold after a crash for whoever was refused as well.
                    server.settled(server.revision()).await?;
                    return Err(fault);
                }
            };
            let warnings = std::mem::take(&mut *locked(&call.warnings));
            for warning in warnings.iter().take(MOST_WARNINGS) {
                let text = warning
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
                    .replace(['\n', '\r'], " ");
                if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                    answer.headers_mut().append(WARNING, value);
                }
            }
            Ok(answer)
        }
    }
}

async fn verb(
    server: &Arc<Server>,
    call: &Call<'_>,
    place: &Place,
    parts: &Parts,
    query: &Query,
    body: Bytes,
) -> Result<Response<Body>, Fault> {
    let format = negotiate(&parts.headers, query.get("includeObject").as_deref())?;
    let one = !call.name.is_empty();
    if !call.subresource.is_empty() && call.subresource != "status" {
        return subresource(server, call, parts, query, &body).await;
    }
    if call.subresource == "status" && !call.resource.status {
        return Err(Fault::no_resource());
    }
    match (&parts.method, one) {
        (&Method::GET, true) => {
            let object = server.read_one(call).await?;
            Ok(object_answer(200, server, call.resource, &object, format))
        }
        (&Method::GET, false) => list_or_watch(server, call, query, format).await,
        (&Method::POST, false) if place.is_placed() => {
            let object = read_body(&parts.headers, &body)?;
            let written = server.create(call, object).await?;
            Ok(object_answer(201, server, call.resource, &written.object, format))
        }
        (&Method::PUT, true) => {
            let object = read_body(&parts.headers, &body)?;
            let written = server.update(call, object).await?;
            Ok(object_answer(200, server, call.resource, &written.object, format))
        }
        (&Method::PATCH, true) => {
            let patch = read_patch(call.resource, &parts.headers, &body)?;
            let written = server.patch(call, patch).await?;
            let code = if written.created { 201 } else { 200 };
            Ok(object_answer(
                code,
                server,
                call.resource,
                &written.object,
                format,
            ))
        }
        (&Method::DELETE, true) if call.subresource.is_empty() => {
            let options = delete_options(call, &parts.headers, &body, query)?;
            let (call, options) = (options.0, options.1);
            let deleted = server.delete(&call, &options).await?;
            Ok(deleted_answer(server, &call, &deleted, format))
        }
        (&Method::DELETE, false) if place.is_placed() => {
            let (call, options) = delete_options(call, &parts.headers, &body, query)?;
            let selector = ListOptions::read(call.resource, |name| query.get(name))?.selector;
            let deleted = server.delete_collection(&call, &selector, &options).await?;
            let items: Vec<Bytes> = deleted
                .iter()
                .map(|object| rendered(call.resource, object))
                .collect();
            let metadata = json!({"resourceVersion": server.revision().to_string()});
            Ok(list_answer(call.resource, &metadata, &items))
        }
        _ => Err(Fault::method_not_allowed()),
    }
}

/// The options of a deletion; a dry run may be asked for in them.
fn delete_options<'a>(
    call: &'a Call<'_>,
    headers: &HeaderMap,
    body: &Bytes,
    query: &Query,
) -> Result<(Call<'a>, DeleteOptions), Fault> {
    let given = if body.is_empty() {
        Value::Null
    } else {
        read_body(headers, body)?
    };
    let options = DeleteOptions::read(&given, |name| query.get(name))?;
    let dry_run = call.dry_run || asks_dry_run(&given);
    let call = Call {
        dry_run,
        warnings: std::sync::Mutex::default(),
        manager: None,
        ..*call
    };
    Ok((call, options))
}

async fn subresource(
    server: &Arc<Server>,
    call: &Call<'_>,
    parts: &Parts,
    query: &Query,
    body: &Bytes,
) -> Result<Response<Body>, Fault> {
    let resource = call.resource;
    match (resource.nature, call.subresource, &parts.method) {
        (Nature::Pod, "binding", &Method::POST) => {
            server.bind(call, &read_body(&parts.headers, body)?).await?;
            Ok(json_answer(
                201,
                &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
            ))
        }
        (Nature::Pod, "eviction", &Method::POST) => {
            server.evict(call, &read_body(&parts.headers, body)?).await?;
            Ok(json_answer(
                201,
                &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
            ))
        }
        (Nature::Pod, "log", &Method::GET) => logs(server, call, query).await,
        (Nature::Namespace, "finalize", &Method::PUT) => {
            let written = server.finalize(call, &read_body(&parts.headers, body)?).await?;
            Ok(object_answer(
                200,
                server,
                resource,
                &written.object,
                Format::Json,
            ))
        }
        (_, "scale", &Method::GET) => Ok(json_answer(200, &server.scale(call).await?)),
        (_, "scale", &Method::PUT) => {
            let wanted = read_body(&parts.headers, body)?;
            let change = |scale: &mut Value| {
                scale["spec"] = wanted["spec"].clone();
                if wanted["metadata"]["resourceVersion"].is_string() {
                    scale["metadata"]["resourceVersion"] = wanted["metadata"]["resourceVersion"].clone();
                }
                Ok(())
            };
            Ok(json_answer(200, &server.set_scale(call, change).await?))
        }
        (_, "scale", &Method::PATCH) => {
            let patch = read_patch(resource, &parts.headers, body)?;
            let change = |scale: &mut Value| match &patch {
                Patch::Json(body) => crate::patch::parse_json_patch(body)
                    .and_then(|operations| crate::patch::json_patch(scale, &operations))
                    .map_err(Fault::bad_request),
                Patch::Merge(body) | Patch::Strategic(body) | Patch::Apply(body) => {
                    crate::patch::merge(scale, body);
                    Ok(())
                }
            };
            Ok(json_answer(200, &server.set_scale(call, change).await?))
        }
        _ => Err(Fault::no_resource()),
    }
}

async fn logs(server: &Arc<Server>, call: &Call<'_>, query: &Query) -> Result<Response<Body>, Fault> {
    let pod = server.read_one(call).await?.value();
    let source = server
        .logs
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .clone();
    let container = container(&pod, query.get("container").as_deref(), call.name)?;
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        // Nobody has run it yet: there is nothing to read, and nothing wrong.
        return Ok(answer::nothing());
    }
    let Some(source) = source else {
        return Err(Fault::internal(format!(
            "no node of this server has logs of pod {}",
            call.name
        )));
    };
    let since_seconds = query.get("sinceSeconds").and_then(|text| text.parse().ok());
    let wanted = crate::LogRequest {
        namespace: call.namespace.to_owned(),
        pod: call.name.to_owned(),
        uid: pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
        waits_because: waits_because(&pod, &container).to_owned(),
        container,
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        timestamps: query.flag("timestamps"),
        tail_lines: query.get("tailLines").and_then(|text| text.parse().ok()),
        limit_bytes: query.get("limitBytes").and_then(|text| text.parse().ok()),
        since_seconds: match query.get("sinceTime").filter(|text| !text.is_empty()) {
            Some(time) => Some(seconds_since(&time, server.timestamp())?),
            None => since_seconds,
        },
    };
    let stream = source.open(wanted).await.map_err(Fault::bad_request)?;
    Ok(answer::text_stream(stream))
}

/// How long ago a time is, in seconds that have begun: whoever has the log counts from now.
fn seconds_since(time: &str, now: jiff::Timestamp) -> Result<u64, Fault> {
    let since: jiff::Timestamp = time
        .parse()
        .map_err(|error| Fault::bad_request(format!("sinceTime: {time:?} is not a time: {error}")))?;
    let millis = now.as_millisecond().saturating_sub(since.as_millisecond());
    Ok(u64::try_from(millis).unwrap_or_default().div_ceil(1000))
}

/// The container whose log is wanted; only names that the pod has get through to where logs are.
fn container(pod: &Value, asked: Option<&str>, name: &str) -> Result<String, Fault> {
    let names = |field: &str| -> Vec<&str> {
        let containers = pod["spec"][field].as_array().into_iter().flatten();
        containers.filter_map(|one| one["name"].as_str()).collect()
    };
    let (main, init) = (names("containers"), names("initContainers"));
    let all = [main.as_slice(), &init, &names("ephemeralContainers")].concat();
    match (asked.unwrap_or_default(), main.as_slice()) {
        ("", [one]) => Ok((*one).to_owned()),
        ("", many) => {
            let many = many.join(" ");
            let mut message =
                format!("a container name must be specified for pod {name}, choose one of: [{many}]");
            if !init.is_empty() {
                message += &format!(" or one of the init containers: [{}]", init.join(" "));
            }
            Err(Fault::bad_request(message))
        }
        (asked, _) if all.contains(&asked) => Ok(asked.to_owned()),
        (asked, _) => Err(Fault::bad_request(format!(
            "container {asked} is not valid for pod {name}"
        ))),
    }
}

/// Why a container waits, as its pod says; in a pod of which nothing was said yet, what is said first.
fn waits_because<'a>(pod: &'a Value, container: &str) -> &'a str {
    let lists = [
        &pod["status"]["containerStatuses"],
        &pod["status"]["initContainerStatuses"],
    ];
    let mut all = lists.into_iter().filter_map(Value::as_array).flatten();
    let status = all.find(|one| one["name"] == container);
    let has_init = pod["spec"]["initContainers"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    let first = if has_init {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    status
        .and_then(|status| status["state"]["waiting"]["reason"].as_str())
        .unwrap_or(first)
}

async fn list_or_watch(
    server: &Arc<Server>,
    call: &Call<'_>,
    query: &Query,
    format: Format,
) -> Result<Response<Body>, Fault> {
    let mut options = ListOptions::read(call.resource, |name| query.get(name))?;
    options.watch |= query.flag("watch");
    if options.watch {
        let body = watch::watch(server, call.resource, call.namespace, options, format).await?;
        let mut answer = Response::new(body);
        answer
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        return Ok(answer);
    }
    let page = server.read_list(call, &options).await?;
    let metadata = page_metadata(&page, &options);
    match format {
        Format::Json => {
            let items: Vec<Bytes> = page
                .items
                .iter()
                .map(|object| rendered(call.resource, object))
                .collect();
            Ok(list_answer(call.resource, &metadata, &items))
        }
        Format::Table(include) => {
            let objects: Vec<_> = page.items.iter().map(|object| &**object).collect();
            let now = server.timestamp();
            let table = crate::table::table(call.resource, &objects, include, metadata, now);
            Ok(json_answer(200, &table))
        }
        Format::Metadata => {
            let items: Vec<Value> = page.items.iter().map(|object| partial(&object.value())).collect();
            let list = json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": items,
            });
            Ok(json_answer(200, &list))
        }
    }
}

/// A list of objects that are written already.
fn list_answer(resource: &Resource, metadata: &Value, items: &[Bytes]) -> Response<Body> {
    let size: usize = items.iter().map(|item| item.len() + 1).sum();
    let mut body = BytesMut::with_capacity(size + 300);
    let head = format!(
        "{{\"kind\":{:?},\"apiVersion\":{:?},\"metadata\":{metadata},\"items\":[",
        resource.list_kind,
        resource.api_version(),
    );
    body.put_slice(head.as_bytes());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            body.put_u8(b',');
        }
        body.put_slice(item);
    }
    body.put_slice(b"]}");
    answer::bytes_answer(200, body.freeze())
}

/// What a client gets for a deletion: the object while it is there, and for some kinds its last state.
fn deleted_answer(server: &Server, call: &Call<'_>, deleted: &Deleted, format: Format) -> Response<Body> {
    let shows = matches!(
        call.resource.nature,
        Nature::Pod | Nature::Service | Nature::Claim | Nature::Volume | Nature::ServiceAccount
    );
    match deleted {
        Deleted::Going(object) => object_answer(200, server, call.resource, object, format),
        Deleted::Gone(object) if shows => object_answer(200, server, call.resource, object, format),
        Deleted::Gone(object) => json_answer(200, &status_success(call.resource, call.name, &object.uid)),
    }
}

fn dry_run(query: &Query) -> Result<bool, Fault> {
    match query.get("dryRun").as_deref() {
        None | Some("") => Ok(false),
        Some("All") => Ok(true),
        Some(other) => Err(Fault::bad_request(format!(
            "dryRun: {other:?} is not supported; use All"
        ))),
    }
}

fn validation(query: &Query) -> Result<Validation, Fault> {
    match query.get("fieldValidation").as_deref() {
        None | Some("" | "Warn") => Ok(Validation::Warn),
        Some("Ignore") => Ok(Validation::Ignore),
        Some("Strict") => Ok(Validation::Strict),
        Some(other) => {
            let message = format!("fieldValidation: {other:?} is not supported; use Ignore, Warn or Strict");
            Err(Fault::bad_request(message))
        }
    }
}

fn media_type(headers: &HeaderMap) -> String {
    let text = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    text.split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// An object that was sent.
fn read_body(headers: &HeaderMap, body: &Bytes) -> Result<Value, Fault> {
    match media_type(headers).as_str() {
        "" | "application/json" => read_json(body),
        "application/yaml" => read_yaml(body),
        "application/vnd.kubernetes.protobuf" => protobuf::read(body).map_err(|problem| {
            let message = format!(
                "the body of the request cannot be read as protobuf: {problem}; send application/json"
            );
            Fault::new(415, "UnsupportedMediaType", message)
        }),
        other => {
            let message = format!(
                "the body of the request was in an unknown format ({other}) - accepted media types include: application/json, \
                 application/yaml"
            );
            Err(Fault::new(415, "UnsupportedMediaType", message))
        }
    }
}

fn read_json(body: &Bytes) -> Result<Value, Fault> {
    serde_json::from_slice(body)
        .map_err(|error| Fault::bad_request(format!("the body of the request cannot be read: {error}")))
}

fn read_yaml(body: &Bytes) -> Result<Value, Fault> {
    let wrong = |problem: String| Fault::bad_request(format!("error decoding YAML: {problem}"));
    let text = std::str::from_utf8(body).map_err(|error| wrong(error.to_string()))?;
    serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))
}

fn read_patch(resource: &Resource, headers: &HeaderMap, body: &Bytes) -> Result<Patch, Fault> {
    match media_type(headers).as_str() {
        "application/json-patch+json" => Ok(Patch::Json(read_json(body)?)),
        "application/merge-patch+json" => Ok(Patch::Merge(read_json(body)?)),
        "application/strategic-merge-patch+json" if !resource.is_custom => {
            Ok(Patch::Strategic(read_json(body)?))
        }
        "application/apply-patch+yaml" => Ok(Patch::Apply(read_yaml(body)?)),
        _ => {
            let mut accepted = vec!["application/json-patch+json", "application/merge-patch+json"];
            if !resource.is_custom {
                accepted.push("application/strategic-merge-patch+json");
            }
            accepted.push("application/apply-patch+yaml");
            let message = format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            );
            Err(Fault::new(415, "UnsupportedMediaType", message))
        }
    }
}

/// Reviews of access: whoever gets in may do everything.
fn access(parts: &Parts, kind: &str, caller: &Caller, body: &Bytes) -> Result<Response<Body>, Fault> {
    if parts.method != Method::POST {
        return Err(Fault::method_not_allowed());
    }
    let mut review = read_body(&parts.headers, body)?;
    review["status"] = match kind {
        "selfsubjectreviews" => json!({"userInfo": {"username": caller.user, "groups": caller.groups}}),
        "selfsubjectrulesreviews" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => json!({"allowed": true}),
    };
    Ok(json_answer(201, &review))
}
