//! Reading from a store: lists, series, comparisons, searches and sums.

use super::*;
use crate::domain::{Status, to_wire};
use crate::fixture::{Fixture, SECOND, START};
use crate::refusal::Code;
use crate::wire::v1::{
    CompareRunsRequest, ComparisonOp, GetMetricsRequest, GetProjectStatsRequest, GetRunRequest, ListRunsRequest,
    ParameterFilter, ProjectId, Run, RunFilters, RunId, RunSort, RunSortField, SearchRunsRequest, SortDirection, Tag,
};

fn project() -> Option<ProjectId> {
    Some(ProjectId {
        value: "vision".to_owned(),
    })
}

fn id(run: &str) -> RunId {
    RunId { value: run.to_owned() }
}

fn ids(runs: &[Run]) -> Vec<String> {
    runs.iter()
        .map(|run| run.run_id.clone().expect("an id").value)
        .collect()
}

async fn listed(reader: &Reader, filters: RunFilters) -> Vec<String> {
    let request = ListRunsRequest {
        project_id: project(),
        filters: Some(filters),
        ..ListRunsRequest::default()
    };
    ids(&reader.list_runs(request).await.expect("a list").runs)
}

/// Five runs a second apart; the first two have ended after 10 and 20 seconds, and `e` is of another project.
async fn five() -> (Fixture, Reader) {
    let on = Fixture::new().await;
    for (run, name) in [("a", "resnet-50"), ("b", "resnet-101"), ("c", "vit [x]"), ("d", "VIT")] {
        on.open(run, name).await;
        on.pass(SECOND);
    }
    on.open_in("speech", "e", "resnet-50").await;
    for (run, rate, optimizer) in [
        ("a", "0.1", "sgd"),
        ("b", "1e-2", "adam"),
        ("c", "9", "adamw"),
        ("d", "none", ""),
    ] {
        on.param(run, "lr", rate).await;
        on.param(run, "optimizer", optimizer).await;
    }
    on.tag("a", "team", "red").await;
    on.tag("b", "team", "red").await;
    on.tag("b", "stage", "final").await;
    on.pass(6 * SECOND);
    on.finish("a", Status::Finished).await;
    on.pass(11 * SECOND);
    on.finish("b", Status::Failed).await;
    let reader = Reader::new(on.store.clone());
    (on, reader)
}

#[tokio::test]
async fn runs_are_listed_by_every_filter() {
    let (_on, reader) = five().await;
    let tag = |key: &str, value: &str| Tag {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let all = RunFilters::default;
    let named = |pattern: &str| RunFilters {
        name_pattern: Some(pattern.to_owned()),
        ..all()
    };
    for (filters, expected) in [
        (all(), "dcba"),
        (
            RunFilters {
                statuses: vec![2, 3],
                ..all()
            },
            "ba",
        ),
        (
            RunFilters {
                tags: vec![tag("team", "red")],
                ..all()
            },
            "ba",
        ),
        (
            RunFilters {
                tags: vec![tag("team", "red"), tag("stage", "final")],
                ..all()
            },
            "b",
        ),
        (named("resnet-*"), "ba"),
        (named("*50"), "a"),
        (named("vit [x]"), "c"),
        (named("vit*"), "c"),
        (
            RunFilters {
                created_after: Some(to_wire(START)),
                ..all()
            },
            "dcb",
        ),
        (
            RunFilters {
                created_before: Some(to_wire(START + SECOND)),
                ..all()
            },
            "a",
        ),
        (
            RunFilters {
                user_id: Some("ada".to_owned()),
                ..all()
            },
            "dcba",
        ),
        (
            RunFilters {
                user_id: Some("bob".to_owned()),
                ..all()
            },
            "",
        ),
        (
            RunFilters {
                parent_run_id: Some("a".to_owned()),
                ..all()
            },
            "",
        ),
    ] {
        assert_eq!(listed(&reader, filters.clone()).await.concat(), expected, "{filters:?}");
    }
}

#[tokio::test]
async fn parameters_are_compared_as_numbers_where_both_are_numbers() {
    let (_on, reader) = five().await;
    for (name, op, value, expected) in [
        ("lr", ComparisonOp::Lt, "0.05", "b"),
        ("lr", ComparisonOp::Le, "0.10", "ba"),
        ("lr", ComparisonOp::Eq, "0.01", "b"),
        ("lr", ComparisonOp::Gt, "0.1", "dc"),
        ("lr", ComparisonOp::Ge, "0.1", "dca"),
        ("lr", ComparisonOp::Ne, "9.0", "dba"),
        ("lr", ComparisonOp::Eq, "none", "d"),
        ("optimizer", ComparisonOp::Contains, "adam", "cb"),
        ("optimizer", ComparisonOp::Ge, "adamw", "ca"),
        ("absent", ComparisonOp::Ne, "x", ""),
        ("lr' OR 1=1 --", ComparisonOp::Ne, "x", ""),
    ] {
        let filter = ParameterFilter {
            name: name.to_owned(),
            op: op.into(),
            value: value.to_owned(),
        };
        let filters = RunFilters {
            param_filters: vec![filter],
            ..RunFilters::default()
        };
        assert_eq!(
            listed(&reader, filters).await.concat(),
            expected,
            "{name} {op:?} {value}"
        );
    }
}

#[tokio::test]
async fn every_order_gives_the_same_runs_in_pages_of_any_size() {
    let (_on, reader) = five().await;
    for (field, direction, expected) in [
        (RunSortField::CreatedAt, SortDirection::Unspecified, "dcba"),
        (RunSortField::CreatedAt, SortDirection::Asc, "abcd"),
        (RunSortField::Name, SortDirection::Unspecified, "dbac"),
        (RunSortField::Name, SortDirection::Desc, "cabd"),
        (RunSortField::Status, SortDirection::Unspecified, "cdab"),
        (RunSortField::Duration, SortDirection::Unspecified, "badc"),
        (RunSortField::Duration, SortDirection::Asc, "abcd"),
    ] {
        for page_size in 1..=5 {
            let mut found = Vec::new();
            let mut request = ListRunsRequest {
                project_id: project(),
                sort: Some(RunSort {
                    field: field.into(),
                    direction: direction.into(),
                }),
                page_size,
                ..ListRunsRequest::default()
            };
            loop {
                let page = reader.list_runs(request.clone()).await.expect("a page");
                assert_eq!(page.total_count, 4);
                assert!(page.runs.len() <= page_size as usize);
                found.extend(ids(&page.runs));
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = page.next_page_token;
            }
            assert_eq!(found.concat(), expected, "{field:?} {direction:?} by {page_size}");
        }
    }
}

#[tokio::test]
async fn a_page_goes_on_while_runs_are_added() {
    let (on, reader) = five().await;
    let mut request = ListRunsRequest {
        project_id: project(),
        page_size: 2,
        ..ListRunsRequest::default()
    };
    let first = reader.list_runs(request.clone()).await.expect("a page");
    on.open("f", "new").await;
    request.page_token = first.next_page_token;
    let second = reader.list_runs(request).await.expect("a page");
    assert_eq!(ids(&second.runs).concat(), "ba");
}

#[tokio::test]
async fn a_run_is_read_with_the_parts_that_are_asked_for() {
    let (_on, reader) = five().await;
    let run = |include_fields: Vec<String>| {
        let request = GetRunRequest {
            run_id: Some(id("b")),
            include_fields,
        };
        async { reader.get_run(request).await.expect("a run").run.expect("a run") }
    };
    let all = run(Vec::new()).await;
    assert_eq!(
        (all.name.as_str(), all.user_id.as_str(), all.status),
        ("resnet-101", "ada", 3)
    );
    assert_eq!((all.tags.len(), all.params.len(), all.summary.len()), (2, 2, 1));
    assert_eq!(all.duration_seconds, Some(20.0));
    assert_eq!(all.started_at, all.created_at);
    let some = run(vec!["params".to_owned()]).await;
    assert_eq!((some.tags.len(), some.params.len(), some.summary.len()), (0, 2, 0));
    let missing = GetRunRequest {
        run_id: Some(id("nobody")),
        ..GetRunRequest::default()
    };
    assert_eq!(
        reader.get_run(missing).await.map_err(|refusal| refusal.code),
        Err(Code::NotFound)
    );
}

#[tokio::test]
async fn series_come_back_in_step_order() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "loss", [(5, 0.5), (1, 0.1), (3, 0.3)]).await;
    on.log("a", "loss", [(2, 0.2), (4, 0.4)]).await;
    let reader = Reader::new(on.store.clone());
    for _ in 0..2 {
        let found = metrics(&reader, GetMetricsRequest::default()).await;
        assert_eq!(found, [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4), (5, 0.5)]);
        on.compact().await;
    }
}

#[tokio::test]
async fn a_rewritten_step_has_one_value() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "loss", [(1, 0.1), (2, 0.2), (2, 0.25)]).await;
    on.log("a", "loss", [(1, 9.0)]).await;
    let reader = Reader::new(on.store.clone());
    assert_eq!(
        metrics(&reader, GetMetricsRequest::default()).await,
        [(1, 9.0), (2, 0.25)]
    );
    on.compact().await;
    on.log("a", "loss", [(2, 7.0)]).await;
    assert_eq!(
        metrics(&reader, GetMetricsRequest::default()).await,
        [(1, 9.0), (2, 7.0)]
    );
}

/// Points of the metric `loss` of the run `a`.
async fn metrics(reader: &Reader, request: GetMetricsRequest) -> Vec<(i64, f64)> {
    let request = GetMetricsRequest {
        run_ids: vec![id("a")],
        metric_names: vec!["loss".to_owned()],
        ..request
    };
    let mut found = reader.get_metrics(request).await.expect("series");
    let series = found.run_metrics.remove(0).series;
    let points = series.into_iter().flat_map(|series| series.points);
    points.map(|point| (point.step, point.value)).collect()
}

#[tokio::test]
async fn a_range_of_steps_and_times_has_its_own_points_and_statistics() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "loss", (0..100).map(|step| (step, step as f64))).await;
    let reader = Reader::new(on.store.clone());
    let range = GetMetricsRequest {
        min_step: Some(10),
        max_step: Some(19),
        max_time: Some(to_wire(START + 15 * SECOND)),
        ..GetMetricsRequest::default()
    };
    let steps: Vec<i64> = metrics(&reader, range.clone())
        .await
        .iter()
        .map(|point| point.0)
        .collect();
    assert_eq!(steps, (10..=15).collect::<Vec<_>>());
    let request = GetMetricsRequest {
        run_ids: vec![id("a")],
        max_points: 2,
        ..range
    };
    let answer = reader.get_metrics(request).await.expect("series");
    assert!(answer.downsampled);
    assert_eq!(answer.original_point_count, 6);
    let series = &answer.run_metrics[0].series[0];
    let stats = series.stats.clone().expect("statistics");
    assert_eq!(
        (stats.min, stats.max, stats.mean, stats.last, stats.count),
        (10.0, 15.0, 12.5, 15.0, 6)
    );
    assert_eq!(series.points.len(), 2);
}

#[tokio::test]
async fn every_float_class_is_read_to_the_bit() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    let nan = f64::from_bits(0x7ff8_dead_beef_0001);
    let values = [
        nan,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        0.0,
        f64::MAX,
        f64::MIN_POSITIVE,
    ];
    on.log("a", "loss", (0..).zip(values)).await;
    let reader = Reader::new(on.store.clone());
    for _ in 0..2 {
        let found = metrics(&reader, GetMetricsRequest::default()).await;
        let bits: Vec<u64> = found.iter().map(|point| point.1.to_bits()).collect();
        assert_eq!(bits, values.map(f64::to_bits));
        on.compact().await;
    }
}

#[tokio::test]
async fn metrics_of_all_names_come_in_order_and_a_missing_run_is_not_found() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    for number in 0..30 {
        on.log("a", &format!("m{number:02}"), [(1, f64::from(number))]).await;
    }
    let reader = Reader::new(on.store.clone());
    let request = GetMetricsRequest {
        run_ids: vec![id("a")],
        ..GetMetricsRequest::default()
    };
    let answer = reader.get_metrics(request).await.expect("series");
    let names: Vec<&str> = answer.run_metrics[0]
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(names.len(), 30);
    assert!(names.is_sorted());
    let missing = GetMetricsRequest {
        run_ids: vec![id("a"), id("b")],
        ..GetMetricsRequest::default()
    };
    assert_eq!(
        reader.get_metrics(missing).await.map_err(|refusal| refusal.code),
        Err(Code::NotFound)
    );
}

#[tokio::test]
async fn the_latest_point_of_each_metric_is_found_in_chunks_and_in_what_is_not_compacted() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "eval", [(0, 5.0), (50, 6.0)]).await;
    on.log("a", "loss", (0..1_000).map(|step| (step, step as f64))).await;
    on.compact().await;
    on.log("a", "loss", [(1_000, 0.5)]).await;
    on.log("a", "new", [(3, f64::NAN)]).await;
    on.log("a", "eval", [(50, 7.0)]).await;
    let latest = Reader::new(on.store.clone())
        .latest(&crate::domain::RunId::new("a"))
        .await
        .expect("points");
    let shown: Vec<String> = latest
        .iter()
        .map(|latest| format!("{} {} {}", latest.name, latest.step, latest.value))
        .collect();
    assert_eq!(shown, ["eval 50 7", "loss 1000 0.5", "new 3 NaN"]);
}

#[tokio::test]
async fn runs_are_compared_over_what_they_share() {
    let on = Fixture::new().await;
    for run in ["a", "b"] {
        on.open(run, "").await;
        on.log(run, "loss", [(0, 1.0), (10, 0.0)]).await;
    }
    on.log("b", "acc", [(0, 1.0)]).await;
    let reader = Reader::new(on.store.clone());
    let request = CompareRunsRequest {
        run_ids: vec![id("a"), id("b")],
        ..CompareRunsRequest::default()
    };
    let compared = reader.compare_runs(request).await.expect("a comparison");
    assert_eq!(compared.alignment_info.expect("an axis").x_values, [0.0, 10.0]);
    for run in compared.run_metrics {
        let names: Vec<&str> = run.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["loss"]);
    }
}

#[tokio::test]
async fn search_finds_runs_of_the_project_alone_in_pages() {
    let (_on, reader) = five().await;
    let mut request = SearchRunsRequest {
        project_id: project(),
        query: "res".to_owned(),
        page_size: 1,
        ..SearchRunsRequest::default()
    };
    let first = reader.search_runs(request.clone()).await.expect("results");
    assert_eq!(first.total_count, 2);
    request.page_token = first.next_page_token.clone();
    let second = reader.search_runs(request.clone()).await.expect("results");
    assert!(second.next_page_token.is_empty());
    let found: Vec<Run> = first
        .results
        .into_iter()
        .chain(second.results)
        .filter_map(|result| result.run)
        .collect();
    assert_eq!(ids(&found).concat(), "ba");
    request.query = "red".to_owned();
    request.page_token.clear();
    assert_eq!(reader.search_runs(request).await.expect("results").total_count, 2);
}

#[tokio::test]
async fn a_project_is_summed_up() {
    let (on, reader) = five().await;
    on.log("c", "loss", [(0, 1.0), (1, 2.0)]).await;
    let request = GetProjectStatsRequest {
        project_id: project(),
        since: None,
    };
    let stats = reader.get_project_stats(request.clone()).await.expect("sums");
    assert_eq!((stats.total_runs, stats.total_metrics, stats.active_users), (4, 2, 1));
    let mut by_status: Vec<(String, i64)> = stats.runs_by_status.into_iter().collect();
    by_status.sort();
    let expected = [("failed", 1), ("finished", 1), ("running", 2)].map(|(word, runs)| (word.to_owned(), runs));
    assert_eq!(by_status, expected);
    assert!(stats.storage_bytes > 0);
    assert_eq!(stats.stats_since, Some(to_wire(START)));
    let later = GetProjectStatsRequest {
        since: Some(to_wire(START + 2 * SECOND)),
        ..request
    };
    assert_eq!(reader.get_project_stats(later).await.expect("sums").total_runs, 2);
}
