//! Batches with sequences: held until those before them have come, durable meanwhile, released in order.

use kindex_runs::domain::{Status, warning};
use kindex_runs::ledger::ReorderRules;
use kindex_runs::store::Settings;

use super::support::{Bench, HOUR, MINUTE, SECOND, quiet};

/// Every order of some sequences.
fn permutations(of: &[i64]) -> Vec<Vec<i64>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (place, first) in of.iter().enumerate() {
        let rest: Vec<i64> = [&of[..place], &of[place + 1..]].concat();
        all.extend(
            permutations(&rest)
                .into_iter()
                .map(|rest| [&[*first][..], &rest].concat()),
        );
    }
    all
}

#[tokio::test]
async fn batches_apply_in_sequence_order() {
    let bench = Bench::new().await;
    for (round, order) in permutations(&[1, 2, 3, 4]).into_iter().enumerate() {
        let run = format!("r{round}");
        bench.open(&run).await;
        for sequence in &order {
            // All write one step: the last that is applied is what is read.
            let logged = bench
                .log_at(&run, *sequence, &[("loss", 1, *sequence as f64)])
                .await
                .expect("stored");
            assert_eq!((logged.accepted, logged.warnings), (1, Vec::new()));
        }
        assert_eq!(bench.values(&run, "loss").await, [(1, 4.0)], "delivered as {order:?}");
    }
    bench.verify().await;
}

#[tokio::test]
async fn a_held_batch_is_durable_and_not_yet_visible() {
    let mut bench = Bench::new().await;
    bench.open("r").await;
    assert_eq!(
        bench.log_at("r", 2, &[("loss", 2, 2.0)]).await.expect("held").accepted,
        1
    );
    assert_eq!(bench.values("r", "loss").await, []);
    assert_eq!(bench.points("r").await, 1);
    bench.restart().await;
    assert!(
        bench
            .log_at("r", 2, &[("loss", 2, 2.0)])
            .await
            .expect("known")
            .is_duplicate()
    );
    assert_eq!(bench.values("r", "loss").await, []);
    bench.log_at("r", 1, &[("loss", 1, 1.0)]).await.expect("stored");
    assert_eq!(bench.values("r", "loss").await, [(1, 1.0), (2, 2.0)]);
    bench.verify().await;
}

#[tokio::test]
async fn held_batches_are_released_after_thirty_seconds_also_across_a_restart() {
    let mut bench = Bench::new().await;
    bench.open("r").await;
    bench.log_at("r", 3, &[("loss", 1, 3.0)]).await.expect("held");
    bench.advance(10 * SECOND);
    bench.log_at("r", 2, &[("loss", 1, 2.0)]).await.expect("held");
    bench.restart().await;
    bench.advance(20 * SECOND - 1);
    assert_eq!(bench.store.tick().await.expect("looked").released, 0);
    bench.advance(1);
    assert_eq!(bench.store.tick().await.expect("looked").released, 1);
    assert_eq!(bench.values("r", "loss").await, [(1, 3.0)]);
    let late = bench.log_at("r", 1, &[("loss", 1, 1.0)]).await.expect("stored");
    assert_eq!(late.warnings, [warning::sequence_late(1, 4)]);
    assert_eq!(bench.values("r", "loss").await, [(1, 1.0)], "it was applied last");
    bench.log_at("r", 4, &[("loss", 2, 4.0)]).await.expect("expected");
    assert_eq!(bench.values("r", "loss").await.len(), 2);
    bench.verify().await;
}

#[tokio::test]
async fn the_hundred_and_first_batch_releases_all() {
    let bench = Bench::new().await;
    bench.open("r").await;
    for sequence in (2..102).rev() {
        bench
            .log_at("r", sequence, &[("loss", 1, sequence as f64)])
            .await
            .expect("held");
    }
    assert_eq!(bench.values("r", "loss").await, []);
    bench.log_at("r", 150, &[("loss", 2, 150.0)]).await.expect("stored");
    assert_eq!(bench.values("r", "loss").await, [(1, 101.0), (2, 150.0)]);
    bench.verify().await;
}

#[tokio::test]
async fn a_large_gap_is_applied_at_once() {
    let bench = Bench::new().await;
    bench.open("r").await;
    bench.log_at("r", 1001, &[("held", 1, 1.0)]).await.expect("held");
    bench.log_at("r", 1002, &[("applied", 1, 1.0)]).await.expect("stored");
    assert_eq!(bench.values("r", "held").await, []);
    assert_eq!(bench.values("r", "applied").await.len(), 1);
}

#[tokio::test]
async fn an_end_and_a_crash_release_what_is_held_first() {
    let settings = Settings {
        // So that nothing else releases it.
        reorder: ReorderRules {
            wait: HOUR,
            ..ReorderRules::default()
        },
        ..quiet()
    };
    let bench = Bench::with(settings).await;
    for run in ["ends", "crashes"] {
        bench.open(run).await;
        bench.log_at(run, 2, &[("loss", 2, 2.0)]).await.expect("held");
    }
    bench.finish("ends", Status::Finished).await.expect("it ends");
    assert_eq!(bench.values("ends", "loss").await, [(2, 2.0)]);
    bench.listen(4 * MINUTE).await;
    assert_eq!(bench.values("crashes", "loss").await, []);
    bench.listen(MINUTE).await;
    assert_eq!(bench.status("crashes").await, Status::Crashed);
    assert_eq!(bench.values("crashes", "loss").await, [(2, 2.0)]);
    bench.verify().await;
}
