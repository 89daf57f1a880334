//! When a call of the store is repeated, by the ingester and by a command in a terminal: both go by what the store says
//! of its error.

use std::collections::BTreeSet;
use std::time::Duration;

use kindex_maintenance::retries::Transient;
use kindex_query::TemplateError;
use kindex_runtime::message::StoreFailure;
use kindex_store::{Cause, DirectError, Retry, StoreError};

const METRICS: &str = include_str!("../../../docs/src/reference/metrics.md");

/// One error of each variant, and one of each cause.
fn errors() -> Vec<StoreError> {
    let kind = || "Thing".to_owned();
    let retryable = |cause| StoreError::Retryable {
        kind: kind(),
        cause,
        source: sqlx::Error::PoolTimedOut,
    };
    let others = [
        StoreError::Schema("no table".to_owned()),
        StoreError::Address("no database".to_owned()),
        StoreError::Refused {
            kind: kind(),
            source: sqlx::Error::RowNotFound,
        },
        StoreError::Corrupt {
            kind: kind(),
            uid: "u".to_owned(),
            message: "cut off".to_owned(),
        },
        StoreError::NoHistory(kind()),
        StoreError::Continue("cut off".to_owned()),
        StoreError::Template(TemplateError::Missing {
            query: "q",
            parameter: "p",
        }),
        StoreError::Direct {
            kind: kind(),
            uid: "u".to_owned(),
            source: DirectError::Missing,
        },
        StoreError::UnlimitedDelete(kind()),
    ];
    Cause::ALL.map(retryable).into_iter().chain(others).collect()
}

/// When the call may succeed, and the label in metrics.
fn expected(error: &StoreError) -> (Retry, &'static str) {
    match error {
        StoreError::Retryable { cause, .. } => expected_of(*cause),
        StoreError::Schema(_) => (Retry::AfterChange, "schema"),
        StoreError::Address(_) => (Retry::AfterChange, "address"),
        StoreError::Refused { .. } => (Retry::Never, "refused"),
        StoreError::Corrupt { .. } => (Retry::Never, "corrupt"),
        StoreError::NoHistory(_) => (Retry::Never, "no_history"),
        StoreError::Continue(_) => (Retry::Never, "continue"),
        StoreError::Template(_) => (Retry::Never, "template"),
        StoreError::Direct { .. } => (Retry::Never, "direct"),
        StoreError::UnlimitedDelete(_) => (Retry::Never, "everything"),
    }
}

fn expected_of(cause: Cause) -> (Retry, &'static str) {
    match cause {
        Cause::Connection => (Retry::Later, "connection"),
        Cause::Timeout => (Retry::Later, "timeout"),
        Cause::PoolTimeout => (Retry::Later, "pool_timeout"),
        Cause::Closed => (Retry::Later, "closed"),
        Cause::TooManyConnections => (Retry::Later, "too_many_connections"),
        Cause::Deadlock => (Retry::Later, "deadlock"),
        Cause::Snapshot => (Retry::Later, "snapshot"),
        Cause::RolledBack => (Retry::Later, "rolled_back"),
        Cause::Duplicate => (Retry::Later, "duplicate"),
        Cause::LockWait => (Retry::Later, "lock_wait"),
        Cause::ReadOnly => (Retry::Later, "read_only"),
        Cause::NotReady => (Retry::Later, "not_ready"),
        Cause::Aborted => (Retry::Later, "aborted"),
        Cause::Resources => (Retry::Later, "resources"),
        Cause::Disk => (Retry::Later, "disk"),
        Cause::Access => (Retry::Later, "access"),
        Cause::SchemaChange => (Retry::Later, "schema_change"),
        Cause::Damaged => (Retry::AfterChange, "corrupt"),
    }
}

/// As if a command waited for a table that only another command creates, or the ingester gave an object up because of
/// it.
#[test]
fn the_ingester_and_commands_repeat_what_the_store_says() {
    for error in errors() {
        let (retry, label) = expected(&error);
        let text = error.to_string();
        assert_eq!(error.retry(), retry, "{text}");
        let pause = (retry == Retry::Later).then_some(Duration::ZERO);
        assert_eq!(error.retry_after(), pause, "of a command: {text}");
        let failure = StoreFailure::from(error);
        assert_eq!(failure.retryable, retry != Retry::Never, "of the ingester: {text}");
        assert_eq!(failure.cause, label, "{text}");
        assert_eq!(failure.is_outage, ["connection", "timeout"].contains(&label), "{text}");
    }
}

#[test]
fn the_page_of_metrics_lists_each_cause_of_the_store_by_a_label_of_its_own() {
    let listed = METRICS.lines().find(|line| line.contains("of retries, database:"));
    let listed = listed.expect("a line with the causes of the database");
    let labels: BTreeSet<&str> = Cause::ALL.into_iter().map(Cause::label).collect();
    assert_eq!(labels.len(), Cause::ALL.len());
    for label in labels {
        assert!(listed.contains(&format!("`{label}`")), "{label}");
    }
}
