//! Batches: durable once answered, stored once, and never remembered where they were refused.

use std::collections::HashSet;

use futures::future::join_all;
use kindex_runs::domain::{Status, warning};
use kindex_runs::refusal::Code;
use kindex_runs::store::Settings;

use super::support::{Bench, DAY, HOUR, batch, pairs, quiet, reason};

#[tokio::test]
async fn a_restart_keeps_every_answered_batch() {
    let mut bench = Bench::new().await;
    bench.open("r").await;
    for step in 0..20 {
        let logged = bench
            .log("r", &format!("b{step}"), &[("loss", step, step as f64)])
            .await
            .expect("stored");
        assert_eq!((logged.accepted, logged.deduplicated), (1, 0));
    }
    let before = bench.values("r", "loss").await;
    assert_eq!(before.len(), 20);
    bench.restart().await;
    assert_eq!(bench.values("r", "loss").await, before);
    assert_eq!(bench.points("r").await, 20);
    bench.verify().await;
}

#[tokio::test]
async fn a_batch_refused_as_not_found_is_stored_on_retry() {
    let bench = Bench::new().await;
    assert_eq!(reason(bench.log("r", "b", &[("loss", 1, 0.5)]).await), "RUN_NOT_FOUND");
    bench.open("r").await;
    assert_eq!(
        bench.log("r", "b", &[("loss", 1, 0.5)]).await.expect("stored").accepted,
        1
    );
    assert_eq!(bench.values("r", "loss").await, [(1, 0.5)]);
}

#[tokio::test]
async fn a_batch_refused_by_state_is_not_remembered() {
    let bench = Bench::new().await;
    bench.open("r").await;
    bench.finish("r", Status::Finished).await.expect("it ends");
    for _ in 0..2 {
        let refused = bench.log("r", "b", &[("loss", 1, 0.5)]).await;
        assert_eq!(refused.expect_err("it is refused").code, Code::FailedPrecondition);
    }
    assert_eq!(bench.verify().await.batches, 0);
}

#[tokio::test]
async fn a_known_batch_is_a_duplicate_in_every_state() {
    let mut bench = Bench::new().await;
    bench.open("r").await;
    bench
        .log("r", "b", &[("loss", 1, 0.5), ("loss", 2, 0.5)])
        .await
        .expect("stored");
    for ended in [false, true] {
        if ended {
            bench.finish("r", Status::Failed).await.expect("it ends");
            bench.restart().await;
        }
        let again = bench
            .log("r", "b", &[("loss", 1, 0.5), ("loss", 2, 0.5)])
            .await
            .expect("known");
        assert_eq!((again.accepted, again.deduplicated), (0, 2));
        assert!(again.is_duplicate());
    }
    assert_eq!(bench.points("r").await, 2);
}

#[tokio::test]
async fn an_id_is_a_text_and_no_other_id_is_taken_for_it() {
    let bench = Bench::new().await;
    bench.open("r").await;
    bench.open("s").await;
    let uuid = "0190a0b0-0000-7000-8000-61626364656f";
    // The upper case, the bare digits, the same id in another run, and a text of 16 bytes are other ids.
    let ids = [
        ("r", uuid.to_owned()),
        ("r", uuid.to_uppercase()),
        ("r", uuid.replace('-', "")),
        ("s", uuid.to_owned()),
        ("r", "sixteen-bytes-id".to_owned()),
        ("r", "\u{20ac}".repeat(64)),
    ];
    for (run, id) in &ids {
        assert_eq!(
            bench.log(run, id, &[("loss", 1, 1.0)]).await.expect("stored").accepted,
            1,
            "{id}"
        );
    }
    for (run, id) in &ids {
        assert!(
            bench
                .log(run, id, &[("loss", 1, 1.0)])
                .await
                .expect("known")
                .is_duplicate(),
            "{id}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_equal_batches_at_once_store_one() {
    let bench = Bench::new().await;
    bench.open("r").await;
    for round in 0..20 {
        let id = format!("b{round}");
        let sent = batch(
            "r",
            &id,
            None,
            &[("loss", round, 1.0), ("loss", round, 2.0)],
            bench.now(),
        );
        let all = (0..64).map(|_| {
            let (store, sent) = (bench.store.clone(), sent.clone());
            tokio::spawn(async move { store.log(sent).await })
        });
        let mut accepted = 0;
        let mut duplicates = 0;
        for answer in all.collect::<Vec<_>>() {
            let logged = answer.await.expect("no panic").expect("stored or known");
            accepted += logged.accepted;
            duplicates += u64::from(logged.is_duplicate());
            assert_eq!(logged.accepted + logged.deduplicated, 2);
        }
        assert_eq!((accepted, duplicates), (2, 63));
    }
    assert_eq!(bench.points("r").await, 40);
    assert_eq!(bench.values("r", "loss").await.len(), 20);
    bench.verify().await;
}

#[tokio::test]
async fn parameters_and_tags_of_a_batch_are_stored_with_it_or_not_at_all() {
    let bench = Bench::new().await;
    bench.open("r").await;
    let mut sent = bench.batch("r", "b", None, &[("loss", 1, 1.0)]);
    sent.params = pairs(&[("lr", "0.1"), ("lr", "0.2")]);
    sent.tags = pairs(&[("team", "a")]);
    let logged = bench.store.log(sent.clone()).await.expect("stored");
    assert_eq!(
        (
            logged.accepted,
            logged.params_accepted,
            logged.params_existing,
            logged.tags_updated
        ),
        (1, 1, 1, 1)
    );
    assert_eq!(logged.warnings, [warning::param_immutable("lr")]);
    sent.batch_id = kindex_runs::domain::BatchId::new("c");
    sent.run = kindex_runs::domain::RunId::new("absent");
    assert_eq!(reason(bench.store.log(sent).await), "RUN_NOT_FOUND");
    let run = bench
        .store
        .run(&kindex_runs::domain::RunId::new("r"))
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        (run.params, run.tags),
        (pairs(&[("lr", "0.1")]), pairs(&[("team", "a")]))
    );
}

#[tokio::test]
async fn metrics_over_the_limit_are_dropped_with_a_warning_and_others_are_stored() {
    let settings = Settings {
        metric_names_max: 5,
        ..quiet()
    };
    let mut bench = Bench::with(settings).await;
    bench.open("r").await;
    let logged = bench
        .log("r", "a", &[("a", 1, 1.0), ("b", 1, 1.0), ("c", 1, 1.0)])
        .await
        .expect("stored");
    assert_eq!(logged.warnings, []);
    let logged = bench
        .log("r", "b", &[("a", 2, 1.0), ("d", 1, 1.0)])
        .await
        .expect("stored");
    assert_eq!(logged.warnings, [warning::cardinality_approaching(4, 5)]);
    bench.restart().await;
    let sent = [
        ("f", 1, 1.0),
        ("a", 3, 1.0),
        ("g", 1, 1.0),
        ("g", 2, 1.0),
        ("f", 2, 1.0),
    ];
    let logged = bench.log("r", "c", &sent).await.expect("stored");
    assert_eq!((logged.accepted, logged.dropped), (3, 2));
    let codes: Vec<&str> = logged.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(
        codes,
        [
            warning::CARDINALITY_LIMIT_EXCEEDED,
            warning::CARDINALITY_LIMIT_APPROACHING
        ]
    );
    assert_eq!(bench.values("r", "f").await.len(), 2);
    assert_eq!(bench.values("r", "g").await, []);
    assert_eq!(bench.log("r", "d", &[("h", 1, 1.0)]).await.expect("stored").accepted, 0);
    assert_eq!(bench.values("r", "a").await.len(), 3);
    assert_eq!(bench.points("r").await, 8);
    bench.verify().await;
}

#[tokio::test]
async fn the_ledger_is_bounded_by_its_ttl() {
    let mut bench = Bench::with(Settings {
        compact_points: 1,
        ..quiet()
    })
    .await;
    bench.open("ended").await;
    bench.open("open").await;
    for run in ["ended", "open"] {
        bench.log(run, "b", &[("loss", 1, 1.0)]).await.expect("stored");
    }
    bench.finish("ended", Status::Finished).await.expect("it ends");
    bench.compact().await;
    bench.advance(DAY);
    bench.store.clean().await.expect("cleaned");
    assert_eq!(bench.verify().await.batches, 2, "the ids are kept for a day");
    bench.advance(1);
    bench.store.clean().await.expect("cleaned");
    assert_eq!(
        bench.verify().await.batches,
        1,
        "and for a week where the run may go on"
    );
    assert!(
        bench
            .log("open", "b", &[("loss", 1, 1.0)])
            .await
            .expect("known")
            .is_duplicate()
    );
    bench.restart().await;
    bench.advance(7 * DAY + HOUR);
    bench.store.clean().await.expect("cleaned");
    let report = bench.verify().await;
    assert_eq!((report.batches, report.points), (0, 2), "the points stay");
    assert_eq!(bench.values("open", "loss").await, [(1, 1.0)]);
}

#[tokio::test]
async fn more_than_memory_is_meant_for_is_refused_and_tried_again() {
    let bench = Bench::with(Settings {
        queue_bytes_max: 20_000,
        ..quiet()
    })
    .await;
    bench.open("r").await;
    let points: Vec<(String, i64, f64)> = (0..500).map(|step| ("loss".to_owned(), step, 0.1)).collect();
    let points: Vec<(&str, i64, f64)> = points
        .iter()
        .map(|(name, step, value)| (name.as_str(), *step, *value))
        .collect();
    let batches: Vec<_> = (0..200)
        .map(|n| bench.batch("r", &format!("b{n}"), None, &points))
        .collect();
    // All are handed in before the writer, a task of the same thread, takes the first.
    let answers = join_all(batches.into_iter().map(|sent| bench.store.log(sent))).await;
    let mut stored = 0;
    let mut reasons = HashSet::new();
    for answer in answers {
        match answer {
            Ok(logged) => stored += logged.accepted,
            Err(refusal) => {
                assert_eq!(refusal.code, Code::ResourceExhausted);
                assert!(refusal.retry_after.is_some());
                reasons.insert(refusal.reason);
            }
        }
    }
    assert_eq!(reasons, HashSet::from(["QUEUE_FULL"]));
    assert_eq!(bench.points("r").await, stored);
    bench.verify().await;
}
