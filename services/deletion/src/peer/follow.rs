//! What happens to the objects of a kind of another service, by its events. Who was away learns of all objects that
//! exist, and of those that bear references of ours. Nothing follows from absence.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kindex_events::consumer::{Consumer, Item};
use kindex_events::held::Limits;
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

/// The objects of a kind that bear references of ours, by uid.
pub type Held = Arc<Mutex<BTreeSet<Uid>>>;

/// What became known.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// Something happened to an object: it is to be looked up. Whether it is being deleted.
    Happened(Key, bool),
    /// All that exists was seen. These bear references of ours.
    Replayed(KindName, Vec<Key>),
    /// Nothing new is heard for now, and why.
    Silent(KindName, String),
    /// Something is heard again.
    Heard(KindName),
    /// A replay that is not to be trusted: nothing of the kind is known any more.
    Doubted(KindName, String),
}

/// Follows a kind until nobody listens.
pub async fn follow(peer: &Peer, holders: &[KindName], held: &Held, news: &Sender<News>) {
    while !news.is_closed() {
        let ended = follow_once(peer, holders, held, news).await;
        let Err(error) = ended else {
            continue;
        };
        // Nobody listens any more where it cannot be sent.
        let _ = news.send(News::Silent(peer.kind.clone(), error.to_string())).await;
        sleep(AGAIN_AFTER).await;
    }
}

async fn follow_once(peer: &Peer, holders: &[KindName], held: &Held, news: &Sender<News>) -> Result<(), ClusterError> {
    let kind = &peer.kind;
    let from = peer.events().await?;
    let mut consumer = Consumer::new(from.source, from.look_up, &from.topic, [], Limits::DEFAULT);
    let (mut is_silent, mut known) = (true, BTreeSet::new());
    loop {
        renew(&mut consumer, &mut known, held);
        let item = consumer.next().await;
        let item = item.map_err(|error| peer.service.unclear(&error.to_string()))?;
        let is_cut = matches!(item, Item::Cut(_));
        if is_silent && !is_cut && news.send(News::Heard(kind.clone())).await.is_err() {
            return Ok(());
        }
        is_silent = is_cut;
        let said = match item {
            Item::Event(event) => {
                let is_deleted = event.deletion_timestamp.is_some() && !event.erased;
                let key = Key {
                    kind: kind.clone(),
                    namespace: event.namespace,
                    name: event.name,
                };
                News::Happened(key, is_deleted)
            }
            Item::Replayed { .. } => News::Replayed(kind.clone(), peer.bearers(holders).await?),
            Item::Cut(error) => News::Silent(kind.clone(), peer.service.unclear(&error.to_string()).to_string()),
            Item::Stopped(stop) => {
                let _ = news.send(News::Doubted(kind.clone(), stop.to_string())).await;
                sleep(DOUBT_FOR).await;
                return Ok(());
            }
        };
        if news.send(said).await.is_err() {
            return Ok(());
        }
    }
}

/// What is held by now: a replay that lacks one of these is not believed.
fn renew(consumer: &mut Consumer, known: &mut BTreeSet<Uid>, held: &Held) {
    let now = held.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for uid in now.difference(known) {
        consumer.held().add(uid.clone());
    }
    for uid in known.difference(&now) {
        consumer.held().remove(uid);
    }
    *known = now;
}
