//! One request: what is wrong with it as HTTP, else what the rules say.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Body;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, watch};
use tracing::{debug, error};
use volcano_admission::webhooks::Webhook;
use volcano_admission::{Event, Lookups, MAX_BODY_BYTES, Options, Response as Review, request_uid, review};
use volcano_api::names::admission::messages;

const JSON: &str = "application/json";
/// What is said when the rules themselves fail.
const FAILED: &str = "the webhook failed at this object; its log says where";

/// What requests are answered from.
pub struct Handler<L> {
    /// What is served.
    pub enabled: Vec<&'static Webhook>,
    /// The cluster.
    pub cache: Arc<L>,
    /// Settings of the rules, as they are now.
    pub rules: watch::Receiver<Arc<Options>>,
    /// Where events go.
    pub events: mpsc::Sender<Event>,
    /// Reviews that ended in a panic.
    pub panics: AtomicU64,
}

impl<L: Lookups + Send + Sync + 'static> Handler<L> {
    /// Answers a request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = request.uri().path();
        let Some(webhook) = self.enabled.iter().find(|webhook| webhook.path == path) else {
            return text(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        let content_type = request.headers().get(CONTENT_TYPE).cloned();
        let body = match Limited::new(request.into_body(), MAX_BODY_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return text(StatusCode::PAYLOAD_TOO_LARGE, messages::BODY_TOO_LARGE);
            }
            Err(error) => {
                debug!(%error, "a request broke off");
                return text(StatusCode::BAD_REQUEST, "the request broke off\n");
            }
        };
        if !is_json(content_type.as_ref()) {
            let got = content_type.unwrap_or(HeaderValue::from_static(""));
            let message = format!("expect Content-Type {JSON}, got {got:?}");
            return reviewed(&Review::broken("", 415, message));
        }
        let review = self.review(webhook, body).await;
        if let Some(event) = &review.event {
            // Events are the least of all: when too many wait, this one is dropped.
            let _ = self.events.try_send(event.clone());
        }
        if !review.allowed {
            debug!(
                path = webhook.path,
                uid = review.uid,
                message = review.message,
                "refused"
            );
        }
        reviewed(&review)
    }

    /// Asks the rules, away from the threads that serve connections: a large object takes a while, and a panic ends with
    /// its task.
    async fn review(&self, webhook: &'static Webhook, body: Bytes) -> Review {
        let (cache, rules) = (self.cache.clone(), self.rules.borrow().clone());
        let asked = body.clone();
        let judged = tokio::task::spawn_blocking(move || review(webhook.path, &asked, &*cache, &rules));
        judged.await.unwrap_or_else(|panic| {
            let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
            error!(path = webhook.path, %panic, panics, "a review panicked");
            Review::broken(&request_uid(&body), 500, FAILED.to_owned())
        })
    }
}

fn is_json(content_type: Option<&HeaderValue>) -> bool {
    let text = content_type
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case(JSON)
}

fn reviewed(review: &Review) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(review.to_bytes()));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests;
