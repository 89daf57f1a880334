//! The deletion graph of the chart: two replicas delete an object of each kind, each the base of a revision, and name
//! what keeps one of them.

use kindex_model::kind::Kind;
use serde_json::json;

use super::super::process::wait_for;
use super::{Release, SAMPLES, kindex_samples, kinds};

const FOREIGN: &str = "server.other.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

/// A revision of the sample of a kind.
fn revision(kind: &Kind, name: &str) -> String {
    let object = json!({
        "apiVersion": "michelangelo.api/v2", "kind": "Revision",
        "metadata": {"name": format!("of-{}", kind.singular), "namespace": SAMPLES},
        "spec": {
            "baseType": {"kind": kind.name, "apiVersion": kind.api_version()},
            "baseResource": {"namespace": SAMPLES, "name": name},
        },
    });
    object.to_string()
}

fn resource(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, kind.group)
}

/// Of the object of a name, or of all where it is empty.
fn jsonpath(release: &Release, resource: &str, name: &str, path: &str) -> String {
    let path = format!("jsonpath={path}");
    let mut args = vec!["get", resource];
    args.extend((!name.is_empty()).then_some(name));
    args.extend(["--namespace", SAMPLES, "-o", &path]);
    release.kubectl(&args, "")
}

/// Does all of its work with the rights of its account, before anybody else does any.
pub(super) fn delete_every_sample(release: &Release) {
    let samples = kindex_samples();
    release.kubectl(&["apply", "--server-side", "-f", "-"], &samples);
    for kind in kinds().iter().filter(|kind| kind.name != "Revision") {
        let name = jsonpath(release, &resource(kind), "", "{.items[0].metadata.name}");
        release.kubectl(&["create", "-f", "-"], &revision(kind, &name));
        let of = format!("of-{}", kind.singular);
        let uid = jsonpath(release, "revisions.michelangelo.api", &of, "{.metadata.uid}");
        let reference = format!("revision.michelangelo.api/{uid}");
        wait_for("the reference of the revision", || {
            jsonpath(release, &resource(kind), &name, "{.metadata.finalizers}").contains(&reference)
        });
    }
    name_what_keeps_a_family(release);
    let deleting = format!("{}=true", kindex_generated::registry().platform.deleting);
    release.kubectl(&["annotate", "-f", "-", &deleting], &samples);
    release.kubectl(&["wait", "--for=delete", "--timeout=240s", "-f", "-"], &samples);
    let left = release.kubectl(
        &[
            "get",
            "revisions.michelangelo.api",
            "--namespace",
            SAMPLES,
            "-o",
            "name",
        ],
        "",
    );
    assert_eq!(left, "", "they went with their bases");
}

/// One that nobody else refers to, so that it is held by a holder of another service alone.
fn name_what_keeps_a_family(release: &Release) {
    let family = json!({"apiVersion": "michelangelo.api/v2", "kind": "ModelFamily",
        "metadata": {"name": "kept", "namespace": SAMPLES, "finalizers": [FOREIGN]}, "spec": {"name": "kept"}});
    release.kubectl(&["create", "-f", "-"], &family.to_string());
    let resource = "modelfamilys.michelangelo.api";
    let own = || jsonpath(release, resource, "kept", "{.metadata.finalizers}");
    wait_for("its guard", || own().contains("michelangelo.api/deletion"));
    release.kubectl(
        &["delete", resource, "kept", "--namespace", SAMPLES, "--wait=false"],
        "",
    );
    wait_for("the event", || {
        let events = release.kubectl(&["get", "events", "--namespace", SAMPLES], "");
        events.contains("DeletionBlocked") && events.contains(FOREIGN)
    });
    let patch = json!({"metadata": {
        "finalizers": ["michelangelo.api/deletion"],
        "annotations": {"michelangelo.api/release-references": FOREIGN},
    }});
    let args = ["patch", resource, "kept", "--namespace", SAMPLES, "--type=merge", "-p"];
    release.kubectl(&[&args[..], &[&patch.to_string()]].concat(), "");
    release.kubectl(
        &[
            "wait",
            "--for=delete",
            "--timeout=240s",
            &format!("{resource}/kept"),
            "--namespace",
            SAMPLES,
        ],
        "",
    );
}
