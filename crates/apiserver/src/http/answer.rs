//! Answers.

use crate::fault::Fault;
use crate::resources::Resource;
use crate::server::Server;
use crate::store::Object;
use crate::table::{Include, table};
use crate::verbs::rendered;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use std::convert::Infallible;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The form that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Objects.
    Json,
    /// A table to print, with this much of the objects.
    Table(Include),
    /// Metadata only.
    Metadata,
}

/// The first form of those that a client takes that there is; `include` is what it says of objects in tables.
pub fn negotiate(headers: &HeaderMap, include: Option<&str>) -> Result<Format, Fault> {
    let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Format::Json);
    };
    for option in accept.split(',') {
        let mut parts = option.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        if !matches!(media_type, "application/json" | "*/*" | "application/*" | "") {
            continue;
        }
        let parameters: Vec<&str> = parts.collect();
        let wanted = parameters
            .iter()
            .find_map(|parameter| parameter.strip_prefix("as="));
        let in_meta = parameters.contains(&"g=meta.k8s.io") && parameters.contains(&"v=v1");
        match wanted {
            None => return Ok(Format::Json),
            Some("Table") if in_meta => return Include::read(include).map(Format::Table),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if in_meta => {
                return Ok(Format::Metadata);
            }
            Some(_) => {}
        }
    }
    let message = "only the following media types are accepted: application/json";
    Err(Fault::new(406, "NotAcceptable", message))
}

/// An object without what it wants and is.
pub fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// An object, in the form that was asked for.
pub fn object_answer(
    code: u16,
    server: &Server,
    resource: &Resource,
    object: &Object,
    format: Format,
) -> Response<Body> {
    match format {
        Format::Json => bytes_answer(code, rendered(resource, object)),
        Format::Metadata => json_answer(code, &partial(&object.value())),
        Format::Table(include) => {
            let metadata = json!({"resourceVersion": object.revision.to_string()});
            json_answer(
                code,
                &table(resource, &[object], include, metadata, server.timestamp()),
            )
        }
    }
}

/// JSON that is written already.
pub fn bytes_answer(code: u16, bytes: Bytes) -> Response<Body> {
    let mut answer = Response::new(Full::new(bytes).boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// JSON.
pub fn json_answer(code: u16, value: &Value) -> Response<Body> {
    bytes_answer(code, value.to_string().into())
}

/// A refusal.
pub fn failed(fault: &Fault) -> Response<Body> {
    let mut answer = json_answer(fault.code, &fault.status());
    if matches!(fault.code, 429 | 504) {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

/// A text.
pub fn plain(code: u16, text: String) -> Response<Body> {
    let mut answer = bytes_answer(code, text.into());
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    answer
}

/// An answer without a body.
pub fn nothing() -> Response<Body> {
    let mut answer = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// A text that goes on.
pub fn text_stream(stream: BoxStream<'static, Bytes>) -> Response<Body> {
    let frames = stream.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}

/// What is said of an object that is gone.
pub fn status_success(resource: &Resource, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": resource.plural, "uid": uid});
    if !resource.group.is_empty() {
        details["group"] = resource.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_there_is_is_taken() {
        let form = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            negotiate(&headers, None).map_err(|fault| fault.code)
        };
        for (accept, expected) in [
            ("application/json", Ok(Format::Json)),
            ("*/*", Ok(Format::Json)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Ok(Format::Json),
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Ok(Format::Table(Include::Metadata)),
            ),
            (
                "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
                Ok(Format::Json),
            ),
            (
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                Ok(Format::Metadata),
            ),
            ("application/vnd.kubernetes.protobuf", Err(406)),
            ("text/html", Err(406)),
        ] {
            assert_eq!(form(accept), expected, "{accept}");
        }
        assert_eq!(negotiate(&HeaderMap::new(), Some("Everything")), Ok(Format::Json));
    }
}
