//! Retention rules over every database: for random rows and random rules, what goes is what a
//! plain reading of the rule says, and no row goes that is live.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kindex_maintenance::purge::{Mode, Options, Purged, purge};
use kindex_maintenance::retries::RetryBudget;
use kindex_model::kind::Retention;
use kindex_model::object::Uid;
use kindex_query::{Life, Revive};
use kindex_store::progress::NoProgress;
use kindex_store::{Gone, RowWrite};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::backend::Backend;
use super::widget::{WIDGET, project, soft_delete, widget};

scenarios!(
    what_goes_is_what_the_rule_says,
    a_dry_run_counts_the_same_and_removes_nothing,
    a_row_that_comes_back_to_life_meanwhile_stays,
);

const STATES: [&str; 3] = ["DONE", "FAILED", "OPEN"];

/// A row as the test knows it.
#[derive(Clone, Debug)]
struct Known {
    uid: String,
    namespace: &'static str,
    state: &'static str,
    life: Life,
    gone: Timestamp,
}

impl Known {
    fn random(number: usize, now: Timestamp, random: &mut StdRng) -> Self {
        let life = [Life::Live, Life::Archived, Life::Deleted][random.random_range(0..3)];
        // Few moments, so that rows share them; never close to the rule's edge, for time goes on.
        let hours = 24 * random.random_range(0..8) + 12;
        Self {
            uid: format!("u{number:03}"),
            namespace: ["shop", "Shop", "other"][random.random_range(0..3)],
            state: STATES[random.random_range(0..3)],
            life,
            gone: now - SignedDuration::from_hours(hours),
        }
    }

    fn write(&self) -> RowWrite {
        let thing = widget(&self.uid, &self.uid, 1).label("l", "1").annotation("a", "1");
        let text = thing.spec(json!({"group": self.state})).text();
        RowWrite::Store {
            version: project(&text.replace("\"shop\"", &format!("\"{}\"", self.namespace))),
            life: self.life,
            revive: Revive::FromAny,
        }
    }
}

fn random_rule(random: &mut StdRng) -> Retention {
    let keep_days = random.random_bool(0.6).then(|| random.random_range(0..8));
    let last = keep_days.is_none() || random.random_bool(0.5);
    Retention {
        keep_days,
        keep_last_per_namespace: last.then(|| random.random_range(0..6)),
        state_column: Some("group"),
        states: &STATES[..random.random_range(0..3)],
        evicted: random.random_bool(0.5),
    }
}

/// A plain reading of the rule, over all rows at once.
fn expected(rows: &[Known], rule: &Retention, now: Timestamp) -> BTreeSet<String> {
    let mut namespaces: BTreeMap<&str, Vec<&Known>> = BTreeMap::new();
    for row in rows {
        let life = row.life == Life::Deleted || rule.evicted && row.life == Life::Archived;
        if life && (rule.states.is_empty() || rule.states.contains(&row.state)) {
            namespaces.entry(row.namespace).or_default().push(row);
        }
    }
    let mut going = BTreeSet::new();
    for rows in namespaces.values_mut() {
        rows.sort_by(|a, b| (b.gone, &b.uid).cmp(&(a.gone, &a.uid)));
        let kept = rule.keep_last_per_namespace.unwrap_or(0) as usize;
        for row in rows.iter().skip(kept) {
            let days = rule
                .keep_days
                .map(|days| SignedDuration::from_hours(24 * i64::from(days)));
            if days.is_none_or(|days| now.duration_since(row.gone) > days) {
                going.insert(row.uid.clone());
            }
        }
    }
    going
}

async fn fill(backend: &Backend, rows: &[Known]) {
    for row in rows {
        // One at a time: the time of a row's end is the time of its write.
        backend.write(row.write(), row.gone).await;
    }
}

async fn purged(backend: &Backend, rule: &Retention, mode: Mode) -> Purged {
    let options = Options {
        mode,
        has_outside: false,
        has_deletion: false,
        page_rows: 2,
        retry_budget: RetryBudget(Duration::from_secs(60)),
    };
    let purged = purge(backend.store.as_ref(), &WIDGET, rule, &options, &NoProgress).await;
    purged.expect("the database answers")
}

async fn present(backend: &Backend) -> BTreeMap<String, Life> {
    let rows = backend.store.scan(&WIDGET, None, 1_000).await.expect("read");
    rows.into_iter().map(|row| (row.uid.to_string(), row.life)).collect()
}

async fn empty(backend: &Backend, rows: &[Known]) {
    let live = rows.iter().filter(|row| row.life == Life::Live);
    let closing: Vec<RowWrite> = live.map(|row| soft_delete(&row.uid)).collect();
    backend.write_all(&closing, Timestamp::now()).await;
    let all = Gone {
        deleted: true,
        archived: true,
        ..Gone::default()
    };
    let uids: Vec<Uid> = rows.iter().map(|row| Uid::from(row.uid.as_str())).collect();
    backend
        .store
        .remove(&WIDGET, &all, &uids, Timestamp::now())
        .await
        .expect("removed");
    assert!(present(backend).await.is_empty());
}

async fn what_goes_is_what_the_rule_says(backend: Backend) {
    let mut went = 0;
    for seed in 0..12 {
        let mut random = StdRng::seed_from_u64(seed);
        let now = backend.store.clock().await.expect("read");
        let rows: Vec<Known> = (0..40).map(|number| Known::random(number, now, &mut random)).collect();
        fill(&backend, &rows).await;
        let rule = random_rule(&mut random);
        let going = expected(&rows, &rule, now);
        let report = purged(&backend, &rule, Mode::Remove).await;
        let left = present(&backend).await;
        for row in &rows {
            let life = left.get(&row.uid).copied();
            let should = (!going.contains(&row.uid)).then_some(row.life);
            assert_eq!(life, should, "seed {seed}: {rule:?} {row:?}");
        }
        assert_eq!(report.rows(), going.len() as u64, "seed {seed}");
        let times = || rows.iter().filter(|row| going.contains(&row.uid)).map(|row| row.gone);
        let between = (times().min(), times().max());
        assert_eq!((report.oldest, report.newest), between, "seed {seed}");
        assert_eq!(
            purged(&backend, &rule, Mode::Remove).await.rows(),
            0,
            "seed {seed}: nothing is left to go"
        );
        if let Some(owners) = backend.rows("SELECT obj_uid FROM widget_labels").await {
            let owners: BTreeSet<_> = owners.into_iter().filter_map(|mut row| row.remove(0)).collect();
            assert_eq!(
                owners,
                left.keys().cloned().collect(),
                "seed {seed}: labels go with their rows"
            );
        }
        went += going.len();
        empty(&backend, &rows).await;
    }
    assert!(went > 50, "the rules are about something: {went}");
}

async fn a_dry_run_counts_the_same_and_removes_nothing(backend: Backend) {
    let mut random = StdRng::seed_from_u64(7);
    let now = backend.store.clock().await.expect("read");
    let rows: Vec<Known> = (0..60).map(|number| Known::random(number, now, &mut random)).collect();
    fill(&backend, &rows).await;
    let rule = Retention {
        keep_days: Some(2),
        keep_last_per_namespace: Some(2),
        state_column: None,
        states: &[],
        evicted: true,
    };
    let before = present(&backend).await;
    let dry = purged(&backend, &rule, Mode::DryRun).await;
    assert_eq!(present(&backend).await, before);
    assert!(
        dry.deleted > 0 && dry.evicted > 0 && dry.oldest <= dry.newest,
        "{dry:?}"
    );
    assert_eq!(purged(&backend, &rule, Mode::Remove).await, dry);
}

/// A writer deletes and revives rows as fast as it can while a rule without mercy is applied again
/// and again: what the writer left alive is there.
async fn a_row_that_comes_back_to_life_meanwhile_stays(backend: Backend) {
    let rule = Retention {
        keep_days: Some(0),
        keep_last_per_namespace: None,
        state_column: None,
        states: &[],
        evicted: true,
    };
    let backend = Arc::new(backend);
    let writer = {
        let backend = backend.clone();
        tokio::spawn(async move {
            let mut random = StdRng::seed_from_u64(11);
            let mut alive = BTreeSet::new();
            for round in 0..150_u64 {
                let uid = format!("u{}", random.random_range(0..6));
                let life = [Life::Live, Life::Live, Life::Archived, Life::Deleted][random.random_range(0..4)];
                let write = widget(&uid, &uid, round + 1)
                    .label("l", "1")
                    .store(life, Revive::FromAny);
                backend
                    .write(write, Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1))
                    .await;
                if life == Life::Live {
                    alive.insert(uid);
                } else {
                    alive.remove(&uid);
                }
            }
            alive
        })
    };
    let mut went = 0;
    while !writer.is_finished() {
        went += purged(&backend, &rule, Mode::Remove).await.rows();
        tokio::task::yield_now().await;
    }
    let alive = writer.await.expect("the writer ends");
    went += purged(&backend, &rule, Mode::Remove).await.rows();
    assert!(went > 0, "something was removed meanwhile");
    let left = present(&backend).await;
    assert_eq!(left.keys().cloned().collect::<BTreeSet<_>>(), alive);
    assert!(left.values().all(|life| *life == Life::Live), "{left:?}");
}
