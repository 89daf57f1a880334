//! examples/deletion-graph/platform: five kinds, of which the last one goes first. Takes minutes to build, and runs
//! where `KINDEX_REQUIRE` names `walk`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;
use super::workspace::{Example, shown, walk_is_required};

mod collector;

/// What the samples have, each with what it names.
const OBJECTS: [(&str, &str, &[&str]); 5] = [
    ("project", "a", &[]),
    ("cloudidentity", "openstack", &["project"]),
    ("network", "blue", &["cloudidentity"]),
    ("servergroup", "apart", &["cloudidentity"]),
    ("cluster", "prod", &["network", "servergroup"]),
];

/// One version of an object, from a watch of its kind.
struct Version {
    number: u64,
    is_gone: bool,
    object: Value,
}

impl Version {
    fn finalizers(&self) -> impl Iterator<Item = &str> {
        let finalizers = self.object["metadata"]["finalizers"].as_array().into_iter().flatten();
        finalizers.filter_map(Value::as_str)
    }

    fn phase(&self) -> &str {
        let phase = &self.object["metadata"]["annotations"]["platform.example.com/deletion-phase"];
        phase.as_str().unwrap_or_default()
    }
}

/// Deletes the project by one of the two ports, and looks on.
struct Deletion<'r> {
    run: &'r Running,
    /// The machine of the cluster, as long as it is there.
    machine: PathBuf,
    /// The flags of kubectl that lead to the port.
    port: Vec<String>,
}

impl Deletion<'_> {
    fn kubectl(&self, args: &[&str]) -> String {
        let port = self.port.iter().map(String::as_str);
        self.run
            .kubectl(&port.chain(args.iter().copied()).collect::<Vec<_>>(), "")
    }

    /// All that happened to a kind since a version, as the cluster tells it.
    fn versions(&self, kind: &str, since: &str) -> Vec<Version> {
        let watch = format!("{}?watch=1&resourceVersion={since}&timeoutSeconds=1", path(kind));
        let text = self.run.kubectl(&["get", "--raw", &watch], "");
        let events = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let versions = events.filter(|event| event["type"] != "BOOKMARK").map(|mut event| {
            let object = event["object"].take();
            let number = object["metadata"]["resourceVersion"].as_str().map(str::parse);
            Version {
                number: number.expect("a version").expect("a number"),
                is_gone: event["type"] == "DELETED",
                object,
            }
        });
        versions.collect()
    }

    fn reference(&self, kind: &str) -> String {
        let (_, name, _) = object(kind);
        let uid = self
            .run
            .kubectl(&["get", kind, name, "-o=jsonpath={.metadata.uid}"], "");
        format!("{kind}.{}/{uid}", group(kind))
    }

    fn every_target_is_held(&self) {
        for (kind, _, targets) in OBJECTS {
            let reference = self.reference(kind);
            for target in targets {
                let (_, name, _) = object(target);
                wait_for("the reference", || {
                    let finalizers = ["get", target, name, "-o=jsonpath={.metadata.finalizers}"];
                    self.run.kubectl(&finalizers, "").contains(&reference)
                });
            }
        }
    }

    fn happens(&self) {
        self.run.kubectl(&["apply", "-f", "-"], &samples());
        self.every_target_is_held();
        fs::write(&self.machine, "runs").expect("writable");
        let since = self.version();

        self.kubectl(&["delete", "project", "a", "--wait=false"]);
        wait_for("the cluster to be named", || {
            let why = text_of(&self.run.command(&["why", "project/a"]).stdout);
            let (tree, roots) = why.split_once("\nIn the end it waits for:\n").unwrap_or_default();
            let waits = "  cluster/default/prod: is being deleted and waits for ";
            let reported = "s ago: waits for what it has outside of the cluster: the machine ";
            tree.contains("cluster/default/prod  Deleting") && roots.starts_with(waits) && roots.contains(reported)
        });
        for (kind, name, _) in OBJECTS {
            wait_for(&format!("{kind} to be deleted with it, and to wait"), || {
                let time = ["get", kind, name, "-o=jsonpath={.metadata.deletionTimestamp}"];
                !self.run.kubectl(&time, "").is_empty()
            });
        }

        let asked = fs::read_to_string(&self.machine).expect("it is there");
        assert_eq!(asked, "to be removed\n");
        fs::remove_file(&self.machine).expect("it is there");
        wait_for("the project to go", || {
            self.kubectl(&["get", "projects", "-o=name"]).is_empty()
        });
        let story = OBJECTS.map(|(kind, _, _)| (kind, self.versions(kind, &since)));
        assert_story(&BTreeMap::from(story));
    }

    /// The version of the cluster.
    fn version(&self) -> String {
        let listed: Value =
            serde_json::from_str(&self.run.kubectl(&["get", "--raw", path("project")], "")).expect("JSON");
        let version = listed["metadata"]["resourceVersion"].as_str();
        version.expect("a version").to_owned()
    }
}

/// Each has one time of deletion and goes after all that name it, which have cleaned up before they release it.
fn assert_story(story: &BTreeMap<&str, Vec<Version>>) {
    assert_order(story);
    for (kind, versions) in story {
        assert_eq!(deletions(versions).len(), 1, "{kind} has one time of deletion");
    }
    for (kind, _, targets) in OBJECTS {
        for target in targets {
            assert_released(story, kind, target);
        }
    }
}

/// Each goes after all that name it.
fn assert_order(story: &BTreeMap<&str, Vec<Version>>) {
    let gone = |kind: &str| {
        let gone = story[kind].iter().find(|version| version.is_gone);
        gone.unwrap_or_else(|| panic!("{kind} is gone")).number
    };
    for (kind, _, targets) in OBJECTS {
        for target in targets {
            assert!(gone(kind) < gone(target), "{kind} goes before {target}");
        }
    }
}

/// The holder has cleaned up before it releases the target, and the target does nothing before that.
fn assert_released(story: &BTreeMap<&str, Vec<Version>>, holder: &str, target: &str) {
    let prefix = format!("{holder}.{}/", group(holder));
    let has_reference = |version: &Version| version.finalizers().any(|finalizer| finalizer.starts_with(&prefix));
    let released = story[target]
        .iter()
        .find(|version| !has_reference(version))
        .expect("it was released");
    let through = story[holder].iter().find(|version| version.phase() == "FINALIZING");
    assert!(
        through.expect("it was recorded").number < released.number,
        "{holder}, {target}"
    );
    let mut before = story[target].iter().filter(|version| version.number < released.number);
    assert!(
        before.all(|version| matches!(version.phase(), "" | "DELETING")),
        "{holder}, {target}"
    );
}

fn deletions(versions: &[Version]) -> BTreeSet<&str> {
    let timestamps = versions
        .iter()
        .map(|version| &version.object["metadata"]["deletionTimestamp"]);
    timestamps.filter_map(Value::as_str).collect()
}

fn object(kind: &str) -> (&'static str, &'static str, &'static [&'static str]) {
    let found = OBJECTS.into_iter().find(|(other, _, _)| *other == kind);
    found.expect("one of the five")
}

fn group(kind: &str) -> &'static str {
    match kind {
        "project" => "identity.example.com",
        "cluster" => "compute.example.com",
        _ => "region.example.com",
    }
}

fn path(kind: &str) -> &'static str {
    match kind {
        "project" => "/apis/identity.example.com/v1/projects",
        "cloudidentity" => "/apis/region.example.com/v1/cloudidentities",
        "network" => "/apis/region.example.com/v1/networks",
        "servergroup" => "/apis/region.example.com/v1/servergroups",
        _ => "/apis/compute.example.com/v1/clusters",
    }
}

fn samples() -> String {
    let path = super::workspace::checkout().join("examples/deletion-graph/platform/samples.yaml");
    std::fs::read_to_string(path).expect("in the checkout")
}

/// Built once for all tests.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let example = Example::copy("deletion-graph/platform", &["crds.toml"]);
        example.build("platform-kindex").expect("builds")
    })
}

#[test]
fn a_project_takes_everything_along_in_order_by_either_port() {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let program = program();
    let machines = tempfile::tempdir().expect("a temporary directory");
    let environment = [("MACHINES", shown(machines.path()))];
    let run = Running::start_binary_in(program, &environment, &["--blocked-after", "1"]);
    let api = format!("http://{}", run.api().expect("an API server"));
    for port in [Vec::new(), vec!["--server".to_owned(), api.clone()]] {
        let machine = machines.path().join("prod");
        let run = &run;
        Deletion { run, machine, port }.happens();
    }
    let tombstones = |kind: &str| {
        let events = Command::new(program).args(["events", kind, "--url", &api]).output();
        let events = text_of(&events.expect("kindex runs").stdout);
        events.lines().filter(|line| line.starts_with("Erased  ")).count()
    };
    for (kind, _, _) in OBJECTS {
        wait_for("both tombstones", || tombstones(kind) == 2);
    }
}
