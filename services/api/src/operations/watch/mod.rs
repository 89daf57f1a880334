//! Watches: the cluster's events without the deletions that archive objects, merged with the changes of archived
//! objects. An archived object still exists, so its watchers must not receive a deletion.

mod event;

mod moved;

mod feed;

mod event_sender;

mod pump;

use std::io;
use std::sync::Arc;

use futures::stream::BoxStream;
use kindex_kube_api::request::Verb;
use kindex_kube_api::status::{FieldProblem, Status};
use kindex_model::object::ResourceVersion;
use kindex_serve::pages::PageSize;
use kindex_serve::watches::WatchSlot;

use moved::Filter;
use pump::Pump;

use super::rights::RequiredPermission;
use super::{Caller, ListOptions, Operations, Reason, Refusal, Resource, is_direct};

pub use event::Event;
pub(super) use feed::Feed;
pub use feed::Pace;

/// How a watch goes.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Whether it is told from time to time how far it has come.
    pub bookmarks: bool,
    /// Whether the state comes first, as events, with a bookmark at its end; `None` where the version says it.
    pub initial_events: Option<bool>,
    /// When it ends.
    pub timeout_seconds: Option<u64>,
}

/// Events as they come.
pub type Events = BoxStream<'static, io::Result<Event>>;

/// Where a watch begins.
enum Beginning {
    /// With the state as it is.
    State,
    /// With the state as it is, which the client has.
    Now,
    /// After a version of the cluster.
    After(String),
}

impl Beginning {
    /// As Kubernetes reads the parameters.
    /// <https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-watch>
    fn of(which: &ListOptions, options: &WatchOptions) -> Result<Self, Refusal> {
        let version = which.resource_version.as_str();
        let is_any = matches!(version, "" | "0");
        match (options.initial_events, which.resource_version_match.as_str()) {
            (None, "") if is_any => Ok(Self::State),
            (None, "") => Ok(Self::After(version.to_owned())),
            (None, _) => Err(invalid(FieldProblem::match_without_initial_events())),
            (Some(true), "NotOlderThan") => Ok(Self::State),
            (Some(false), "NotOlderThan") if is_any => Ok(Self::Now),
            (Some(false), "NotOlderThan") => Ok(Self::After(version.to_owned())),
            (Some(_), _) => Err(invalid(FieldProblem::initial_events_without_match())),
        }
    }
}

fn invalid(problem: FieldProblem) -> Refusal {
    let status = Status::invalid_options("ListOptions", &[problem]);
    Refusal::new(Reason::Invalid, status.message)
}

impl Operations {
    /// The events of a kind after the version that the options name; after the state, where they name none. With
    /// the place of the watch, for as long as it goes on.
    ///
    /// # Errors
    /// 410 for a version that is forgotten, and for one of an archived object: it is none of the
    /// cluster's. The client lists again.
    pub async fn watch(
        self: &Arc<Self>,
        caller: &Caller,
        resource: impl Into<Resource>,
        which: &ListOptions,
        options: &WatchOptions,
    ) -> Result<(Events, WatchSlot), Refusal> {
        let resource = resource.into();
        let kind = resource.kind;
        let permission = RequiredPermission::of(Verb::Watch, resource, which.namespace.as_deref());
        self.rights.allow(caller, permission).await?;
        if which.at.is_some() || which.include_deleted {
            return Err(Refusal::bad_request("watch does not take at and includeDeleted"));
        }
        let beginning = Beginning::of(which, options)?;
        let filter =
            Filter::of(which, self.backends.view(resource)).map_err(|error| Refusal::bad_request(error.to_string()))?;
        let stream = pump::Stream {
            operations: self.clone(),
            caller: caller.clone(),
            resource,
            which: which.clone(),
            options: options.clone(),
        };
        let (streams, slot) = (&self.streams, self.streams.slot()?);
        if !self.backends.archives(kind) {
            let events = stream.plain().await?;
            let events = event_sender::fed(&streams.metrics, &streams.watches, event_sender::STALLED, |sender| {
                pump::hand_on(sender, events)
            });
            return Ok((events, slot));
        }
        let events = match beginning {
            Beginning::After(version) => {
                if is_direct(&version) {
                    return Err(Refusal::too_old(&version));
                }
                let events = stream.open(&version).await?;
                // What is no number the cluster has refused.
                let number = version.parse().map(ResourceVersion).unwrap_or_default();
                let follower = self.backends.feed()?.since(kind, number).await?;
                let pump = Pump::new(stream, filter, follower, version);
                event_sender::fed(&streams.metrics, &streams.watches, event_sender::STALLED, |sender| {
                    pump.live(sender, events)
                })
            }
            Beginning::Now => {
                let follower = self.backends.feed()?.from_now(kind).await?;
                let version = moved::version(&self.backends.upstream, &caller.on_behalf(), kind)
                    .await?
                    .to_string();
                let events = stream.open(&version).await?;
                let pump = Pump::new(stream, filter, follower, version);
                event_sender::fed(&streams.metrics, &streams.watches, event_sender::STALLED, |sender| {
                    pump.live(sender, events)
                })
            }
            Beginning::State => {
                let follower = self.backends.feed()?.from_now(kind).await?;
                let mut size = PageSize::default();
                let first = stream.page("", &mut size).await?;
                let pump = Pump::new(stream, filter, follower, first.version.clone());
                event_sender::fed(&streams.metrics, &streams.watches, event_sender::STALLED, |sender| {
                    pump.state_first(sender, first, size)
                })
            }
        };
        Ok((events, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_say_where_a_watch_begins() {
        let begin = |version: &str, matches: &str, initial_events| {
            let which = ListOptions {
                resource_version: version.to_owned(),
                resource_version_match: matches.to_owned(),
                ..ListOptions::default()
            };
            let options = WatchOptions {
                initial_events,
                ..WatchOptions::default()
            };
            match Beginning::of(&which, &options) {
                Ok(Beginning::State) => "the state".to_owned(),
                Ok(Beginning::Now) => "now".to_owned(),
                Ok(Beginning::After(version)) => version,
                Err(refusal) => refusal.code.to_string(),
            }
        };
        for (version, matches, initial_events, expected) in [
            ("", "", None, "the state"),
            ("0", "", None, "the state"),
            ("7", "", None, "7"),
            ("7", "NotOlderThan", None, "422"),
            ("", "NotOlderThan", Some(true), "the state"),
            ("7", "NotOlderThan", Some(true), "the state"),
            ("", "NotOlderThan", Some(false), "now"),
            ("7", "NotOlderThan", Some(false), "7"),
            ("", "", Some(true), "422"),
            ("7", "Exact", Some(false), "422"),
        ] {
            assert_eq!(
                begin(version, matches, initial_events),
                expected,
                "{version} {matches} {initial_events:?}"
            );
        }
    }
}
