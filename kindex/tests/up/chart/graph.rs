//! The deletion graph of the chart: two replicas delete an object of each kind, each the base of a revision, and name
//! what keeps some of them.

use kindex_model::kind::Kind;
use serde_json::{Value, json};

use super::roles::granted;
use super::{Release, SAMPLES, kindex_samples, kindex_samples_backwards, kinds};
use crate::process::wait_for;

const FOREIGN: &str = "server.other.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
/// The name of the objects that it holds.
const KEPT: &str = "kept";

/// What the revision of a kind says of its base.
fn based_on(kind: &Kind, name: &str) -> Value {
    json!({
        "baseType": {"kind": kind.name, "apiVersion": kind.api_version()},
        "baseResource": {"namespace": SAMPLES, "name": name},
    })
}

/// A revision of the sample of a kind.
fn revision(kind: &Kind, name: &str) -> String {
    let object = json!({
        "apiVersion": "michelangelo.api/v2", "kind": "Revision",
        "metadata": {"name": format!("of-{}", kind.singular), "namespace": SAMPLES},
        "spec": based_on(kind, name),
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

/// A sample, and the reference by which its revision holds it at first.
struct Base {
    kind: &'static Kind,
    name: String,
    reference: String,
}

impl Base {
    fn has_reference(&self, release: &Release) -> bool {
        jsonpath(release, &resource(self.kind), &self.name, "{.metadata.finalizers}").contains(&self.reference)
    }
}

/// Each to the base of the next one: nothing is released before both bases were read.
fn move_every_revision(release: &Release, bases: &[Base]) {
    for (from, to) in bases.iter().zip(bases.iter().cycle().skip(1)) {
        let patch = json!({"spec": based_on(to.kind, &to.name)}).to_string();
        let of = format!("of-{}", from.kind.singular);
        let args = ["patch", "revisions.michelangelo.api", &of, "--namespace", SAMPLES];
        release.kubectl(&[&args[..], &["--type=merge", "-p", &patch]].concat(), "");
    }
    for base in bases {
        wait_for("the release of the former base", || !base.has_reference(release));
    }
}

/// Does all of its work with the rights of its account, before anybody else does any.
pub(super) fn delete_every_sample(release: &Release) {
    let samples = kindex_samples();
    release.kubectl(&["apply", "--server-side", "-f", "-"], &samples);
    let mut bases = Vec::new();
    for kind in kinds().iter().filter(|kind| kind.name != "Revision") {
        let name = jsonpath(release, &resource(kind), "", "{.items[0].metadata.name}");
        release.kubectl(&["create", "-f", "-"], &revision(kind, &name));
        let of = format!("of-{}", kind.singular);
        let uid = jsonpath(release, "revisions.michelangelo.api", &of, "{.metadata.uid}");
        let base = Base {
            kind,
            name,
            reference: format!("revision.michelangelo.api/{uid}"),
        };
        wait_for("the reference of the revision", || base.has_reference(release));
        bases.push(base);
    }
    move_every_revision(release, &bases);
    name_what_keeps_objects(release);
    let deleting = format!("{}=true", kindex_generated::registry().platform.deleting);
    release.kubectl(&["annotate", "-f", "-", &deleting], &kindex_samples_backwards());
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

/// Objects that nobody else refers to, so that each is held by a holder of another service alone: one of each kind that
/// has conditions. The event and the conditions name the holder.
fn name_what_keeps_objects(release: &Release) {
    let role = granted(&["deletion"]);
    let has_conditions = |kind: &&Kind| {
        let status = format!("{}/status", kind.plural);
        role.contains(&("patch".to_owned(), kind.group.to_owned(), status))
    };
    let kept: Vec<_> = kinds().iter().copied().filter(has_conditions).collect();
    assert!(!kept.is_empty(), "some kinds have conditions");
    for kind in &kept {
        let object = json!({"apiVersion": kind.api_version(), "kind": kind.name,
            "metadata": {"name": KEPT, "namespace": SAMPLES, "finalizers": [FOREIGN]}, "spec": {}});
        release.kubectl(&["create", "-f", "-"], &object.to_string());
        wait_for("its finalizer", || {
            jsonpath(release, &resource(kind), KEPT, "{.metadata.finalizers}").contains("michelangelo.api/deletion")
        });
        let args = ["delete", &resource(kind), KEPT, "--namespace", SAMPLES, "--wait=false"];
        release.kubectl(&args, "");
    }
    for kind in &kept {
        wait_for("the conditions", || {
            let status = jsonpath(release, &resource(kind), KEPT, "{.status}");
            ["DeletionPhase", "DeletionBlocked", FOREIGN]
                .iter()
                .all(|word| status.contains(word))
        });
    }
    wait_for("the event", || {
        let events = release.kubectl(&["get", "events", "--namespace", SAMPLES], "");
        events.contains("DeletionBlocked") && events.contains(FOREIGN)
    });
    let patch = json!({"metadata": {
        "finalizers": ["michelangelo.api/deletion"],
        "annotations": {"michelangelo.api/release-references": FOREIGN},
    }});
    for kind in &kept {
        let args = [
            "patch",
            &resource(kind),
            KEPT,
            "--namespace",
            SAMPLES,
            "--type=merge",
            "-p",
        ];
        release.kubectl(&[&args[..], &[&patch.to_string()]].concat(), "");
        let gone = format!("{}/{KEPT}", resource(kind));
        let args = ["wait", "--for=delete", "--timeout=240s", &gone, "--namespace", SAMPLES];
        release.kubectl(&args, "");
    }
}
