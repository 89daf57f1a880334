//! Controllers of others: each keeps its own finalizer on its objects, goes on writing to them once they are deleted or
//! marked, and lets go at last. What the server answered to its last write is what SQL has to hold in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Stored;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::objects::{End, Stale, api, with_finalizer};

/// What keeps an object in the cluster beside ours.
const FINALIZER: &str = "example.com/holder";
/// The pauses of a controller between two calls are so many of these.
const PERIOD: Duration = Duration::from_millis(6);
const PERIODS_MAX: u32 = 6;
/// Writes before, and after, an object is told to go.
const WRITES_MAX: u32 = 4;
/// One life in so many has no end.
const ALIVE_IN: u32 = 8;

/// An object that a controller has held, as the cluster had it last.
#[derive(Debug)]
pub(crate) struct HeldObject {
    pub(crate) kind: &'static Kind,
    pub(crate) uid: Uid,
    pub(crate) end: End,
    last: DynamicObject,
}

impl HeldObject {
    /// What is wrong with the row, where anything is. The version that our own delete made differs from the one before
    /// it by its time of deletion, which the row need not have; everything that the controller wrote it must have.
    pub(crate) fn stale(&self, row: Option<&Stored>) -> Option<Stale> {
        let is_kept = row.is_some_and(|row| row.life == self.end.life() && self.is_in(row));
        let metadata = &self.last.metadata;
        (!is_kept).then(|| Stale {
            kind: self.kind.name,
            name: metadata.name.clone().unwrap_or_default(),
            end: self.end,
            last: metadata.resource_version.clone().unwrap_or_default(),
            held: row.map(|row| (row.object.metadata.resource_version, row.life)),
        })
    }

    fn is_in(&self, row: &Stored) -> bool {
        let text: Value = serde_json::from_str(row.object.text()).expect("rows hold JSON");
        let before = &self.last.metadata;
        let metadata = &row.object.metadata;
        let version = metadata.resource_version.to_string();
        let is_later =
            before.resource_version.as_ref().map(|last| (last.len(), last)) <= Some((version.len(), &version));
        is_later
            && text["spec"] == self.last.data["spec"]
            && text["status"] == self.last.data["status"]
            && metadata.labels.iter().eq(before.labels.iter().flatten())
            && metadata.annotations.iter().eq(before.annotations.iter().flatten())
    }
}

/// One such controller, which sees one object after the other through its life.
pub(crate) struct Controller {
    number: u64,
    client: Client,
    kinds: Vec<&'static Kind>,
    rng: StdRng,
    ticks: Interval,
}

impl Controller {
    pub(crate) fn new(number: u64, client: Client, kinds: Vec<&'static Kind>) -> Self {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            number,
            client,
            kinds,
            rng: StdRng::seed_from_u64(number),
            ticks,
        }
    }

    /// Until it is told to stop; the object that it is at comes to its end first.
    pub(crate) async fn run(mut self, stop: Arc<AtomicBool>) -> Vec<HeldObject> {
        let mut all = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let held = self.life(&format!("held-{}-{}", self.number, all.len())).await;
            all.push(held);
        }
        all
    }

    async fn life(&mut self, name: &str) -> HeldObject {
        let kind = self.kinds[self.rng.random_range(0..self.kinds.len())];
        let api = api(&self.client, kind);
        let mut object = with_finalizer(kind, name, 0);
        let place = self.rng.random_range(0..2);
        let finalizers = object.metadata.finalizers.get_or_insert_default();
        finalizers.insert(place, FINALIZER.to_owned());
        let created = api.create(&PostParams::default(), &object).await;
        let created = created.expect("the cluster creates");
        let uid = Uid::from(created.metadata.uid.as_deref().expect("the cluster gives uids"));
        let (mut last, mut end) = (self.write(&api, created).await, End::Alive);
        if self.rng.random_range(0..ALIVE_IN) > 0 {
            end = self.request_end(&api, name).await;
            self.write(&api, last).await;
            last = self.let_go(&api, name).await;
        }
        HeldObject { kind, uid, end, last }
    }

    async fn pause(&mut self) {
        for _ in 0..self.rng.random_range(0..=PERIODS_MAX) {
            self.ticks.tick().await;
        }
    }

    /// Statuses, a few of them; the object as it is then.
    async fn write(&mut self, api: &Api<DynamicObject>, mut last: DynamicObject) -> DynamicObject {
        let name = last.metadata.name.clone().expect("objects have names");
        for _ in 0..self.rng.random_range(1..=WRITES_MAX) {
            self.pause().await;
            let round = self.rng.random::<u32>();
            let status = json!({"status": {"errorMessage": format!("in round {round}")}});
            let patched = api
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
                .await;
            last = patched.expect("the cluster patches what is held");
        }
        last
    }

    async fn request_end(&mut self, api: &Api<DynamicObject>, name: &str) -> End {
        let platform = kindex_generated::registry().platform;
        self.pause().await;
        let (annotation, end) = match self.rng.random_range(0..3) {
            0 => {
                let deleted = api.delete(name, &DeleteParams::default()).await;
                deleted.expect("the cluster deletes");
                return End::Deleted;
            }
            1 => (platform.deleting, End::Deleted),
            _ => (platform.immutable, End::Archived),
        };
        let mark = Patch::Merge(json!({"metadata": {"annotations": {annotation: "true"}}}));
        let marked = api.patch(name, &PatchParams::default(), &mark).await;
        marked.expect("the cluster patches");
        end
    }

    /// Takes the finalizer of its own off, whatever others do meanwhile.
    async fn let_go(&mut self, api: &Api<DynamicObject>, name: &str) -> DynamicObject {
        self.pause().await;
        loop {
            let found = api.get(name).await.expect("it is held");
            let mut rest = found.metadata.finalizers.unwrap_or_default();
            rest.retain(|finalizer| finalizer != FINALIZER);
            let change = json!({"metadata": {
                "resourceVersion": found.metadata.resource_version, "finalizers": rest,
            }});
            match api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await {
                Ok(last) => return last,
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => panic!("the cluster patches: {error}"),
            }
        }
    }
}
