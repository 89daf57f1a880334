//! Events: what exists of a kind and what changes, from the outbox. One poller a kind serves all who follow it.

mod outbox_position;

mod page;

mod hub;

mod follow;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kindex_events::{Event, Position};
use kindex_kube_api::request::Verb;
use kindex_kube_api::status::Details;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_serve::watches::WatchSlot;
use kindex_store::MetadataStorage;

use follow::Follow;
use outbox_position::OutboxPosition;

use super::rights::RequiredPermission;
use super::{Caller, Operations, Reason, Refusal, Streams, refusal};
use crate::metrics::GaugeIncrement;

pub(super) use hub::Hubs;

pub use follow::Messages;
pub use page::Sent;

/// What a subscription is about.
#[derive(Clone, Debug, Default)]
pub struct EventOptions {
    /// The position after which it begins; empty: with all that exists.
    pub from: String,
    /// Only objects that are deleted.
    pub deleting: bool,
}

impl Operations {
    /// The kind of a topic: its plural, or plural and group.
    ///
    /// # Errors
    /// 404 for none, and for several.
    pub fn kind_of_topic(&self, topic: &str) -> Result<&'static Kind, Refusal> {
        let is_meant = |kind: &&'static Kind| match topic.strip_prefix(kind.plural) {
            Some("") => true,
            Some(group) => group.strip_prefix('.') == Some(kind.group),
            None => false,
        };
        let found: Vec<&'static Kind> = self.registry().kinds.iter().copied().filter(is_meant).collect();
        match found.as_slice() {
            [kind] => Ok(kind),
            [] => Err(Refusal::new(
                Reason::NotFound,
                format!("there is no kind {topic:?}: write its plural, or plural.group"),
            )),
            several => {
                let names: Vec<String> = several.iter().map(|kind| page::topic(kind)).collect();
                let message = format!("{topic} may be {}: write one of these", names.join(" or "));
                Err(Refusal::new(Reason::NotFound, message))
            }
        }
    }

    /// The events of a kind after a position, or all that exists and then what changes. With the place of the
    /// subscription, for as long as it goes on.
    ///
    /// # Errors
    /// 400 for what is no position, 403 for who may not watch the kind in all namespaces, 410 for a position that is
    /// not known any more, 422 for a kind without events, 429 where there are as many subscriptions as may be.
    pub async fn events(
        self: &Arc<Self>,
        caller: &Caller,
        kind: &'static Kind,
        options: &EventOptions,
    ) -> Result<(Messages, WatchSlot), Refusal> {
        self.rights
            .allow(caller, RequiredPermission::of(Verb::Watch, kind.into(), None))
            .await?;
        let follow = self.streams.follow(self.backends.store()?, kind, options.deleting)?;
        let place = match options.from.as_str() {
            "" => None,
            from => {
                let place = Position::parse(from).and_then(|from| OutboxPosition::read(&from, &page::topic(kind)));
                Some(place.map_err(|error| Refusal::bad_request(error.to_string()))?)
            }
        };
        let slot = self.streams.slot()?;
        let place = match place {
            Some(place) => {
                follow.check(&place).await?;
                place
            }
            None => follow.beginning().await?,
        };
        let messages = follow.messages(place, GaugeIncrement::of(&self.streams.metrics.subscriptions));
        Ok((messages, slot))
    }

    /// The object of this uid, if it exists: for who missed it in a replay.
    ///
    /// # Errors
    /// 404 where there is none; its details name the uid, so that it is not taken for a wrong address.
    pub async fn event_of(&self, caller: &Caller, kind: &'static Kind, uid: &str) -> Result<Event, Refusal> {
        self.rights
            .allow(caller, RequiredPermission::of(Verb::Watch, kind.into(), None))
            .await?;
        let uid = Uid::from(uid);
        let row = self.backends.store()?.get_by_id(kind, &uid).await;
        let row = row.map_err(|error| refusal::of_query(&error))?;
        let Some(row) = row.filter(|row| row.life != Life::Deleted) else {
            let message = format!("{} has no object with uid {uid}", page::topic(kind));
            return Err(Refusal::new(Reason::NotFound, message).with(Details {
                uid: uid.to_string(),
                ..refusal::group_resource(kind).details("")
            }));
        };
        let metadata = &row.object.metadata;
        // The text of an archived object may have the deletionTimestamp with which it left the cluster.
        let deletion = metadata.deletion_timestamp.filter(|_| row.life == Life::Live);
        let tombstones = self
            .backends
            .store()?
            .tombstones(kind, std::slice::from_ref(&uid))
            .await;
        let tombstones = tombstones.map_err(|error| refusal::of_query(&error))?;
        let requested = tombstones.first().map(|tombstone| tombstone.requested);
        Ok(Event {
            resource_id: uid,
            deletion_timestamp: deletion.or(requested),
            topic: page::topic(kind),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            erased: false,
        })
    }

    /// Ends all subscriptions to events: their clients resume them elsewhere.
    pub fn end_events(&self) {
        self.streams.ending.cancel();
    }
}

impl Streams {
    /// What a subscription to a kind needs.
    fn follow(&self, store: &Arc<dyn MetadataStorage>, kind: &'static Kind, deleting: bool) -> Result<Follow, Refusal> {
        if !kind.events {
            let message = format!(
                "{} has no events: write `events = true` under [kinds.{}] in crds.toml, build, and run kindex migrate",
                page::topic(kind),
                kind.name
            );
            return Err(Refusal::new(Reason::Invalid, message));
        }
        Ok(Follow {
            store: store.clone(),
            hubs: self.hubs.clone(),
            watches: self.watches.clone(),
            kind,
            deleting,
            keep_alive: Follow::KEEP_ALIVE,
            ending: self.ending.clone(),
        })
    }
}
