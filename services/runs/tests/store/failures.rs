//! Statements, commits and disks that fail: nothing is half done, no id is used up, and the store goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kindex_runs::domain::{RunId, Status};
use kindex_runs::refusal::{Code, Refusal};
use kindex_runs::store::{Command, Failure, Faults, Settings, Store, StoreError, Tx};

use super::support::{Bench, Point, SECOND, pairs, quiet, reason};

/// Makes the statement with a number fail, until there is no such number.
fn breakable() -> (Settings, Arc<AtomicU64>) {
    let at = Arc::new(AtomicU64::new(u64::MAX));
    let asked = Arc::clone(&at);
    let settings = Settings {
        faults: Some(Faults(Arc::new(move |statement| {
            statement == asked.load(Ordering::SeqCst)
        }))),
        compact_points: 3,
        ..quiet()
    };
    (settings, at)
}

#[tokio::test]
async fn a_store_error_leaves_no_half_batch() {
    let (settings, at) = breakable();
    let bench = Bench::with(settings).await;
    bench.open("r").await;
    bench.log_at("r", 3, &[("old", 3, 3.0)]).await.expect("held");
    let mut statements = 0;
    for round in 0.. {
        // Everything that a batch can touch: names, parameters, tags, a released batch.
        let mut sent = bench.batch("r", "b", Some(2), &[("old", 1, 1.0), ("new", 1, 1.0)]);
        sent.params = pairs(&[("lr", "1")]);
        sent.tags = pairs(&[("team", "a")]);
        let first = bench.batch("r", "first", Some(1), &[("old", 0, 0.0)]);
        if round == 0 {
            bench.store.log(first).await.expect("stored");
        }
        at.store(round + 1, Ordering::SeqCst);
        let answer = bench.store.log(sent).await;
        at.store(u64::MAX, Ordering::SeqCst);
        match answer {
            Err(refusal) => {
                statements += 1;
                assert_eq!(
                    (refusal.code, refusal.reason),
                    (Code::Unavailable, "STORE_UNAVAILABLE"),
                    "{round}"
                );
                assert_eq!(bench.points("r").await, 2, "statement {round}");
                let run = bench.store.run(&RunId::new("r")).await.expect("read").expect("there");
                assert_eq!((run.params, run.tags), (Vec::new(), Vec::new()), "statement {round}");
                assert_eq!(
                    bench
                        .store
                        .metric_names(&run.run)
                        .await
                        .expect("read")
                        .expect("there")
                        .len(),
                    1
                );
                bench.verify().await;
            }
            Ok(logged) => {
                assert_eq!((logged.accepted, logged.deduplicated), (2, 0), "the id was free");
                break;
            }
        }
    }
    assert!(statements > 8, "only {statements} statements failed");
    assert_eq!(bench.points("r").await, 4);
    assert_eq!(bench.values("r", "old").await, [(0, 0.0), (1, 1.0), (3, 3.0)]);
    bench.verify().await;
}

#[tokio::test]
async fn a_failure_at_any_stage_leaves_the_id_free() {
    let (settings, at) = breakable();
    let mut bench = Bench::with(settings).await;
    bench.open("r").await;
    for round in 1..40 {
        let id = format!("b{round}");
        at.store(round, Ordering::SeqCst);
        let failed = bench.log("r", &id, &[("loss", round as i64, 1.0)]).await.is_err();
        at.store(u64::MAX, Ordering::SeqCst);
        if round % 7 == 0 {
            bench.restart().await;
        }
        let again = bench
            .log("r", &id, &[("loss", round as i64, 1.0)])
            .await
            .expect("stored");
        assert_eq!(again.is_duplicate(), !failed, "statement {round}");
        assert_eq!(again.accepted, u64::from(failed), "statement {round}");
    }
    assert_eq!(bench.values("r", "loss").await.len(), 39);
    bench.verify().await;
}

#[tokio::test]
async fn compaction_that_fails_at_any_statement_changes_nothing_and_is_done_later() {
    let (settings, at) = breakable();
    let bench = Bench::with(settings).await;
    bench.open("r").await;
    for step in 0..3 {
        bench
            .log("r", &format!("b{step}"), &[("a", step, 1.0), ("b", 0, step as f64)])
            .await
            .expect("stored");
    }
    let mut failures = 0;
    for statement in 1..100 {
        at.store(statement, Ordering::SeqCst);
        let step = bench.store.compact().await;
        at.store(u64::MAX, Ordering::SeqCst);
        bench.verify().await;
        assert_eq!(bench.values("r", "a").await, [(0, 1.0), (1, 1.0), (2, 1.0)]);
        assert_eq!(bench.values("r", "b").await, [(0, 2.0)]);
        match step {
            Err(_) => failures += 1,
            Ok(true) => {}
            Ok(false) => break,
        }
    }
    assert!(failures > 3, "only {failures} statements failed");
    assert!(bench.verify().await.chunks > 0);
}

/// Changes the file behind the back of the store, as a failing disk does.
async fn damage(bench: &Bench, statements: &'static str) {
    let url = format!("sqlite:{}", bench.path().join("runs.db").display());
    let file = sqlx::SqlitePool::connect(&url).await.expect("it opens");
    sqlx::raw_sql(statements).execute(&file).await.expect("written");
    file.close().await;
}

fn points(steps: std::ops::Range<i64>) -> Vec<Point<'static>> {
    steps.map(|step| ("a", step, 1.0)).collect()
}

/// As if it were the most urgent one again at every step.
#[tokio::test]
async fn a_run_with_a_damaged_chunk_does_not_keep_others_from_being_sealed() {
    let mut bench = Bench::with(Settings {
        compact_points: 100,
        ..quiet()
    })
    .await;
    for run in ["damaged", "other"] {
        bench.open(run).await;
        bench.log(run, "a", &points(0..100)).await.expect("stored");
    }
    bench.compact().await;
    damage(
        &bench,
        "UPDATE chunk SET body = x'01' WHERE run_no = (SELECT run_no FROM run WHERE run_id = 'damaged')",
    )
    .await;
    for run in ["damaged", "other"] {
        bench.finish(run, Status::Finished).await.expect("it ends");
    }
    for round in ["at first", "after a restart"] {
        bench.compact().await;
        let unsealed: Vec<String> = sqlx::query_scalar("SELECT run_id FROM run WHERE is_sealed = 0")
            .fetch_all(bench.store.readers())
            .await
            .expect("read");
        assert_eq!(unsealed, ["damaged"], "{round}");
        assert_eq!(bench.store.stats().deferred_runs, 1, "{round}");
        bench.restart().await;
    }
    bench.compact().await;
    bench.store.delete(RunId::new("damaged")).await.expect("deleted");
    assert_eq!(bench.store.stats().deferred_runs, 0);
}

#[tokio::test]
async fn a_run_with_a_damaged_batch_takes_no_room_of_others_and_is_compacted_once_it_is_whole() {
    let bench = Bench::with(Settings {
        compact_points: 100,
        backlog_points_max: 150,
        tail_bytes_max: 0,
        ..quiet()
    })
    .await;
    bench.open("damaged").await;
    bench.open("other").await;
    bench.log("damaged", "a", &points(0..140)).await.expect("stored");
    let statements = "CREATE TABLE kept AS SELECT * FROM batch_body; UPDATE batch_body SET body = x'01'";
    damage(&bench, statements).await;
    bench.log("other", "a", &points(0..100)).await.expect("stored");
    let full = bench.log("other", "b", &points(100..101)).await;
    assert_eq!(reason(full), "BACKLOG_FULL", "nothing has failed yet");
    bench.compact().await;
    let stats = bench.store.stats();
    assert_eq!((stats.backlog_points, stats.deferred_runs), (140, 1));
    bench.log("damaged", "b", &points(140..160)).await.expect("stored");
    let full = bench.log("damaged", "c", &points(160..161)).await;
    assert_eq!(reason(full), "BACKLOG_FULL");
    bench.log("other", "b", &points(100..101)).await.expect("stored");
    let statements = "UPDATE batch_body SET body = (SELECT body FROM kept WHERE arrival_no = batch_body.arrival_no) \
                      WHERE arrival_no IN (SELECT arrival_no FROM kept)";
    damage(&bench, statements).await;
    assert_eq!(bench.compact().await, 0, "it is put aside for a second");
    bench.advance(SECOND);
    assert_eq!(bench.compact().await, 1);
    let stats = bench.store.stats();
    assert_eq!((stats.backlog_points, stats.deferred_runs), (21, 0));
    assert_eq!(bench.values("damaged", "a").await.len(), 160);
    assert_eq!(bench.values("other", "a").await.len(), 101);
    bench.verify().await;
}

/// Writes, and then breaks its contract or a constraint.
struct BrokenCommand {
    refuses: bool,
}

impl Command for BrokenCommand {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        let statement = "UPDATE run SET points_accepted = 77, artifacts = 77";
        sqlx::query(statement).execute(tx.write().await?).await?;
        if self.refuses {
            return Err(Refusal::new(Code::NotFound, "TOO_LATE", "It was refused after it had written.").into());
        }
        let statement = "INSERT INTO counter (name, value) VALUES ('twice', 1), ('twice', 2)";
        sqlx::query(statement).execute(tx.write().await?).await?;
        Ok(())
    }
}

#[tokio::test]
async fn one_command_that_fails_takes_no_other_along() {
    let bench = Bench::new().await;
    bench.open("r").await;
    for (round, refuses) in [true, false].into_iter().enumerate() {
        // All wait at once, so that they share a transaction.
        let logged = |n| bench.log_at("r", n, &[]);
        let first = round as i64 * 4 + 1;
        let broken = bench.store.write(BrokenCommand { refuses });
        let (a, b, broken, c, d) = futures::join!(
            logged(first),
            logged(first + 1),
            broken,
            logged(first + 2),
            logged(first + 3)
        );
        assert!([a, b, c, d].iter().all(Result::is_ok), "{refuses}");
        let expected = if refuses { "TOO_LATE" } else { "STORE_UNAVAILABLE" };
        assert_eq!(broken.expect_err("it fails").reason, expected);
        let run = bench.store.run(&RunId::new("r")).await.expect("read").expect("there");
        assert_eq!((run.points, run.artifacts), (0, 0), "what it had written is undone");
    }
    let report = bench.verify().await;
    assert_eq!(report.batches, 8);
}

#[tokio::test]
async fn a_full_disk_refuses_and_stores_nothing_and_the_store_goes_on_when_there_is_room() {
    let bench = Bench::new().await;
    bench.open("r").await;
    bench.log("r", "a", &[("loss", 0, 0.0)]).await.expect("stored");
    bench.store.write(PageLimit { pages: 1 }).await.expect("limited");
    let points: Vec<(String, i64, f64)> = (0..5000).map(|step| ("loss".to_owned(), step, 0.1)).collect();
    let points: Vec<(&str, i64, f64)> = points
        .iter()
        .map(|(name, step, value)| (name.as_str(), *step, *value))
        .collect();
    let refused = bench.log("r", "b", &points).await.expect_err("there is no room");
    assert_eq!((refused.code, refused.reason), (Code::Unavailable, "DISK_FULL"));
    assert!(refused.retry_after.is_some());
    assert_eq!(bench.points("r").await, 1);
    bench
        .store
        .write(PageLimit { pages: 4_000_000_000 })
        .await
        .expect("there is room");
    assert_eq!(bench.log("r", "b", &points).await.expect("stored").accepted, 5000);
    bench.verify().await;
}

/// Bounds the file, as a disk does.
struct PageLimit {
    pages: i64,
}

impl Command for PageLimit {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        // A limit below the size of the file means its size.
        let statement = format!("PRAGMA max_page_count = {}", self.pages);
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(tx.read().await?)
            .await?;
        Ok(())
    }
}

#[tokio::test]
async fn two_processes_never_have_one_folder() {
    let bench = Bench::new().await;
    let clock = kindex_runs::domain::system_clock();
    let second = Store::open(&bench.path(), quiet(), clock).await;
    assert!(matches!(second.err(), Some(StoreError::InUse { .. })));
}

#[tokio::test]
async fn a_closed_store_refuses_and_says_when_to_try_again() {
    let bench = Bench::new().await;
    bench.open("r").await;
    bench.store.close().await;
    let refused = bench
        .log("r", "b", &[("loss", 1, 1.0)])
        .await
        .expect_err("it is closed");
    assert_eq!(refused.code, Code::Unavailable);
    assert!(refused.retry_after.is_some());
}

#[tokio::test]
async fn held_bytes_over_the_bound_are_refused_and_the_id_stays_free() {
    let bench = Bench::with(Settings {
        held_bytes_max: 64,
        ..quiet()
    })
    .await;
    bench.open("r").await;
    bench.log_at("r", 2, &[("loss", 2, 2.0)]).await.expect("held");
    let points: Vec<(&str, i64, f64)> = (0..10).map(|step| ("loss", step, 1.0)).collect();
    let refused = bench.log_at("r", 3, &points).await.expect_err("too much is held");
    assert_eq!(
        (refused.code, refused.reason),
        (Code::ResourceExhausted, "HELD_BATCHES_FULL")
    );
    assert_eq!(bench.points("r").await, 1);
    bench
        .log_at("r", 1, &[("loss", 1, 1.0)])
        .await
        .expect("the missing one is stored");
    assert_eq!(bench.log_at("r", 3, &points).await.expect("stored").accepted, 10);
    bench.advance(SECOND);
    bench.finish("r", Status::Finished).await.expect("it ends");
    bench.verify().await;
}
