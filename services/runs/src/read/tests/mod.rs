//! Reading from a store.

use super::*;
use crate::domain::Status;
use crate::fixture::{Fixture, SECOND};
use crate::wire::v1::{ListRunsRequest, ProjectId, Run, RunFilters, RunId};

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

mod listing;

mod series;
