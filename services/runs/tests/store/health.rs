//! A store that cannot write: it says why, answers nothing that is not kept, reads on, and goes on by itself.

use kindex_runs::domain::{RunId, Status};
use kindex_runs::refusal::Code;
use kindex_runs::store::{Command, Failure, Settings, Tx};

use super::support::{Bench, reason};

/// A statement that makes the file unfit for writing, or fit again.
struct Pragma(&'static str);

impl Command for Pragma {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        sqlx::query(self.0).execute(tx.read().await?).await?;
        Ok(())
    }
}

/// One that heals by itself.
async fn alive() -> Bench {
    let bench = Bench::with(Settings::default()).await;
    bench.open("r").await;
    bench.log("r", "a", &[("loss", 0, 0.5)]).await.expect("stored");
    bench
}

/// Until the store writes again.
async fn healed(bench: &Bench) {
    let mut health = bench.store.health();
    health.wait_for(Option::is_none).await.expect("the store is open");
}

#[tokio::test]
async fn a_store_on_a_full_disk_says_so_until_there_is_room() {
    let bench = alive().await;
    // A limit below the size of the file means its size.
    let full = Pragma("PRAGMA max_page_count = 1");
    bench.store.write(full).await.expect("limited");
    let points: Vec<(&str, i64, f64)> = (1..5000).map(|step| ("loss", step, step as f64 / 7.0)).collect();
    for _ in 0..3 {
        let refused = bench.log("r", "b", &points).await.expect_err("there is no room");
        assert_eq!((refused.code, refused.reason), (Code::Unavailable, "DISK_FULL"));
        assert!(refused.retry_after.is_some());
    }
    let why = bench.store.health().borrow().clone().unwrap_or_default();
    assert!(why.contains("make room"), "{why}");
    bench.store.probe().await;
    assert!(bench.store.health().borrow().is_some(), "there is no room yet");
    assert_eq!(bench.values("r", "loss").await, [(0, 0.5)], "reading goes on");
    let room = Pragma("PRAGMA max_page_count = 4000000");
    bench.store.write(room).await.expect("there is room");
    healed(&bench).await;
    assert_eq!(bench.log("r", "b", &points).await.expect("stored").accepted, 4999);
    bench.finish("r", Status::Finished).await.expect("it ends");
    bench.verify().await;
}

#[tokio::test]
async fn a_file_that_was_moved_away_takes_no_more_answers_until_it_is_back() {
    for name in ["runs.db", "runs.db-wal"] {
        let bench = alive().await;
        let (file, aside) = (bench.path().join(name), bench.path().join("aside"));
        std::fs::rename(&file, &aside).expect("moved");
        assert_eq!(
            reason(bench.log("r", "b", &[("loss", 1, 1.0)]).await),
            "STORE_UNAVAILABLE"
        );
        let why = bench.store.health().borrow().clone().unwrap_or_default();
        assert!(why.contains(name) && why.contains("moved away"), "{why}");
        bench.store.probe().await;
        assert!(bench.store.health().borrow().is_some());
        std::fs::rename(&aside, &file).expect("moved back");
        healed(&bench).await;
        bench.log("r", "b", &[("loss", 1, 1.0)]).await.expect("stored");
        assert_eq!(bench.values("r", "loss").await, [(0, 0.5), (1, 1.0)], "{name}: once");
        bench.verify().await;
    }
}

#[tokio::test]
async fn a_file_that_goes_while_nobody_writes_is_noticed() {
    let bench = alive().await;
    std::fs::rename(bench.path().join("runs.db"), bench.path().join("aside")).expect("moved");
    let mut health = bench.store.health();
    health.wait_for(Option::is_some).await.expect("the store is open");
}

/// A defect.
struct Panics;

impl Command for Panics {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        sqlx::query("UPDATE run SET points_accepted = 77")
            .execute(tx.write().await?)
            .await?;
        panic!("a defect of a test");
    }
}

#[tokio::test]
async fn a_defect_in_one_command_does_not_end_the_writer() {
    let bench = alive().await;
    assert_eq!(reason(bench.store.write(Panics).await), "STORE_UNAVAILABLE");
    assert_eq!(bench.points("r").await, 1, "what it had written is undone");
    bench.log("r", "b", &[("loss", 1, 1.0)]).await.expect("stored");
    assert!(bench.store.health().borrow().is_none());
    let run = bench.store.run(&RunId::new("r")).await.expect("read").expect("there");
    assert_eq!(run.points, 2);
    bench.verify().await;
}

#[tokio::test]
async fn a_store_whose_writer_has_ended_is_not_well() {
    let bench = alive().await;
    bench.store.close().await;
    let why = bench.store.health().borrow().clone().unwrap_or_default();
    assert!(why.contains("has ended"), "{why}");
}
