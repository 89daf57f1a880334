//! The life of runs in the store: opened, heard of, crashed, resumed, ended, deleted.

use kindex_runs::domain::{NewRun, PresentedToken, ProjectName, RunId, Status, warning};
use kindex_runs::store::Settings;

use super::support::{Bench, MINUTE, SECOND, end, new_run, pairs, params, quiet, reason, tags};

fn with_token(run: &str, generation: i64) -> NewRun {
    NewRun {
        token: PresentedToken::Signed {
            run: RunId::new(run),
            generation,
        },
        ..new_run(run)
    }
}

#[tokio::test]
async fn a_run_without_an_id_gets_one_of_version_seven_and_ids_ascend() {
    let bench = Bench::new().await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        let new = NewRun {
            run: None,
            ..new_run("")
        };
        ids.push(bench.store.init(new).await.expect("it opens").run);
        bench.advance(SECOND / 1000);
    }
    assert!(ids.is_sorted_by(|a, b| a < b));
    let version = |id: &RunId| uuid::Uuid::parse_str(id.as_str()).expect("a UUID").get_version_num();
    assert!(ids.iter().all(|id| version(id) == 7));
}

#[tokio::test]
async fn a_running_run_that_is_opened_again_gets_another_token_and_keeps_its_name_and_tags() {
    let bench = Bench::new().await;
    let mut new = new_run("r");
    new.name = "first".to_owned();
    new.tags = pairs(&[("team", "a")]);
    let first = bench.store.init(new).await.expect("it opens");
    assert!(!first.resumed);
    bench.advance(10 * SECOND);
    let again = bench.open("r").await;
    assert!(again.resumed);
    assert_eq!(again.warnings, [warning::run_already_active(10)]);
    assert_eq!(again.generation, first.generation + 1);
    let run = bench.store.run(&RunId::new("r")).await.expect("read").expect("there");
    assert_eq!((run.name.as_str(), run.tags), ("first", pairs(&[("team", "a")])));
}

/// As if a name or tags that are not stored could vanish without a word.
#[tokio::test]
async fn a_run_that_is_opened_again_keeps_its_attributes_and_warns_of_those_that_differ() {
    let bench = Bench::new().await;
    let first = NewRun {
        name: "first".to_owned(),
        description: "as it was".to_owned(),
        tags: pairs(&[("team", "a"), ("x", "1")]),
        parent: Some(RunId::new("p")),
        ..new_run("r")
    };
    bench.store.init(first.clone()).await.expect("it opens");
    let kept = [
        warning::run_attribute_kept("name"),
        warning::run_attribute_kept("description"),
        warning::run_attribute_kept("parent_run_id"),
        warning::run_tags_kept(),
    ];
    let other = NewRun {
        name: "second".to_owned(),
        description: "as it is".to_owned(),
        tags: pairs(&[("team", "a"), ("x", "2")]),
        parent: Some(RunId::new("q")),
        ..new_run("r")
    };
    let added = NewRun {
        tags: pairs(&[("y", "1")]),
        ..new_run("r")
    };
    let repeated = NewRun {
        tags: pairs(&[("team", "b"), ("team", "a")]),
        ..first.clone()
    };
    for (new, expected) in [
        (first, 0..0),
        (new_run("r"), 0..0),
        (repeated, 0..0),
        (added, 3..4),
        (other, 0..4),
    ] {
        bench.advance(2 * MINUTE);
        let opened = bench.store.init(new).await.expect("the same run");
        assert_eq!((opened.resumed, &opened.warnings[..]), (true, &kept[expected]));
    }
    let run = bench.store.run(&RunId::new("r")).await.expect("read").expect("there");
    assert_eq!((run.name.as_str(), run.description.as_str()), ("first", "as it was"));
    assert_eq!(run.tags, pairs(&[("team", "a"), ("x", "1")]));
    assert_eq!(run.parent, Some(RunId::new("p")));
}

#[tokio::test]
async fn a_run_that_another_project_may_not_open_stays_in_its_own() {
    let bench = Bench::new().await;
    bench.open("r").await;
    let other = NewRun {
        project: ProjectName::new("speech"),
        ..new_run("r")
    };
    assert_eq!(reason(bench.store.init(other).await), "RUN_ID_DENIED");
    let project = bench.store.project_of(&RunId::new("r")).await.expect("read");
    assert_eq!(project, Some(ProjectName::new("vision")));
    assert_eq!(bench.store.project_of(&RunId::new("absent")).await, Ok(None));
}

#[tokio::test]
async fn a_silent_run_crashes_after_five_minutes() {
    let bench = Bench::new().await;
    bench.open("silent").await;
    bench.open("alive").await;
    bench.listen(5 * MINUTE - 1).await;
    assert_eq!(bench.status("silent").await, Status::Running);
    bench.store.heartbeat(RunId::new("alive")).await.expect("alive");
    bench.listen(1).await;
    assert_eq!(bench.status("silent").await, Status::Crashed);
    assert_eq!(bench.status("alive").await, Status::Running);
    bench.verify().await;
}

#[tokio::test]
async fn every_call_of_a_run_is_a_sign_of_life() {
    let bench = Bench::new().await;
    bench.open("r").await;
    for round in 0..4 {
        bench.listen(5 * MINUTE - SECOND).await;
        match round {
            0 => drop(bench.log("r", "b", &[("loss", 1, 1.0)]).await.expect("stored")),
            1 => drop(bench.log("r", "b", &[("loss", 1, 1.0)]).await.expect("known")),
            2 => drop(bench.store.params(params("r", &[("a", "1")])).await.expect("stored")),
            _ => drop(bench.store.tags(tags("r", &[("a", "1")], &[])).await.expect("stored")),
        }
    }
    bench.listen(5 * MINUTE - SECOND).await;
    assert_eq!(bench.status("r").await, Status::Running);
}

#[tokio::test]
async fn downtime_of_the_server_never_crashes_a_run() {
    let mut bench = Bench::new().await;
    bench.open("r").await;
    bench.listen(4 * MINUTE).await;
    bench.advance(60 * MINUTE);
    bench.restart().await;
    bench.listen(5 * MINUTE - 1).await;
    assert_eq!(bench.status("r").await, Status::Running);
    bench.listen(1).await;
    assert_eq!(bench.status("r").await, Status::Crashed);
}

#[tokio::test]
async fn a_crashed_run_takes_nothing_new_until_it_is_resumed() {
    let mut bench = Bench::new().await;
    let opened = bench.open("r").await;
    bench.log_at("r", 1, &[("loss", 1, 1.0)]).await.expect("stored");
    bench.store.params(params("r", &[("lr", "1")])).await.expect("stored");
    bench.listen(6 * MINUTE).await;
    assert_eq!(reason(bench.log("r", "x", &[("loss", 2, 1.0)]).await), "RUN_CRASHED");
    assert_eq!(
        reason(bench.store.params(params("r", &[("lr", "2")])).await),
        "RUN_CRASHED"
    );
    assert_eq!(
        bench
            .store
            .params(params("r", &[("lr", "1")]))
            .await
            .expect("a repeat")
            .existing,
        1
    );
    assert_eq!(
        bench
            .store
            .tags(tags("r", &[("a", "1")], &[]))
            .await
            .expect("stored")
            .updated,
        1
    );
    assert!(
        bench
            .store
            .heartbeat(RunId::new("r"))
            .await
            .expect("answered")
            .request_resync
    );
    assert_eq!(bench.status("r").await, Status::Crashed, "a heartbeat revives nothing");
    assert_eq!(reason(bench.store.init(new_run("r")).await), "RESUME_TOKEN_REQUIRED");
    assert_eq!(reason(bench.store.init(with_token("r", 9)).await), "RESUME_TOKEN_USED");
    bench.restart().await;
    let resumed = bench
        .store
        .init(with_token("r", opened.generation))
        .await
        .expect("resumed");
    assert!(resumed.resumed);
    assert_eq!(resumed.checkpoint, 1);
    let run = bench.store.run(&RunId::new("r")).await.expect("read").expect("there");
    assert_eq!(
        (run.params, run.tags),
        (pairs(&[("lr", "1")]), pairs(&[("a", "1")])),
        "they are kept"
    );
    assert!(
        bench
            .log_at("r", 1, &[("loss", 1, 1.0)])
            .await
            .expect("known")
            .is_duplicate()
    );
    bench.log("r", "x", &[("loss", 2, 1.0)]).await.expect("stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_two_that_resume_at_once_one_wins() {
    let bench = Bench::new().await;
    for round in 0..10 {
        let run = format!("r{round}");
        let opened = bench.open(&run).await;
        bench.listen(6 * MINUTE).await;
        let all = (0..32).map(|_| {
            let (store, new) = (bench.store.clone(), with_token(&run, opened.generation));
            tokio::spawn(async move { store.init(new).await })
        });
        let mut crashed = 0;
        for answer in all.collect::<Vec<_>>() {
            let opened = answer.await.expect("no panic").expect("the run runs again");
            // The first has resumed it; the others find it running.
            crashed += u64::from(opened.warnings.is_empty());
        }
        assert_eq!(crashed, 1);
    }
}

#[tokio::test]
async fn a_trainer_that_dies_before_it_stores_its_token_resumes_with_the_one_before() {
    let mut bench = Bench::new().await;
    let first = bench.open("r").await.generation;
    let mut newest = first;
    for round in 0..3 {
        bench.listen(6 * MINUTE).await;
        assert_eq!(bench.status("r").await, Status::Crashed, "{round}");
        if round == 1 {
            bench.restart().await;
        }
        let resumed = bench.store.init(with_token("r", first)).await.expect("resumed");
        newest = resumed.generation;
    }
    bench.listen(6 * MINUTE).await;
    bench.store.init(with_token("r", newest)).await.expect("resumed");
    bench.restart().await;
    bench.listen(6 * MINUTE).await;
    for used in first..newest {
        let again = bench.store.init(with_token("r", used)).await;
        assert_eq!(reason(again), "RESUME_TOKEN_USED", "{used}");
    }
    assert_eq!(bench.status("r").await, Status::Crashed);
    bench.store.init(with_token("r", newest)).await.expect("resumed");
}

#[tokio::test]
async fn batches_behind_a_gap_are_applied_at_once_when_their_trainer_begins_anew() {
    let bench = Bench::new().await;
    let opened = bench.open("r").await;
    bench.log_at("r", 1, &[("loss", 1, 1.0)]).await.expect("stored");
    bench.log_at("r", 3, &[("loss", 3, 3.0)]).await.expect("held");
    bench.open("r").await;
    assert_eq!(bench.values("r", "loss").await, [(1, 1.0)], "another process begins");
    let again = bench
        .store
        .init(with_token("r", opened.generation))
        .await
        .expect("resumed");
    assert_eq!(again.checkpoint, 3);
    assert_eq!(bench.values("r", "loss").await, [(1, 1.0), (3, 3.0)]);
    bench.log_at("r", 4, &[("loss", 4, 4.0)]).await.expect("stored");
    assert_eq!(bench.values("r", "loss").await.len(), 3, "nothing is missing before it");
    let late = bench.log_at("r", 2, &[("loss", 2, 2.0)]).await.expect("stored");
    assert_eq!(late.warnings[0].code, "SEQUENCE_LATE");
    bench.verify().await;
}

#[tokio::test]
async fn a_run_ends_once_and_a_repeat_is_answered_with_what_is_stored() {
    let mut bench = Bench::new().await;
    bench.open("r").await;
    bench.log("r", "b", &[("loss", 1, 1.0)]).await.expect("stored");
    bench.advance(90 * SECOND);
    let mut ending = end("r", Status::Failed);
    ending.exit_code = Some(137);
    ending.error_message = Some("out of memory".to_owned());
    ending.summary = pairs(&[("best", "0.1")]);
    let first = bench.store.finish(ending.clone()).await.expect("it ends");
    assert_eq!((first.duration, first.points), (90 * SECOND, 1));
    bench.advance(MINUTE);
    bench.restart().await;
    assert_eq!(bench.store.finish(ending).await, Ok(first));
    assert_eq!(reason(bench.finish("r", Status::Finished).await), "RUN_TERMINAL");
    assert_eq!(reason(bench.finish("r", Status::Running).await), "INVALID_STATUS");
    assert_eq!(reason(bench.store.heartbeat(RunId::new("r")).await), "RUN_TERMINAL");
    let run = bench.store.run(&RunId::new("r")).await.expect("read").expect("there");
    assert_eq!(
        (run.exit_code, run.error_message.as_deref()),
        (Some(137), Some("out of memory"))
    );
    assert_eq!(run.summary, pairs(&[("best", "0.1")]));
}

#[tokio::test]
async fn a_deleted_run_is_gone_at_once_and_leaves_no_rows() {
    let mut bench = Bench::with(Settings {
        compact_points: 2,
        ..quiet()
    })
    .await;
    bench.open("r").await;
    bench.open("other").await;
    for step in 0..5 {
        for run in ["r", "other"] {
            bench
                .log(run, &format!("b{step}"), &[("loss", step, 1.0)])
                .await
                .expect("stored");
        }
    }
    bench.compact().await;
    bench.log_at("r", 7, &[("loss", 9, 9.0)]).await.expect("held");
    bench.store.delete(RunId::new("r")).await.expect("deleted");
    assert_eq!(bench.store.run(&RunId::new("r")).await, Ok(None));
    assert_eq!(bench.store.project_of(&RunId::new("r")).await, Ok(None));
    assert_eq!(reason(bench.log("r", "c", &[("loss", 1, 1.0)]).await), "RUN_NOT_FOUND");
    bench.restart().await;
    assert!(!bench.open("r").await.resumed, "the id is free");
    bench.store.clean().await.expect("cleaned");
    let report = bench.verify().await;
    assert_eq!((report.runs, report.points), (2, 5));
    for table in [
        "SELECT count(*) FROM deleted_run",
        "SELECT count(*) FROM batch WHERE state = 1",
    ] {
        let rows: i64 = sqlx::query_scalar(table)
            .fetch_one(bench.store.readers())
            .await
            .expect("read");
        assert_eq!(rows, 0, "{table}");
    }
}

#[tokio::test]
async fn many_running_runs_of_a_project_get_a_warning() {
    let bench = Bench::with(Settings {
        active_runs_max: 2,
        ..quiet()
    })
    .await;
    for run in ["a", "b"] {
        assert_eq!(bench.open(run).await.warnings, []);
    }
    assert_eq!(bench.open("c").await.warnings, [warning::active_runs_exceeded(2)]);
    bench.finish("a", Status::Finished).await.expect("it ends");
    bench.finish("b", Status::Finished).await.expect("it ends");
    assert_eq!(bench.open("d").await.warnings, []);
}
