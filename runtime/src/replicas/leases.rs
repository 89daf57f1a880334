//! The leases in the cluster: read, written and given back as the board wishes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::board::{Board, Held, Record, Timing, Wish};
use crate::driver::Ingester;

/// On every lease of a group of replicas: its name.
const GROUP: &str = "kindex/replicas";
/// On the lease of a shard: its number.
const SHARD: &str = "kindex/shard";
/// On the lease of a replica: its name.
const MEMBER: &str = "kindex/member";

/// Where the leases are.
#[derive(Clone)]
pub struct Place {
    /// Of the cluster.
    pub client: Client,
    /// The namespace that holds them.
    pub namespace: String,
    /// What begins their names: `kindex-ingester`.
    pub group: String,
    /// This replica, by a name that no other one has.
    pub me: String,
}

/// Lets an ingester work on what it holds the leases of, until `stop`; then gives them back.
///
/// # Guarantees
/// A lease is given back after the work on its shard has come to rest. A lease that could not be renewed in time
/// ends the work, whether or not the cluster answers.
pub async fn run(place: &Place, ingester: &Ingester, timing: Timing, stop: &CancellationToken) {
    let mut desk = Desk {
        api: Api::namespaced(place.client.clone(), &place.namespace),
        place,
        timing,
        board: Board::new(place.me.clone(), ingester.shards(), timing),
        leases: BTreeMap::new(),
        began: Instant::now(),
    };
    loop {
        desk.look(ingester).await;
        if timeout(timing.retry, stop.cancelled()).await.is_ok() {
            break;
        }
    }
    let ours: Vec<usize> = desk.board.ours().collect();
    ingester.hand_out(&BTreeSet::new());
    for shard in ours {
        desk.give_up(shard, ingester).await;
    }
    desk.delete(&Held::Member(place.me.clone())).await;
}

struct Desk<'a> {
    api: Api<Lease>,
    place: &'a Place,
    timing: Timing,
    board: Board,
    /// As they were read or written last.
    leases: BTreeMap<Held, Lease>,
    began: Instant,
}

impl Desk<'_> {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    async fn look(&mut self, ingester: &Ingester) {
        let params = ListParams::default().labels(&format!("{GROUP}={}", self.place.group));
        match timeout(self.timing.retry, self.api.list(&params)).await {
            Ok(Ok(list)) => {
                let leases = list.items.into_iter().filter_map(|lease| Some((held(&lease)?, lease)));
                self.leases = leases.collect();
                let records = self.leases.iter().map(|(held, lease)| (held.clone(), record(lease)));
                self.board.observe(self.began.elapsed(), records);
            }
            Ok(Err(error)) => tracing::warn!("The leases of the replicas cannot be read: {error}"),
            Err(_) => tracing::warn!("The leases of the replicas cannot be read in time"),
        }
        for wish in self.board.decide(self.now()) {
            ingester.hand_out(&self.board.ours().collect());
            match wish {
                Wish::Write(held) => self.write(held).await,
                Wish::GiveUp(shard) => self.give_up(shard, ingester).await,
                Wish::Bury(held) => self.delete(&held).await,
            }
        }
        ingester.hand_out(&self.board.ours().collect());
    }

    /// Under the condition that the lease still is as it was read: of two replicas that want it one fails, and sees
    /// the other's at its next look.
    async fn write(&mut self, held: Held) {
        let began = self.now();
        let lease = self.renewed(&held, &self.place.me);
        match timeout(self.timing.retry, self.send(&held, &lease)).await {
            Ok(Ok(written)) => {
                let is_new = self
                    .board
                    .record(&held)
                    .is_none_or(|record| record.holder != self.place.me);
                if let (Held::Shard(shard), true) = (&held, is_new) {
                    tracing::info!(shard, "This replica takes the shard");
                }
                self.board.written(held.clone(), began, record(&written));
                self.leases.insert(held, written);
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => {}
            Ok(Err(error)) => tracing::warn!("A lease of the replicas cannot be written: {error}"),
            Err(_) => tracing::warn!("A lease of the replicas cannot be written in time"),
        }
    }

    async fn send(&self, held: &Held, lease: &Lease) -> Result<Lease, kube::Error> {
        if self.leases.contains_key(held) {
            self.api.replace(&self.name(held), &PostParams::default(), lease).await
        } else {
            self.api.create(&PostParams::default(), lease).await
        }
    }

    /// The work on the shard comes to rest first. Who cannot give a lease back lets it run out.
    async fn give_up(&mut self, shard: usize, ingester: &Ingester) {
        ingester.rest(shard).await;
        let held = Held::Shard(shard);
        let lease = self.renewed(&held, "");
        match timeout(self.timing.retry, self.send(&held, &lease)).await {
            Ok(Ok(_)) => tracing::info!(shard, "This replica gives the shard back"),
            Ok(Err(error)) => tracing::warn!("A lease of the replicas cannot be given back: {error}"),
            Err(_) => tracing::warn!("A lease of the replicas cannot be given back in time"),
        }
        self.board.forget(shard);
    }

    async fn delete(&mut self, held: &Held) {
        let name = self.name(held);
        let params = DeleteParams::default();
        let deleted = timeout(self.timing.retry, self.api.delete(&name, &params)).await;
        if let Ok(Err(error)) = deleted {
            tracing::debug!(name, "A lease cannot be deleted: {error}");
        }
    }

    fn name(&self, held: &Held) -> String {
        match held {
            Held::Member(name) => format!("{}-{name}", self.place.group),
            Held::Shard(number) => format!("{}-{number}", self.place.group),
        }
    }

    fn renewed(&self, held: &Held, holder: &str) -> Lease {
        let known = self.leases.get(held);
        let spec = known.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let now = Some(MicroTime(Timestamp::now()));
        let is_same = spec.holder_identity.as_deref() == Some(holder);
        let label = match held {
            Held::Member(name) => (MEMBER.to_owned(), name.clone()),
            Held::Shard(number) => (SHARD.to_owned(), number.to_string()),
        };
        let group = (GROUP.to_owned(), self.place.group.clone());
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name(held)),
                namespace: Some(self.place.namespace.clone()),
                labels: Some(BTreeMap::from([group, label])),
                resource_version: known.and_then(|lease| lease.metadata.resource_version.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: i32::try_from(self.timing.lease.as_secs())
                    .ok()
                    .filter(|seconds| *seconds > 0),
                acquire_time: if is_same { spec.acquire_time } else { now.clone() },
                renew_time: now,
                lease_transitions: Some(spec.lease_transitions.unwrap_or(0) + i32::from(!is_same)),
                ..LeaseSpec::default()
            }),
        }
    }
}

fn held(lease: &Lease) -> Option<Held> {
    let labels = lease.metadata.labels.as_ref()?;
    let shard = labels
        .get(SHARD)
        .and_then(|number| Some(Held::Shard(number.parse().ok()?)));
    shard.or_else(|| Some(Held::Member(labels.get(MEMBER)?.clone())))
}

fn record(lease: &Lease) -> Record {
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    Record {
        holder: holder.unwrap_or_default(),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}
