//! Statuses, there and back.

use serde_json::json;

use super::*;
use crate::migration::Cause;

#[test]
fn a_state_is_written_as_it_was_read() {
    let json = json!({
        "persistedStorageVersionHashes": ["Unknown", "8aSe+NMegvE="],
        "currentStorageVersionHash": "8aSe+NMegvE=",
        "lastHeartbeatTime": "2026-11-01T12:00:00Z",
        "definition": {"uid": "u", "generation": 4},
    });
    let status: StorageStateStatus = serde_json::from_value(json.clone()).expect("a status");
    let written = StorageStateStatus::from(&State::from(&status));
    assert_eq!(serde_json::to_value(written).expect("json"), json);
}

#[test]
fn a_run_is_saved_whole() {
    let run = Run {
        passes: 2,
        token: Some("next".to_owned()),
        pass: Counts {
            rewritten: 1,
            unchanged: 2,
            conflicts: 3,
            gone: 4,
            refused: 5,
        },
        before: Counts {
            rewritten: 10,
            ..Counts::default()
        },
        refused: vec![Refused {
            object: "shop/a".to_owned(),
            why: "422: no".to_owned(),
        }],
        restarts: 6,
    };
    let mut status = StorageVersionMigrationStatus::default();
    status.save(&run);
    let json = serde_json::to_value(&status).expect("json");
    let totals = json!({"rewritten": 11, "unchanged": 2, "conflicts": 3, "gone": 4, "refused": 5});
    assert_eq!(json["allPasses"], totals);
    let read: StorageVersionMigrationStatus = serde_json::from_value(json).expect("a status");
    assert_eq!(read.run(), run);
}

#[test]
fn a_status_without_totals_counts_from_its_pass_on() {
    let status = json!({"conditions": [], "passes": 1, "restarts": 0, "pass": {"rewritten": 7}});
    let status: StorageVersionMigrationStatus = serde_json::from_value(status).expect("a status");
    assert_eq!(status.run().all_passes().rewritten, 7);
}

#[test]
fn one_condition_is_true_at_a_time() {
    let mut status = StorageVersionMigrationStatus::default();
    assert_eq!(status.progress(), Progress::Pending);
    let now = Timestamp::UNIX_EPOCH;
    status.set_condition("Running", "Listing", String::new(), now);
    assert_eq!(status.progress(), Progress::Running);
    status.set_condition("Failed", "ObjectsRefused", String::new(), now);
    let cause = Cause::Refused;
    assert_eq!(status.progress(), Progress::Failed { since: now, cause });
    status.set_condition("Succeeded", "Verified", String::new(), now);
    assert_eq!(status.progress(), Progress::Succeeded);
    assert_eq!(status.conditions.len(), 3);
    let holding = status
        .conditions
        .iter()
        .filter(|condition| condition.status == ConditionStatus::True);
    assert_eq!(holding.count(), 1);
}

#[test]
fn a_resource_of_the_core_group_is_named_without_a_point() {
    let named = |group: &str, resource: &str| {
        let (group, resource) = (group.to_owned(), resource.to_owned());
        GroupResource { group, resource }.to_string()
    };
    assert_eq!(named("", "pods"), "pods");
    assert_eq!(named("batch", "cronjobs"), "cronjobs.batch");
}

#[test]
fn the_reason_of_a_failure_says_what_the_next_migration_waits_for() {
    let causes = ["Outdated", "Forbidden", "ObjectsRefused", "PreflightFailed"].map(Verdict::cause);
    let expected = [Cause::Outdated, Cause::Forbidden, Cause::Refused, Cause::Refused];
    assert_eq!(causes, expected);
}

#[test]
fn a_finding_is_a_condition_of_the_state_until_it_is_gone() {
    let mut status = StorageStateStatus::default();
    status.say(Some(Finding::Divided), Timestamp::UNIX_EPOCH);
    assert!(status.says(Some(Finding::Divided)));
    let since = status.conditions.clone();
    status.say(Some(Finding::Divided), Timestamp::MAX);
    assert_eq!(status.conditions, since, "it holds since it was found");
    status.say(None, Timestamp::MAX);
    let all: Vec<_> = status
        .conditions
        .iter()
        .map(|one| (one.status, one.reason.as_str()))
        .collect();
    assert_eq!(all, [(ConditionStatus::True, "HashShown")]);
}
