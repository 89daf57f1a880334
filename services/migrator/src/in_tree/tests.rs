//! Conditions as kube-controller-manager sets them, and lists it leaves behind.

use serde_json::json;

use super::*;

fn conditions(of: &[(&str, &str)]) -> Vec<Condition> {
    let one = |(kind, status): &(&str, &str)| {
        let condition = json!({"type": kind, "status": status, "reason": "r", "message": "why",
            "lastTransitionTime": "2026-11-01T12:00:00Z"});
        serde_json::from_value(condition).expect("a condition")
    };
    of.iter().map(one).collect()
}

#[test]
fn a_run_has_ended_when_the_definition_was_written_too() {
    let read = |of: &[(&str, &str)]| ended(&conditions(of));
    let failed = Ended::Failed { why: "why".to_owned() };
    for under_way in [
        &[][..],
        &[("Running", "True")],
        &[("Running", "True"), ("Succeeded", "True")],
        &[("Running", "True"), ("Failed", "True")],
        &[("Failed", "True")],
    ] {
        assert_eq!(read(under_way), None, "{under_way:?}");
    }
    assert_eq!(
        read(&[("Running", "False"), ("Succeeded", "True")]),
        Some(Ended::Succeeded)
    );
    assert_eq!(read(&[("Running", "False"), ("Failed", "True")]), Some(failed));
}

fn noted(uid: &str, stored: &[&str]) -> StoredVersions {
    StoredVersions {
        uid: uid.to_owned(),
        stored: owned(stored),
    }
}

fn owned(versions: &[&str]) -> Vec<String> {
    versions.iter().map(|version| (*version).to_owned()).collect()
}

#[test]
fn versions_that_were_taken_come_back_in_their_order() {
    let declared = owned(&["v1", "v2", "v3"]);
    let after = |now: &[&str]| put_back(&noted("u", &["v1", "v2"]), &noted("u", now), &declared);
    let list = |now: &[&str]| after(now).list;
    assert_eq!(list(&["v2"]), Some(owned(&["v1", "v2"])));
    assert_eq!(list(&["v2", "v3"]), Some(owned(&["v1", "v2", "v3"])));
    assert_eq!(list(&["v1", "v2"]), None);
    assert_eq!(list(&["v1", "v2", "v3"]), None);
    assert_eq!(after(&["v2"]).to_string().matches("v1").count(), 1);
    assert_eq!(after(&["v1", "v2"]).to_string(), "");
}

#[test]
fn another_definition_owes_nothing() {
    let declared = owned(&["v1", "v2"]);
    let after = put_back(&noted("u", &["v1", "v2"]), &noted("w", &["v2"]), &declared);
    assert_eq!(after, StoredVersionsRepair::default());
}

#[test]
fn a_version_that_is_not_declared_any_more_is_reported_and_not_listed() {
    let after = put_back(
        &noted("u", &["v0", "v1", "v2"]),
        &noted("u", &["v2"]),
        &owned(&["v1", "v2"]),
    );
    assert_eq!(
        after.list,
        Some(owned(&["v1", "v2"])),
        "a list with v0 would be refused"
    );
    assert_eq!(after.lost, ["v0"]);
    assert!(after.to_string().contains("does not declare v0"), "{after}");
    let after = put_back(&noted("u", &["v0", "v1"]), &noted("u", &["v1"]), &owned(&["v1"]));
    assert_eq!((after.list, after.lost), (None, owned(&["v0"])));
}
