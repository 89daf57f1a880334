//! Compaction in many short transactions, reads that pass chunks over, and files that get shorter: none of it changes
//! what is read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kindex_runs::domain::{MetricName, RunId, Status};
use kindex_runs::store::{Faults, NamedSeries, SeriesRequest, Settings};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::support::{Bench, Point, START, quiet};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The last value of each metric and step.
type Model = BTreeMap<(&'static str, i64), f64>;

/// Makes a statement fail by its number among all, once.
fn breakable() -> (Settings, Arc<AtomicU64>) {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let asked = Arc::clone(&left);
    let settings = Settings {
        faults: Some(Faults(Arc::new(move |_| {
            asked.load(Ordering::SeqCst) != u64::MAX && asked.fetch_sub(1, Ordering::SeqCst) == 0
        }))),
        compact_points: 60,
        compact_chunks: 1,
        ..quiet()
    };
    (settings, left)
}

/// Logs batches that write over each other's steps.
async fn fill(bench: &Bench, model: &mut Model, chance: &mut StdRng, batches: std::ops::Range<u64>) {
    for number in batches {
        let points: Vec<Point<'static>> = (0..6)
            .map(|_| {
                let name = NAMES[chance.random_range(0..NAMES.len())];
                (name, chance.random_range(0..30), chance.random_range(0.0..1.0))
            })
            .collect();
        model.extend(points.iter().map(|(name, step, value)| ((*name, *step), *value)));
        bench.log("r", &format!("b{number}"), &points).await.expect("stored");
    }
}

async fn expect(bench: &Bench, model: &Model, when: &str) {
    for name in NAMES {
        let of_name = model.iter().filter(|((other, _), _)| *other == name);
        let expected: Vec<(i64, f64)> = of_name.map(|((_, step), value)| (*step, *value)).collect();
        assert_eq!(bench.values("r", name).await, expected, "{name}, {when}");
    }
    bench.verify().await;
}

#[tokio::test]
async fn compaction_that_stops_between_any_two_transactions_loses_nothing() {
    let mut stopped = 0;
    for statement in 0.. {
        let (settings, left) = breakable();
        let mut bench = Bench::with(settings).await;
        bench.open("r").await;
        let (mut model, mut chance) = (Model::new(), StdRng::seed_from_u64(statement));
        fill(&bench, &mut model, &mut chance, 0..30).await;
        left.store(statement, Ordering::SeqCst);
        let step = bench.store.compact().await;
        left.store(u64::MAX, Ordering::SeqCst);
        expect(&bench, &model, &format!("stopped at statement {statement}")).await;
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM batch WHERE state = 2")
            .fetch_one(bench.store.readers())
            .await
            .expect("read");
        let chunks = bench.verify().await.chunks;
        stopped += u64::from(step.is_err() && rows > 0 && chunks > 0);
        bench.restart().await;
        fill(&bench, &mut model, &mut chance, 30..32).await;
        expect(&bench, &model, "started again").await;
        bench.finish("r", Status::Finished).await.expect("it ends");
        bench.compact().await;
        expect(&bench, &model, "compacted").await;
        assert_eq!(bench.store.stats().backlog_points, 0);
        if step.is_ok() {
            break;
        }
    }
    assert!(
        stopped > 5,
        "only {stopped} times there were chunks of batches that were still there"
    );
}

#[tokio::test]
async fn many_small_batches_are_compacted_a_part_at_a_time() {
    let bench = Bench::with(Settings {
        compact_points: 1_000_000,
        ..quiet()
    })
    .await;
    bench.open("r").await;
    for step in 0..1_500 {
        let id = format!("b{step}");
        bench.log("r", &id, &[("a", step, step as f64)]).await.expect("stored");
    }
    bench.finish("r", Status::Finished).await.expect("it ends");
    assert_eq!(bench.store.compact().await, Ok(true));
    assert_eq!(
        bench.store.stats().backlog_points,
        500,
        "a row of the ledger is changed for each"
    );
    bench.compact().await;
    assert_eq!(bench.store.stats().backlog_points, 0);
    assert_eq!(bench.values("r", "a").await.len(), 1_500);
    bench.verify().await;
}

async fn read(bench: &Bench, steps: (i64, i64), times: (i64, i64)) -> NamedSeries {
    let request = SeriesRequest {
        names: vec![MetricName::new("a")],
        steps: steps.0..=steps.1,
        times: times.0..=times.1,
    };
    let read = bench.store.series(&RunId::new("r"), request).await;
    let mut series = read.expect("the store reads").expect("the run is there");
    series.pop().expect("the metric is there")
}

#[tokio::test]
async fn chunks_that_are_passed_over_never_change_an_answer() {
    const ALL: (i64, i64) = (i64::MIN, i64::MAX);
    let bench = Bench::with(Settings {
        compact_points: 1_000,
        ..quiet()
    })
    .await;
    bench.open("r").await;
    let mut chance = StdRng::seed_from_u64(3);
    // Neither do times follow steps, nor do batches.
    for number in 0..24 {
        let first = chance.random_range(0..20) * 300;
        let points: Vec<Point<'_>> = (0..600).map(|step| ("a", first + step, number as f64)).collect();
        bench.log("r", &format!("b{number}"), &points).await.expect("stored");
        bench.advance(chance.random_range(1..20));
        if number % 5 == 4 && number < 20 {
            bench.compact().await;
        }
    }
    assert!(bench.verify().await.chunks > 5);
    let whole = read(&bench, ALL, ALL).await.series;
    for _ in 0..300 {
        let mut bounds = |min: i64, max: i64| {
            let (one, other) = (chance.random_range(min..max), chance.random_range(min..max));
            (one.min(other), one.max(other))
        };
        let (steps, times) = (bounds(-10, 7_000), bounds(START - 5, START + 300));
        let some = read(&bench, steps, times).await.series;
        let range = whole.within_steps(Some(steps.0), Some(steps.1));
        let expected = whole.slice(range).within_times(Some(times.0), Some(times.1));
        assert_eq!(some, expected, "steps {steps:?}, times {times:?}");
    }
}

#[tokio::test]
async fn only_chunks_with_the_steps_and_times_are_read() {
    let bench = Bench::with(Settings {
        compact_points: 1_000,
        ..quiet()
    })
    .await;
    bench.open("r").await;
    for number in 0..3 {
        let points: Vec<Point<'_>> = (0..1_000).map(|step| ("a", number * 1_000 + step, 1.0)).collect();
        bench.log("r", &format!("b{number}"), &points).await.expect("stored");
        bench.compact().await;
        bench.advance(10);
    }
    // Whoever reads one of the others would fail.
    let file = sqlx::SqlitePool::connect(&format!("sqlite:{}", bench.path().join("runs.db").display()))
        .await
        .expect("it opens");
    let damaged = sqlx::query("UPDATE chunk SET body = x'01' WHERE step_min <> 1000")
        .execute(&file)
        .await;
    assert_eq!(damaged.expect("written").rows_affected(), 2);
    file.close().await;
    let all = (i64::MIN, i64::MAX);
    assert_eq!(read(&bench, (1_000, 1_999), all).await.series.len(), 1_000);
    assert_eq!(read(&bench, all, (START + 5, START + 15)).await.series.len(), 1_000);
}

#[tokio::test]
async fn a_file_gets_shorter_after_a_deletion() {
    let mut bench = Bench::new().await;
    bench.open("r").await;
    bench.open("other").await;
    let mut chance = StdRng::seed_from_u64(5);
    for number in 0..50 {
        let run = if number == 40 { "other" } else { "r" };
        let points: Vec<Point<'_>> = (0..10_000)
            .map(|step| ("a", number * 10_000 + step, chance.random_range(0.0..1.0)))
            .collect();
        bench.log(run, &format!("b{number}"), &points).await.expect("stored");
    }
    let before = bench.values("other", "a").await;
    bench.restart().await;
    let bytes = |bench: &Bench| std::fs::metadata(bench.path().join("runs.db")).expect("a file").len();
    let full = bytes(&bench);
    bench.store.delete(RunId::new("r")).await.expect("deleted");
    bench.store.clean().await.expect("cleaned");
    assert_eq!(bench.values("other", "a").await, before);
    bench.restart().await;
    let left = bytes(&bench);
    assert!(left * 3 < full, "{left} of {full} bytes are left");
    assert_eq!(bench.values("other", "a").await, before);
    bench.verify().await;
}
