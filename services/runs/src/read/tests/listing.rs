//! Lists, searches and sums of runs.

use sqlx::Row as _;

use super::*;
use crate::domain::to_wire;
use crate::fixture::START;
use crate::read::listing::Listing;
use crate::read::{rows, select};
use crate::refusal::Code;
use crate::wire::v1::{
    ComparisonOp, GetProjectStatsRequest, GetRunRequest, ParameterFilter, RunSort, RunSortField, SearchRunsRequest,
    SortDirection, Tag,
};

#[tokio::test]
async fn runs_are_listed_by_every_filter() {
    let (_on, reader) = five().await;
    let tag = |key: &str, value: &str| Tag {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    /// Says nothing but for what it changes.
    fn only(change: impl FnOnce(&mut RunFilters)) -> RunFilters {
        let mut filters = RunFilters::default();
        change(&mut filters);
        filters
    }
    let named = |pattern: &str| only(|filters| filters.name_pattern = Some(pattern.to_owned()));
    let of_user = |user: &str| only(|filters| filters.user_id = Some(user.to_owned()));
    let (red, last) = (tag("team", "red"), tag("stage", "final"));
    for (filters, expected) in [
        (RunFilters::default(), "dcba"),
        (only(|filters| filters.statuses = vec![2, 3]), "ba"),
        (only(|filters| filters.tags = vec![red.clone()]), "ba"),
        (only(|filters| filters.tags = vec![red, last]), "b"),
        (named("resnet-*"), "ba"),
        (named("*50"), "a"),
        (named("vit [x]"), "c"),
        (named("vit*"), "c"),
        (only(|filters| filters.created_after = Some(to_wire(START))), "dcb"),
        (
            only(|filters| filters.created_before = Some(to_wire(START + SECOND))),
            "a",
        ),
        (of_user("ada"), "dcba"),
        (of_user("bob"), ""),
        (only(|filters| filters.parent_run_id = Some("a".to_owned())), ""),
    ] {
        assert_eq!(listed(&reader, filters.clone()).await.concat(), expected, "{filters:?}");
    }
}

/// A page is as quick among a million runs as among five.
#[tokio::test]
async fn the_newest_runs_are_found_by_a_key_and_not_sorted() {
    let (on, reader) = five().await;
    let mut connection = on.store.readers().acquire().await.expect("a connection");
    for (project_id, key) in [(None, "run_by_time"), (project(), "run_by_project")] {
        let first = ListRunsRequest {
            project_id,
            page_size: 2,
            ..ListRunsRequest::default()
        };
        let shown = reader.list_runs(first.clone()).await.expect("a page");
        let second = ListRunsRequest {
            page_token: shown.next_page_token,
            ..first.clone()
        };
        assert!(!second.page_token.is_empty());
        for request in [first, second] {
            let mut page = select::page(&Listing::of(request).expect("a list"));
            page.text.insert_str(0, "EXPLAIN QUERY PLAN ");
            let steps = rows::fetch(page, &mut connection).await.expect("a plan");
            let steps: Vec<String> = steps.iter().map(|step| step.get("detail")).collect();
            assert!(
                matches!(&steps[..], [only] if only.contains(&format!("USING COVERING INDEX {key}"))),
                "{steps:?}"
            );
        }
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
            for _ in 0..5 {
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

/// As if only those were found whose texts are read first, or one of them twice: all are of the same time.
#[tokio::test]
async fn search_finds_every_run_once_however_many_there_are() {
    let on = Fixture::new().await;
    on.open("oldest", "needle").await;
    for number in 0..500 {
        on.open(&format!("r{number}"), "hay").await;
    }
    let reader = Reader::new(on.store.clone());
    for (query, total, newest) in [("needle", 1, "oldest"), ("", 501, "r499")] {
        let request = SearchRunsRequest {
            project_id: project(),
            query: query.to_owned(),
            page_size: 1,
            ..SearchRunsRequest::default()
        };
        let found = reader.search_runs(request).await.expect("results");
        assert_eq!(found.total_count, total, "{query}");
        let runs: Vec<Run> = found.results.into_iter().filter_map(|result| result.run).collect();
        assert_eq!(ids(&runs), [newest], "{query}");
    }
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
