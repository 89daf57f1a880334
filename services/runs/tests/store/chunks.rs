//! Compaction: what is read does not depend on it, statistics fit, and ended runs become small.

use kindex_runs::domain::{MetricName, NewRun, PresentedToken, RunId, Status};
use kindex_runs::store::{SeriesRequest, Settings, verify};

use super::support::{Bench, DAY, MINUTE, Point, START, new_run, quiet};

fn small() -> Settings {
    Settings {
        compact_points: 100,
        ..quiet()
    }
}

#[tokio::test]
async fn a_rewritten_step_has_one_value() {
    let bench = Bench::with(small()).await;
    bench.open("r").await;
    let first: Vec<Point<'_>> = (0..120).map(|step| ("loss", step, 1.0)).collect();
    bench.log("r", "a", &first).await.expect("stored");
    bench
        .log("r", "b", &[("loss", 7, 2.0), ("loss", 7, 3.0)])
        .await
        .expect("stored");
    let read = |at: usize| {
        let bench = &bench;
        async move {
            let values = bench.values("r", "loss").await;
            assert_eq!(values.len(), 120);
            values[at].1
        }
    };
    assert_eq!(read(7).await, 3.0, "in batches");
    assert!(bench.compact().await > 0);
    assert_eq!(read(7).await, 3.0, "in chunks");
    bench.log("r", "c", &[("loss", 7, 4.0)]).await.expect("stored");
    assert_eq!(read(7).await, 4.0, "in a chunk and rewritten in a batch");
    let again: Vec<Point<'_>> = (0..120).map(|step| ("loss", 119 - step, 5.0)).collect();
    bench.log("r", "d", &again).await.expect("stored");
    bench.compact().await;
    assert_eq!(read(7).await, 5.0, "merged into a chunk");
    bench.verify().await;
}

#[tokio::test]
async fn series_come_back_in_step_order() {
    let bench = Bench::with(small()).await;
    bench.open("r").await;
    let mut step = 1;
    for n in 0..60 {
        let points: Vec<Point<'_>> = (0..10)
            .map(|_| {
                step = step * 7919 % 10_007;
                ("loss", step, n as f64)
            })
            .collect();
        bench.log("r", &format!("b{n}"), &points).await.expect("stored");
        if n % 7 == 0 {
            bench.compact().await;
        }
        let values = bench.values("r", "loss").await;
        assert!(values.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(values.len(), 10 * (n + 1));
    }
    bench.verify().await;
}

#[tokio::test]
async fn every_float_class_survives_to_the_bit() {
    let mut bench = Bench::with(small()).await;
    bench.open("r").await;
    let values = [
        f64::NAN,
        f64::from_bits(0x7ff8_dead_beef_0001),
        f64::from_bits(0xfff0_0000_0000_0001),
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        f64::MIN_POSITIVE,
        f64::MAX,
        0.1,
    ];
    let points: Vec<Point<'_>> = (0..200)
        .map(|step| ("x", step, values[step as usize % values.len()]))
        .collect();
    bench.log("r", "a", &points).await.expect("stored");
    let bits = |read: Vec<(i64, f64)>| read.into_iter().map(|(_, value)| value.to_bits()).collect::<Vec<u64>>();
    let sent: Vec<u64> = points.iter().map(|(_, _, value)| value.to_bits()).collect();
    assert_eq!(bits(bench.values("r", "x").await), sent);
    bench.compact().await;
    assert_eq!(bits(bench.values("r", "x").await), sent);
    bench.finish("r", Status::Finished).await.expect("it ends");
    bench.compact().await;
    bench.restart().await;
    assert_eq!(bits(bench.values("r", "x").await), sent);
    bench.verify().await;
}

#[tokio::test]
async fn a_read_has_the_steps_times_and_names_that_were_asked_for() {
    let bench = Bench::with(small()).await;
    bench.open("r").await;
    for n in 0..12 {
        let points: Vec<Point<'_>> = (0..10)
            .flat_map(|k| [("a", n * 10 + k, 1.0), ("b", n * 10 + k, 2.0)])
            .collect();
        bench.log("r", &format!("b{n}"), &points).await.expect("stored");
        bench.advance(1000);
        if n == 8 {
            bench.compact().await;
        }
    }
    let run = RunId::new("r");
    let read = |names: &[&str], steps, times| {
        let names = names.iter().map(|name| MetricName::new(*name)).collect();
        bench.store.series(&run, SeriesRequest { names, steps, times })
    };
    let all = i64::MIN..=i64::MAX;
    let some = read(&["b", "absent"], 15..=104, all.clone())
        .await
        .expect("read")
        .expect("there");
    assert_eq!(some.len(), 1);
    assert_eq!(some[0].series.steps, (15..=104).collect::<Vec<i64>>());
    let timed = read(&[], all.clone(), START + 2000..=START + 3000)
        .await
        .expect("read")
        .expect("there");
    let names: Vec<&str> = timed.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(timed[0].series.steps, (20..40).collect::<Vec<i64>>());
    assert_eq!(
        bench
            .store
            .series(&RunId::new("absent"), SeriesRequest::default())
            .await,
        Ok(None)
    );
}

#[tokio::test]
async fn a_run_that_has_ended_is_sealed_and_reads_the_same() {
    let mut bench = Bench::with(Settings {
        compact_points: 1000,
        ..quiet()
    })
    .await;
    bench.open("r").await;
    for n in 0..30 {
        let points: Vec<Point<'_>> = (0..400)
            .map(|k| {
                if k % 2 == 0 {
                    ("a", n * 200 + k / 2, 0.5)
                } else {
                    ("b", n * 200 + k / 2, 7.0)
                }
            })
            .collect();
        bench.log("r", &format!("b{n}"), &points).await.expect("stored");
        bench.compact().await;
    }
    let before = bench.values("r", "a").await;
    let live = bench.verify().await.chunks;
    bench.finish("r", Status::Finished).await.expect("it ends");
    bench.restart().await;
    bench.compact().await;
    let sealed = bench.verify().await;
    assert!(sealed.chunks < live, "{} of {live} chunks", sealed.chunks);
    assert_eq!(sealed.chunks, 4, "6000 points of two metrics");
    assert_eq!(bench.values("r", "a").await, before);
    let open: i64 = sqlx::query_scalar("SELECT count(*) FROM run WHERE is_sealed = 0")
        .fetch_one(bench.store.readers())
        .await
        .expect("read");
    assert_eq!(open, 0);
    assert_eq!(bench.store.stats().backlog_points, 0);
}

#[tokio::test]
async fn a_crashed_run_that_nobody_resumes_in_time_is_sealed_and_one_that_goes_on_is_sealed_again() {
    let mut bench = Bench::with(small()).await;
    let sealed = async |bench: &Bench| -> Vec<(String, bool)> {
        sqlx::query_as("SELECT run_id, is_sealed FROM run ORDER BY run_id")
            .fetch_all(bench.store.readers())
            .await
            .expect("read")
    };
    let is = |gone: bool, kept: bool| [("gone".to_owned(), gone), ("kept".to_owned(), kept)];
    for run in ["gone", "kept"] {
        bench.open(run).await;
        for n in 0..3 {
            let points: Vec<Point<'_>> = (0..150).map(|step| ("a", n * 150 + step, step as f64)).collect();
            bench.log(run, &format!("b{n}"), &points).await.expect("stored");
            bench.compact().await;
        }
    }
    let before = bench.values("gone", "a").await;
    bench.listen(6 * MINUTE).await;
    assert_eq!(bench.status("gone").await, Status::Crashed);
    bench.advance(7 * DAY - 6 * MINUTE);
    for (after, expected) in [(0, is(false, false)), (1, is(true, true))] {
        bench.advance(after);
        bench.store.clean().await.expect("cleaned");
        bench.compact().await;
        assert_eq!(sealed(&bench).await, expected, "{after}");
    }
    assert_eq!(bench.values("gone", "a").await, before);
    // As with a token whose clock went wrong.
    let token = PresentedToken::Signed {
        run: RunId::new("kept"),
        generation: 1,
    };
    let resumed = bench
        .store
        .init(NewRun {
            token,
            ..new_run("kept")
        })
        .await;
    resumed.expect("resumed");
    assert_eq!(sealed(&bench).await, is(true, false));
    let points: Vec<Point<'_>> = (0..150).map(|step| ("a", 100 + step, 7.0)).collect();
    bench.log("kept", "c", &points).await.expect("stored");
    bench.compact().await;
    bench.store.clean().await.expect("cleaned");
    bench.compact().await;
    assert_eq!(sealed(&bench).await, is(true, false), "it is running");
    bench.finish("kept", Status::Failed).await.expect("it ends");
    bench.restart().await;
    bench.compact().await;
    assert_eq!(sealed(&bench).await, is(true, true));
    assert_eq!(bench.values("kept", "a").await[100], (100, 7.0));
    bench.verify().await;
}

#[tokio::test]
async fn points_that_wait_are_counted_again_after_a_restart() {
    let mut bench = Bench::with(small()).await;
    bench.open("r").await;
    let points: Vec<Point<'_>> = (0..99).map(|step| ("a", step, 1.0)).collect();
    bench.log("r", "a", &points).await.expect("stored");
    assert_eq!(bench.compact().await, 0);
    bench.restart().await;
    assert_eq!(bench.store.stats().backlog_points, 99);
    assert!(bench.store.stats().tail_bytes > 0);
    bench.log("r", "b", &[("a", 99, 1.0)]).await.expect("stored");
    assert_eq!(bench.compact().await, 1);
    assert_eq!(bench.store.stats().backlog_points, 0);
    assert_eq!(bench.store.stats().tail_bytes, 0);
}

#[tokio::test]
async fn readers_without_a_tail_read_the_same() {
    let bench = Bench::with(Settings {
        tail_bytes_max: 0,
        ..small()
    })
    .await;
    bench.open("r").await;
    bench
        .log("r", "a", &[("a", 1, 1.0), ("b", 1, 2.0)])
        .await
        .expect("stored");
    bench.log("r", "b", &[("a", 2, 1.0)]).await.expect("stored");
    assert_eq!(bench.values("r", "a").await, [(1, 1.0), (2, 1.0)]);
    assert_eq!(bench.store.stats().tail_bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_query_never_delays_ingest() {
    let bench = Bench::with(small()).await;
    bench.open("r").await;
    let mut snapshot = bench.store.readers().begin().await.expect("a reader");
    let before: i64 = sqlx::query_scalar("SELECT count(*) FROM batch")
        .fetch_one(&mut *snapshot)
        .await
        .expect("read");
    for n in 0..30 {
        let points: Vec<Point<'_>> = (0..10).map(|k| ("a", n * 10 + k, 1.0)).collect();
        bench
            .log("r", &format!("b{n}"), &points)
            .await
            .expect("stored while the query goes on");
        bench.compact().await;
    }
    let still: i64 = sqlx::query_scalar("SELECT count(*) FROM batch")
        .fetch_one(&mut *snapshot)
        .await
        .expect("read");
    assert_eq!(before, still, "a query sees one commit");
    drop(snapshot);
    assert_eq!(bench.values("r", "a").await.len(), 300);
}

#[tokio::test]
async fn what_does_not_agree_is_found() {
    let bench = Bench::with(small()).await;
    bench.open("r").await;
    let points: Vec<Point<'_>> = (0..150).map(|step| ("a", step, 1.0)).collect();
    bench.log("r", "a", &points).await.expect("stored");
    bench.compact().await;
    bench.log("r", "b", &[("a", 200, 1.0)]).await.expect("stored");
    bench.log_at("r", 5, &[("a", 201, 1.0)]).await.expect("held");
    bench.verify().await;
    let damage = [
        (
            "points_accepted",
            "UPDATE run SET points_accepted = points_accepted + 1",
        ),
        (
            "points_compacted",
            "UPDATE run SET points_replaced = points_replaced + 1",
        ),
        ("statistics", "UPDATE chunk SET max_bits = 0"),
        ("bytes end", "UPDATE chunk SET body = x'01'"),
        (
            "state 2",
            "DELETE FROM batch_body WHERE arrival_no IN (SELECT arrival_no FROM batch WHERE state = 2)",
        ),
        ("state 1", "UPDATE batch SET apply_ordinal = 9 WHERE state = 1"),
        ("it has 1 points", "UPDATE batch SET accepted = 2 WHERE state = 1"),
        ("not listed", "DELETE FROM metric_name"),
        ("of no run", "UPDATE chunk SET run_no = 99"),
        ("rows of batch_body", "INSERT INTO batch_body VALUES (99, x'01')"),
        ("not running", "UPDATE run SET status = 2"),
    ];
    for (finding, statement) in damage {
        let copy = tempfile::tempdir().expect("a folder");
        let file = copy.path().join("copy.db");
        let text = format!("VACUUM INTO '{}'", file.display());
        sqlx::query(sqlx::AssertSqlSafe(text))
            .execute(bench.store.readers())
            .await
            .expect("copied");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
        let pool = sqlx::SqlitePool::connect_with(options).await.expect("opened");
        assert_eq!(verify::verify(&pool).await.expect("read").findings, [""; 0]);
        sqlx::query(statement).execute(&pool).await.expect("damaged");
        let findings = verify::verify(&pool).await.expect("read").findings;
        assert!(
            findings.iter().any(|found| found.contains(finding)),
            "{statement}: {findings:?}"
        );
        pool.close().await;
    }
}

#[tokio::test]
async fn an_answered_batch_is_never_trimmed() {
    let mut bench = Bench::with(Settings {
        tail_bytes_max: 1_024,
        compact_points: 100,
        ..quiet()
    })
    .await;
    bench.open("r").await;
    for step in 0..400 {
        let stored = bench
            .log("r", &format!("b{step}"), &[("loss", step, step as f64)])
            .await;
        stored.expect("stored");
        if step == 150 {
            bench.compact().await;
        }
    }
    let expected: Vec<_> = (0..400).map(|step| (step, step as f64)).collect();
    assert_eq!(bench.values("r", "loss").await, expected);
    bench.restart().await;
    bench.compact().await;
    assert_eq!(bench.values("r", "loss").await, expected);
}
