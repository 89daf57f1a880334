//! References set through the API server of the chart: what it asks the cluster for in its own name, whoever holds. By
//! the role that the chart has for controllers, somebody speaks for holders of the kinds.

use kindex_model::kind::Kind;
use serde_json::json;

use super::{Alice, Release, SAMPLES, kinds};
use crate::process::wait_for;

const HOLDER: &str = "holder.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const OF_A_KIND: &str = "triggerrun.michelangelo.api/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

/// Sets a reference on an object of each kind, and releases it: with the right of its holder, and none to the object.
pub(super) fn hold_every_sample(release: &Release, alice: &Alice) {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "holders"},
        "rules": [{"apiGroups": ["example.com"], "resources": ["holders/references"], "verbs": ["update"]}]});
    release.kubectl(&["create", "-f", "-"], &role.to_string());
    release.kubectl(
        &[
            "create",
            "clusterrolebinding",
            "holders",
            "--clusterrole=holders",
            "--user=alice",
        ],
        "",
    );
    let role = "--clusterrole=kindex-kindex-references";
    release.kubectl(
        &["create", "clusterrolebinding", "controllers", role, "--user=alice"],
        "",
    );
    wait_for_rights(release);
    for Kind { plural, group, .. } in kinds() {
        let resource = format!("{plural}.{group}");
        let name = [
            "get",
            &resource,
            "--namespace",
            SAMPLES,
            "-o",
            "jsonpath={.items[0].metadata.name}",
        ];
        let name = release.kubectl(&name, "");
        for holder in [HOLDER, OF_A_KIND] {
            let path = format!("/api/v1/{resource}/{SAMPLES}/{name}/references/{holder}");
            alice.kubectl(&["replace", "--raw", &path, "-f", "-"], "{}");
            alice.kubectl(&["delete", "--raw", &path], "");
        }
    }
}

/// Rights are granted a moment after they are written down. kubectl knows no holders that it could ask about.
fn wait_for_rights(release: &Release) {
    for (group, resource) in [("example.com", "holders"), ("michelangelo.api", "triggerruns")] {
        let asked = json!({"verb": "update", "group": group, "resource": resource, "subresource": "references"});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": "alice", "resourceAttributes": asked}});
        wait_for("the rights of alice", || {
            let allowed = ["create", "-f", "-", "-o", "jsonpath={.status.allowed}"];
            release.kubectl(&allowed, &review.to_string()) == "true"
        });
    }
}
