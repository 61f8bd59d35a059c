//! Get and list.

use super::Call;
use crate::fault::{About, Fault, FieldError};
use crate::resources::Resource;
use crate::selector::{FieldSelector, LabelSelector, Selector};
use crate::server::Server;
use crate::store::{Object, OutOfReach, Page, Range};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a list or a watch is asked for.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which objects.
    pub selector: Selector,
    /// At most so many; 0 for all.
    pub limit: usize,
    /// Where to go on.
    pub next: Option<String>,
    /// Version of the state.
    pub version: String,
    /// How the version is meant.
    pub r#match: String,
    /// It is a watch.
    pub watch: bool,
    /// Bookmarks are understood.
    pub bookmarks: bool,
    /// A watch that begins with what is there.
    pub initial_events: Option<bool>,
    /// Seconds that a watch is open.
    pub timeout: Option<u64>,
}

impl ListOptions {
    /// Reads the query of a request.
    pub fn read(resource: &Resource, query: impl Fn(&str) -> Option<String>) -> Result<ListOptions, Fault> {
        let text = |name: &str| query(name).unwrap_or_default();
        let flag = |name: &str| query(name).map(|value| matches!(value.as_str(), "" | "1" | "true" | "True"));
        let number = |name: &str| match query(name).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| Fault::bad_request(format!("{name}: {text:?} is not a number"))),
        };
        let known = &resource.selectable;
        let options = ListOptions {
            selector: Selector {
                labels: LabelSelector::parse(&text("labelSelector"))?,
                fields: FieldSelector::parse(&text("fieldSelector"), known, |field| {
                    resource.unknown_field(field)
                })?,
            },
            limit: number("limit")?
                .and_then(|limit| usize::try_from(limit).ok())
                .unwrap_or_default(),
            next: query("continue").filter(|next| !next.is_empty()),
            version: text("resourceVersion"),
            r#match: text("resourceVersionMatch"),
            watch: flag("watch").unwrap_or_default(),
            bookmarks: flag("allowWatchBookmarks").unwrap_or_default(),
            initial_events: flag("sendInitialEvents"),
            timeout: number("timeoutSeconds")?,
        };
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), Fault> {
        let refused = |field: &str, why: &str| {
            let about = About {
                group: "meta.k8s.io",
                what: "ListOptions",
                name: "",
            };
            Err(Fault::invalid(&about, &[FieldError::forbidden(field, why)]))
        };
        if self.initial_events.is_some() {
            if !self.watch {
                return refused("sendInitialEvents", "sendInitialEvents is forbidden for list");
            }
            if self.r#match != "NotOlderThan" {
                return refused(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                );
            }
            return Ok(());
        }
        if self.r#match.is_empty() {
            return Ok(());
        }
        if self.watch {
            return refused(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if self.version.is_empty() {
            return refused(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
        }
        if self.next.is_some() {
            return refused(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            );
        }
        if self.r#match == "Exact" && self.version == "0" {
            return refused(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            );
        }
        if !matches!(self.r#match.as_str(), "Exact" | "NotOlderThan") {
            let about = About {
                group: "meta.k8s.io",
                what: "ListOptions",
                name: "",
            };
            let allowed = ["Exact", "NotOlderThan"].map(str::to_owned);
            let error =
                FieldError::not_supported("resourceVersionMatch", self.r#match.clone().into(), &allowed);
            return Err(Fault::invalid(&about, &[error]));
        }
        Ok(())
    }

    /// The version as a number; 0 where any will do.
    pub fn revision(&self) -> Result<u64, Fault> {
        if self.version.is_empty() {
            return Ok(0);
        }
        self.version.parse().map_err(|_| {
            let asked = &self.version;
            Fault::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {asked:?}: strconv.ParseUint: parsing {asked:?}: invalid \
                 syntax"
            ))
        })
    }
}

/// A version that is not known.
pub fn out_of_reach(reach: OutOfReach, asked: u64) -> Fault {
    match reach {
        OutOfReach::TooOld(oldest) => Fault::expired(format!("too old resource version: {asked} ({oldest})")),
        OutOfReach::TooNew(current) => {
            let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
            let mut fault = Fault::new(504, "Timeout", message);
            let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
            fault.details = Some(json!({"causes": [cause], "retryAfterSeconds": 1}));
            fault
        }
    }
}

impl Server {
    /// Reads an object.
    pub async fn read_one(&self, call: &Call<'_>) -> Result<Arc<Object>, Fault> {
        let object = self
            .get(call.resource.table, &call.key())
            .ok_or_else(|| call.not_found())?;
        self.settled(object.revision).await?;
        Ok(object)
    }

    /// Reads a part of a list.
    pub async fn read_list(&self, call: &Call<'_>, options: &ListOptions) -> Result<Page, Fault> {
        let token = options.next.as_deref().map(open).transpose()?;
        let asked = options.revision()?;
        if token.is_some() && asked > 0 {
            return Err(Fault::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let at = match (&token, options.r#match.as_str()) {
            (Some((revision, _)), _) => *revision,
            (None, "Exact") => asked,
            // With a limit a version is exact unless it is said otherwise.
            (None, "") if options.limit > 0 && asked > 0 => asked,
            (None, _) => 0,
        };
        let current = self.revision();
        if asked > current {
            return Err(out_of_reach(OutOfReach::TooNew(current), asked));
        }
        let range = Range {
            namespace: call.namespace,
            after: token.as_ref().map(|(_, after)| after.as_str()),
            limit: options.limit,
            at,
        };
        let selector = &options.selector;
        let page = self.list(call.resource.table, range, |object| selector.matches(object)).map_err(|reach| match token {
            Some(_) => Fault::expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a new list \
                 without the continue parameter.",
            ),
            None => out_of_reach(reach, at),
        })?;
        self.settled(page.revision).await?;
        Ok(page)
    }
}

/// Metadata of a part of a list.
pub fn page_metadata(page: &Page, options: &ListOptions) -> Value {
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some(next) = &page.next {
        metadata["continue"] = seal(page.revision, next).into();
        if options.selector.is_empty() {
            metadata["remainingItemCount"] = page.remaining.into();
        }
    }
    metadata
}

/// Where a list goes on, as a text that clients do not look into.
fn seal(revision: u64, after: &str) -> String {
    BASE64.encode(format!("{revision}/{after}"))
}

fn open(token: &str) -> Result<(u64, String), Fault> {
    let wrong = || Fault::bad_request("continue key is not valid: it is not from a list of this server");
    let bytes = BASE64.decode(token.trim_end_matches('=')).map_err(|_| wrong())?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let (revision, after) = text.split_once('/').ok_or_else(wrong)?;
    Ok((revision.parse().map_err(|_| wrong())?, after.to_owned()))
}
