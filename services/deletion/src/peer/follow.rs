//! What happens to the objects of a kind of another service, by its events. Who was away learns of all objects that
//! exist, and of those that have references of ours. Nothing follows from absence.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kindex_events::consumer::{Consumer, Item};
use kindex_events::held::{Limits, Stop};
use kindex_kube_client::ClusterError;
use kindex_model::object::Uid;
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use super::Peer;
use crate::object::{Key, KindName};

/// Before a subscription that failed is begun again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Before a replay that is not to be trusted is read again.
const DOUBT_FOR: Duration = Duration::from_secs(30);

/// The objects of a kind that have references of ours, by uid.
pub type TargetUids = Arc<Mutex<BTreeSet<Uid>>>;

/// What became known of the objects of another service.
#[derive(Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// Something happened to an object: it is to be looked up. Whether it is being deleted.
    Happened(Key, bool),
    /// All that exists was seen. These have references of ours.
    Replayed(KindName, Vec<Key>),
    /// Nothing new is heard for now, and why.
    Silent(KindName, String),
    /// Something is heard again.
    Heard(KindName),
    /// A replay that is not to be trusted: nothing of the kind is known any more. Why, and what can be done.
    Doubted(KindName, String),
}

/// Follows a kind until nobody listens.
pub async fn follow(peer: &Peer, holders: &[KindName], held: &TargetUids, events: &Sender<PeerEvent>) {
    while !events.is_closed() {
        let ended = follow_once(peer, holders, held, events).await;
        let Err(error) = ended else {
            continue;
        };
        // Nobody listens any more where it cannot be sent.
        let _ = events
            .send(PeerEvent::Silent(peer.kind.clone(), error.to_string()))
            .await;
        sleep(AGAIN_AFTER).await;
    }
}

async fn follow_once(
    peer: &Peer,
    holders: &[KindName],
    held: &TargetUids,
    events: &Sender<PeerEvent>,
) -> Result<(), ClusterError> {
    let kind = &peer.kind;
    let from = peer.events().await?;
    let mut consumer = Consumer::new(from.source, from.look_up, &from.topic, [], Limits::DEFAULT);
    let (mut is_silent, mut known) = (true, BTreeSet::new());
    loop {
        renew(&mut consumer, &mut known, held);
        let item = consumer.next().await;
        let item = item.map_err(|error| peer.service.unclear(&error.to_string()))?;
        let is_cut = matches!(item, Item::Cut(_));
        if is_silent && !is_cut && events.send(PeerEvent::Heard(kind.clone())).await.is_err() {
            return Ok(());
        }
        is_silent = is_cut;
        let event = match item {
            Item::Event(event) => {
                let is_deleted = event.deletion_timestamp.is_some() && !event.erased;
                let key = Key {
                    kind: kind.clone(),
                    namespace: event.namespace.into(),
                    name: event.name.into(),
                };
                PeerEvent::Happened(key, is_deleted)
            }
            Item::Replayed { .. } => PeerEvent::Replayed(kind.clone(), peer.targets(holders).await?),
            // Nothing of the other service is held but what `held` says.
            Item::Left(_) => continue,
            Item::Cut(error) => PeerEvent::Silent(kind.clone(), peer.service.unclear(&error.to_string()).to_string()),
            Item::Stopped(stop) => {
                let _ = events.send(PeerEvent::Doubted(kind.clone(), doubt(&stop))).await;
                sleep(DOUBT_FOR).await;
                return Ok(());
            }
        };
        let is_heard = events.send(event).await.is_ok();
        let ca_file = peer.service.address().ca_file.as_ref();
        if !is_heard || (is_cut && has_changed(ca_file, from.certificates.as_deref())) {
            return Ok(());
        }
    }
}

/// Whether a file has other certificates than those that were read from it.
fn has_changed(file: Option<&String>, read: Option<&[u8]>) -> bool {
    let now = file.and_then(|file| std::fs::read(file).ok());
    now.is_some_and(|now| Some(now.as_slice()) != read)
}

/// Why a replay is not believed, and what can be done. The limits are no setting, because nothing is deleted for its
/// absence: who starts again looks up what its objects name, and holds nothing that is gone.
fn doubt(stop: &Stop) -> String {
    let every = DOUBT_FOR.as_secs();
    let restart = format!(
        "The replay is read again every {every} s. If the objects are gone for good, restart this process: it looks up \
         anew which of them exist"
    );
    match stop {
        Stop::Empty { .. } => format!("{stop} {restart}"),
        Stop::TooMany { .. } => format!("{stop}. {restart}"),
        Stop::Restored { .. } => {
            format!("{stop}. The replay is read again in {every} s, and believed then unless too many are gone")
        }
    }
}

/// What is held by now: a replay that lacks one of these is not believed.
fn renew(consumer: &mut Consumer, known: &mut BTreeSet<Uid>, held: &TargetUids) {
    let now = held.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for uid in now.difference(known) {
        consumer.held().add(uid.clone());
    }
    for uid in known.difference(&now) {
        consumer.held().remove(uid);
    }
    *known = now;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_read_again_once_their_file_has_others() {
        let file = std::env::temp_dir().join(format!("kindex-certificates-{}", std::process::id()));
        std::fs::write(&file, "old").unwrap();
        let path = file.display().to_string();
        assert!(!has_changed(Some(&path), Some(b"old")));
        assert!(has_changed(Some(&path), Some(b"new")) && has_changed(Some(&path), None));
        std::fs::remove_file(&file).unwrap();
        assert!(!has_changed(Some(&path), Some(b"old")), "it is being replaced");
        assert!(!has_changed(None, None));
    }

    #[test]
    fn a_doubt_advises_only_what_whoever_runs_the_service_can_do() {
        let (topic, first) = ("networks.region.example.com".to_owned(), Uid::from("u"));
        let empty = Stop::Empty {
            topic: topic.clone(),
            held: 12,
        };
        let too_many = Stop::TooMany {
            topic: topic.clone(),
            gone: 11,
            held: 12,
            first: first.clone(),
            objects: Limits::DEFAULT.objects,
            percent: Limits::DEFAULT.percent,
        };
        let restored = Stop::Restored {
            topic,
            absent: 1,
            held: 12,
            first,
        };
        for (stop, advice) in [
            (&empty, "restart this process"),
            (&too_many, "restart this process"),
            (&restored, "read again in 30 s"),
        ] {
            let said = doubt(stop);
            assert!(said.starts_with(&stop.to_string()) && said.contains(advice), "{said}");
            for setting in ["limits", "allow"] {
                assert!(!said.contains(setting), "nobody can set that: {said}");
            }
        }
    }
}
