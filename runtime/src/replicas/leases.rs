//! Reads, renews and releases the leases in the cluster, as the assignment of shards decides.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kindex_kube_client::{Outcome, outcome};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Sharded;
use super::assignment::{Assignment, LeaseAction, LeaseSubject, Record, Timing};

/// Label of every lease: the name of its group of replicas.
const GROUP: &str = "kindex/replicas";
/// Label of the lease of a shard: its number.
const SHARD: &str = "kindex/shard";
/// Label of the lease of a replica: its name.
const MEMBER: &str = "kindex/member";

/// Where the leases are, and what they are called.
#[derive(Clone)]
pub struct LeaseConfig {
    /// The cluster that holds them.
    pub client: Client,
    /// The namespace that holds them.
    pub namespace: String,
    /// The prefix of their names: `kindex-ingester`.
    pub group: String,
    /// The unique name of this replica.
    pub me: String,
}

/// Assigns to a service the shards whose leases this replica holds, until `stop`. Then releases the leases.
///
/// # Guarantees
/// A lease is released after the work on its shard has drained. If a lease could not be renewed in time, the work
/// ends, whether or not the cluster answers; while another shard drains, after that.
pub async fn run(config: &LeaseConfig, work: &impl Sharded, timing: Timing, stop: &CancellationToken) {
    let mut replica = Replica {
        api: Api::namespaced(config.client.clone(), &config.namespace),
        config,
        timing,
        assignment: Assignment::new(config.me.clone(), work.shards(), timing),
        leases: BTreeMap::new(),
        began: Instant::now(),
    };
    loop {
        replica.sync(work).await;
        if timeout(timing.retry, stop.cancelled()).await.is_ok() {
            break;
        }
    }
    let ours: Vec<usize> = replica.assignment.ours().collect();
    work.assign(&BTreeSet::new());
    for shard in ours {
        replica.give_up(shard, work).await;
    }
    replica.delete(&LeaseSubject::Member(config.me.clone())).await;
}

struct Replica<'a> {
    api: Api<Lease>,
    config: &'a LeaseConfig,
    timing: Timing,
    assignment: Assignment,
    /// Each lease as it was read or written last.
    leases: BTreeMap<LeaseSubject, Lease>,
    began: Instant,
}

impl Replica<'_> {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    async fn sync(&mut self, work: &impl Sharded) {
        let params = ListParams::default().labels(&format!("{GROUP}={}", self.config.group));
        match timeout(self.timing.retry, self.api.list(&params)).await {
            Ok(Ok(list)) => {
                let leases = list
                    .items
                    .into_iter()
                    .filter_map(|lease| Some((subject(&lease)?, lease)));
                self.leases = leases.collect();
                let records = self
                    .leases
                    .iter()
                    .map(|(subject, lease)| (subject.clone(), record(lease)));
                self.assignment.observe(self.began.elapsed(), records);
            }
            Ok(Err(error)) => tracing::warn!("The leases of the replicas cannot be read: {error}"),
            Err(_) => tracing::warn!("The leases of the replicas cannot be read in time"),
        }
        for action in self.assignment.decide(self.now()) {
            // Each action may take as long as the cluster does.
            self.assignment.expire(self.now());
            work.assign(&self.assignment.ours().collect());
            match action {
                LeaseAction::Write(subject) => self.write(subject).await,
                LeaseAction::GiveUp(shard) => self.give_up(shard, work).await,
                LeaseAction::Delete(subject) => self.delete(&subject).await,
            }
        }
        self.assignment.expire(self.now());
        work.assign(&self.assignment.ours().collect());
    }

    /// Writes a lease if it has not changed since it was read. Of two replicas that write it at once, one fails.
    async fn write(&mut self, subject: LeaseSubject) {
        let began = self.now();
        let lease = self.renewed(&subject, &self.config.me);
        match timeout(self.timing.retry, self.send(&subject, &lease)).await {
            Ok(Ok(written)) => {
                let is_new = self
                    .assignment
                    .record(&subject)
                    .is_none_or(|record| record.holder != self.config.me);
                if let (LeaseSubject::Shard(shard), true) = (&subject, is_new) {
                    tracing::info!(shard, "This replica takes the shard");
                }
                self.assignment.written(subject.clone(), began, record(&written));
                self.leases.insert(subject, written);
            }
            Ok(Err(error)) if outcome(&error).is_some_and(Outcome::is_conflict) => {}
            Ok(Err(error)) => tracing::warn!("A lease of the replicas cannot be written: {error}"),
            Err(_) => tracing::warn!("A lease of the replicas cannot be written in time"),
        }
    }

    async fn send(&self, subject: &LeaseSubject, lease: &Lease) -> Result<Lease, kube::Error> {
        if self.leases.contains_key(subject) {
            self.api
                .replace(&self.name(subject), &PostParams::default(), lease)
                .await
        } else {
            self.api.create(&PostParams::default(), lease).await
        }
    }

    /// Drains the work on a shard and releases its lease. A lease that cannot be released expires.
    async fn give_up(&mut self, shard: usize, work: &impl Sharded) {
        work.drain(shard).await;
        let subject = LeaseSubject::Shard(shard);
        let lease = self.renewed(&subject, "");
        match timeout(self.timing.retry, self.send(&subject, &lease)).await {
            Ok(Ok(_)) => tracing::info!(shard, "This replica releases the shard"),
            Ok(Err(error)) => tracing::warn!("The lease of the shard cannot be released: {error}"),
            Err(_) => tracing::warn!("The lease of the shard cannot be released in time"),
        }
        self.assignment.forget(shard);
    }

    async fn delete(&mut self, subject: &LeaseSubject) {
        let name = self.name(subject);
        let params = DeleteParams::default();
        let deleted = timeout(self.timing.retry, self.api.delete(&name, &params)).await;
        if let Ok(Err(error)) = deleted {
            tracing::debug!(name, "A lease cannot be deleted: {error}");
        }
    }

    fn name(&self, subject: &LeaseSubject) -> String {
        match subject {
            LeaseSubject::Member(name) => format!("{}-{name}", self.config.group),
            LeaseSubject::Shard(number) => format!("{}-{number}", self.config.group),
        }
    }

    fn renewed(&self, subject: &LeaseSubject, holder: &str) -> Lease {
        let known = self.leases.get(subject);
        let spec = known.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let now = Some(MicroTime(Timestamp::now()));
        let is_same = spec.holder_identity.as_deref() == Some(holder);
        let label = match subject {
            LeaseSubject::Member(name) => (MEMBER.to_owned(), name.clone()),
            LeaseSubject::Shard(number) => (SHARD.to_owned(), number.to_string()),
        };
        let group = (GROUP.to_owned(), self.config.group.clone());
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name(subject)),
                namespace: Some(self.config.namespace.clone()),
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

fn subject(lease: &Lease) -> Option<LeaseSubject> {
    let labels = lease.metadata.labels.as_ref()?;
    let shard = labels
        .get(SHARD)
        .and_then(|number| Some(LeaseSubject::Shard(number.parse().ok()?)));
    shard.or_else(|| Some(LeaseSubject::Member(labels.get(MEMBER)?.clone())))
}

fn record(lease: &Lease) -> Record {
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    Record {
        holder: holder.unwrap_or_default(),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use http::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::sync::watch;

    use super::*;

    /// Six shards, and which of them are assigned.
    struct Work(watch::Sender<BTreeSet<usize>>);

    impl Sharded for Work {
        fn shards(&self) -> usize {
            6
        }

        fn assign(&self, shards: &BTreeSet<usize>) {
            self.0.send_replace(shards.clone());
        }

        async fn drain(&self, _shard: usize) {}
    }

    /// What a cluster has of leases.
    #[derive(Default)]
    struct Cluster {
        leases: Mutex<BTreeMap<String, Value>>,
        versions: AtomicUsize,
        /// Writes are not answered any more.
        hangs: AtomicBool,
    }

    impl Cluster {
        async fn answer(&self, request: Request<Body>) -> Value {
            let (head, body) = request.into_parts();
            if head.method == Method::GET {
                let items: Vec<Value> = self.leases.lock().expect("no panic").values().cloned().collect();
                return json!({"metadata": {}, "items": items});
            }
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let sent = body.collect_bytes().await.expect("a body");
            let mut lease: Value = serde_json::from_slice(&sent).expect("a lease");
            let version = self.versions.fetch_add(1, Ordering::SeqCst) + 1;
            lease["metadata"]["resourceVersion"] = version.to_string().into();
            let name = lease["metadata"]["name"].as_str().expect("a name").to_owned();
            self.leases.lock().expect("no panic").insert(name, lease.clone());
            lease
        }
    }

    fn client(cluster: &Arc<Cluster>) -> Client {
        let cluster = cluster.clone();
        let answer = move |request: Request<Body>| {
            let cluster = cluster.clone();
            async move {
                let answer = cluster.answer(request).await.to_string();
                Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes())))
            }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    /// As if it were looked at once for all writes whether leases were renewed in time: together, these take longer
    /// than a lease lasts.
    #[tokio::test(start_paused = true)]
    async fn while_writes_are_not_answered_work_ends_before_others_may_begin() {
        let (cluster, work) = (Arc::<Cluster>::default(), Work(watch::Sender::default()));
        let timing = Timing::of_lease(Duration::from_secs(15));
        let config = LeaseConfig {
            client: client(&cluster),
            namespace: "default".to_owned(),
            group: "ingester".to_owned(),
            me: "a".to_owned(),
        };
        let mut assigned = work.0.subscribe();
        let watched = async {
            let all = assigned.wait_for(|shards| shards.len() == work.shards()).await;
            drop(all.expect("there is work"));
            cluster.hangs.store(true, Ordering::SeqCst);
            let began = Instant::now();
            drop(assigned.wait_for(BTreeSet::is_empty).await.expect("there is work"));
            began.elapsed()
        };
        let stop = CancellationToken::new();
        let took = tokio::select! {
            () = run(&config, &work, timing, &stop) => None,
            took = watched => Some(took),
        };
        assert!(took.is_some_and(|took| took < timing.lease), "{took:?}");
    }
}
