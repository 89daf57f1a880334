//! One of the services of examples/deletion-graph, as a process that is killed and comes back.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use jiff::Timestamp;
use kindex_harness::nats::Nats;
use kindex_harness::ports;
use serde_json::{Value, json};

use super::graph::Object;
use crate::deletion::Deletion;
use crate::process::{Running, wait_for};
use crate::site::Site;
use crate::text_of;
use crate::workspace::{Example, checkout, write};

/// Objects of each refer to those of the one before.
pub(super) const NAMES: [&str; 3] = ["identity", "region", "compute"];

/// The kinds of each.
const KINDS: [&str; 3] = ["projects", "cloudidentities,networks,servergroups", "clusters"];

/// The finalizer of somebody who cleans up after an object.
const CLEANUP: &str = "example.com/cleanup";

/// Where the files are that the crds.toml of each names below `/etc`.
pub(super) fn files() -> PathBuf {
    checkout().join("target/walk/etc")
}

/// The program of a service, built once for all tests.
fn program(name: &str) -> PathBuf {
    static BUILT: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());
    let mut built = BUILT.lock().expect("no build panicked");
    if let Some((_, program)) = built.iter().find(|(of, _)| of == name) {
        return program.clone();
    }
    let example = Example::copy(&format!("deletion-graph/{name}"), &["crds.toml"]);
    let declared = std::fs::read_to_string(example.path().join("crds.toml")).expect("copied");
    let declared = declared.replace("/etc/", &format!("{}/", files().display()));
    write(example.path(), "crds.toml", &declared);
    let program = example.build(&format!("{name}-kindex")).expect("builds");
    built.push((name.to_owned(), program.clone()));
    program
}

/// One of the three.
pub(super) struct Service {
    pub(super) name: &'static str,
    program: PathBuf,
    pub(super) url: String,
    flags: Vec<String>,
    pub(super) run: Running,
    /// Where the cluster is not inside of `kindex up`.
    deletion: Option<Deletion>,
    pub(super) is_killed: bool,
}

impl Service {
    /// The three of them, each with a cluster inside. They hear of each other by a transport. All of them feed the NATS
    /// server if there is one.
    pub(super) fn start_all(events: &str, nats: Option<&Nats>) -> [Self; 3] {
        let mut graph = ["--blocked-after", "1", "--service-events", events]
            .map(str::to_owned)
            .to_vec();
        if let Some(nats) = nats {
            graph.extend(["--nats".to_owned(), nats.address()]);
        }
        let places = places();
        std::array::from_fn(|at| {
            let (name, address) = &places[at];
            let mut flags = listen(address);
            flags.extend(graph.iter().cloned().chain(beside(&places, at)));
            Self::start(name, address, &Site::Embedded, flags)
        })
    }

    /// The three of them, each on a cluster of others, with `kindex deletion` as a process of its own.
    pub(super) fn start_all_on(sites: &[Site; 3]) -> [Self; 3] {
        let places = places();
        std::array::from_fn(|at| {
            let (name, address) = &places[at];
            let mut flags = listen(address);
            flags.push("--deletion".to_owned());
            flags.extend(beside(&places, at));
            let mut service = Self::start(name, address, &sites[at], flags);
            let kubeconfig = sites[at].kubeconfig().expect("it is not an embedded cluster");
            let deletion = Deletion::start(&service.program, &service.run, kubeconfig, beside(&places, at));
            service.deletion = Some(deletion);
            service
        })
    }

    /// One of them, with a cluster inside.
    pub(super) fn start_one(name: &'static str, flags: &[&str]) -> Self {
        let address = format!("127.0.0.1:{}", ports::reserve());
        let mut all = listen(&address);
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        Self::start(name, &address, &Site::Embedded, all)
    }

    /// `kindex deletion` of its program, beside the cluster inside.
    pub(super) fn start_deletion(&self, flags: Vec<String>) -> Deletion {
        let kubeconfig = self.run.data_dir().join("kubeconfig");
        Deletion::start(&self.program, &self.run, &kubeconfig, flags)
    }

    fn start(name: &'static str, address: &str, site: &Site, flags: Vec<String>) -> Self {
        let program = program(name);
        let words: Vec<_> = flags.iter().map(String::as_str).collect();
        let run = Running::start_binary_with(&program, site, &words);
        Self {
            name,
            program,
            url: format!("http://{address}"),
            flags,
            run,
            deletion: None,
            is_killed: false,
        }
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) {
        self.run.kill();
        if let Some(deletion) = &mut self.deletion {
            deletion.kill();
        }
        self.is_killed = true;
    }

    pub(super) fn restart(&mut self) {
        let words: Vec<_> = self.flags.iter().map(String::as_str).collect();
        self.run.restart_with(&words);
        if let Some(deletion) = &mut self.deletion {
            deletion.restart();
        }
        self.is_killed = false;
    }

    pub(super) fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Applies the samples that are of this service.
    pub(super) fn apply(&self) {
        let samples = checkout().join("examples/deletion-graph/platform/samples.yaml");
        let samples = std::fs::read_to_string(samples).expect("in the checkout");
        let group = format!("apiVersion: {}.example.com/", self.name);
        let own = samples.split("---\n").filter(|sample| sample.starts_with(&group));
        self.run
            .kubectl(&["apply", "-f", "-"], &own.collect::<Vec<_>>().join("---\n"));
    }

    /// All objects of its kinds, with what a deletion changes.
    pub(super) fn objects(&self) -> Value {
        let at = NAMES.iter().position(|name| *name == self.name);
        let kinds = KINDS[at.expect("one of the three")];
        let found: Value = serde_json::from_str(&self.run.kubectl(&["get", kinds, "-o", "json"], "")).expect("JSON");
        let objects = found["items"].as_array().expect("a list").iter().map(|object| {
            let metadata = &object["metadata"];
            json!({
                "uid": metadata["uid"],
                "deletionTimestamp": metadata["deletionTimestamp"],
                "finalizers": metadata["finalizers"],
                "spec": object["spec"],
            })
        });
        objects.collect()
    }

    pub(super) fn delete(&self, object: &Object) {
        self.run
            .kubectl(&["delete", object.singular, object.name, "--wait=false"], "");
    }

    /// From now on the object drains until the cleanup after it has ended.
    pub(super) fn begin_cleanup(&self, object: &Object) {
        let added = json!([{"op": "add", "path": "/metadata/finalizers/-", "value": CLEANUP}]).to_string();
        self.run.kubectl(
            &["patch", object.singular, object.name, "--type=json", "-p", &added],
            "",
        );
    }

    /// The cleanup is over; the other finalizers stay. Others may take one off meanwhile.
    pub(super) fn end_cleanup(&self, object: &Object) {
        assert!(self.finalizers(object).contains(CLEANUP), "it has begun");
        wait_for(&format!("the end of the cleanup of {object}"), || {
            let Ok(finalizers) = serde_json::from_str::<Vec<String>>(&self.finalizers(object)) else {
                return false;
            };
            let Some(at) = finalizers.iter().position(|finalizer| finalizer == CLEANUP) else {
                return true;
            };
            let path = format!("/metadata/finalizers/{at}");
            let tested = json!({"op": "test", "path": path, "value": CLEANUP});
            let ended = json!([tested, {"op": "remove", "path": path}]).to_string();
            let args = ["patch", object.singular, object.name, "--type=json", "-p", &ended];
            self.run.run_kubectl(&args, "").status.success()
        });
    }

    pub(super) fn finalizers(&self, object: &Object) -> String {
        self.of_object(object, "{.metadata.finalizers}")
    }

    pub(super) fn uid(&self, object: &Object) -> String {
        self.of_object(object, "{.metadata.uid}")
    }

    /// The phase of its deletion; nothing of an object that is gone.
    pub(super) fn phase(&self, object: &Object) -> String {
        let group = object.group().replace('.', "\\.");
        self.of_object(object, &format!("{{.metadata.annotations.{group}/deletion-phase}}"))
    }

    fn of_object(&self, object: &Object, path: &str) -> String {
        let path = format!("-o=jsonpath={path}");
        self.run
            .kubectl(&["get", object.singular, object.name, "--ignore-not-found", &path], "")
    }

    pub(super) fn until_phase(&self, object: &Object, phase: &str) {
        wait_for(&format!("{object} to be {phase}"), || self.phase(object) == phase);
    }

    /// The object as it was before it went.
    pub(super) fn last(&self, object: &Object) -> Last {
        let name = format!("{}/{}", object.singular, object.name);
        let text = self.run.get(&[&name, "--deleted", "-o", "json"]);
        Last(serde_json::from_str(&text).expect("JSON"))
    }

    /// When the log got the tombstone of the object.
    pub(super) fn erased_at(&self, object: &Object) -> Timestamp {
        let time = format!("SELECT erase_time FROM kindex_outbox WHERE name = '{}'", object.name);
        self.run.text(&time).parse().expect("a time")
    }

    /// What the events of a kind have of its object: `Exists`, `Deleting` or `Erased`.
    pub(super) fn event(&self, kind: &str) -> String {
        let output = Command::new(&self.program)
            .args(["events", kind, "--url", &self.url])
            .output();
        let text = text_of(&output.expect("kindex runs").stdout);
        text.split_whitespace().next().unwrap_or_default().to_owned()
    }

    /// Whether `kindex verify` finds every reference in its place, those on objects of another service too.
    pub(super) fn is_verified(&self, peer: &Self) -> bool {
        let service = format!("{}.example.com={}", peer.name, peer.url);
        let output = self.run.command(&["verify", "--settle", "0.2", "--service", &service]);
        output.status.success() && !text_of(&output.stdout).contains("there are not compared")
    }

    /// Whether an event of the cluster on the object says why its deletion waits, in these words.
    pub(super) fn is_blocked(&self, object: &Object, words: &str) -> bool {
        let events: Value =
            serde_json::from_str(&self.run.kubectl(&["get", "events", "-o", "json"], "")).expect("JSON");
        events["items"].as_array().expect("a list").iter().any(|event| {
            let message = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["name"] == object.name
                && event["reason"] == "DeletionBlocked"
                && message.contains(words)
        })
    }
}

/// An object that is gone.
pub(super) struct Last(Value);

impl Last {
    /// Its last version, in the order of all objects of its cluster.
    pub(super) fn version(&self) -> u64 {
        let version = self.0["metadata"]["resourceVersion"].as_str();
        version.expect("a version").parse().expect("a number")
    }

    /// Since when it had nothing left to do but to release what it refers to, if it does.
    pub(super) fn finalizing_since(&self, object: &Object) -> Option<Timestamp> {
        let annotations = &self.0["metadata"]["annotations"];
        if annotations[format!("{}/deletion-phase", object.group())] != "FINALIZING" {
            return None;
        }
        let since = annotations[format!("{}/deletion-since", object.group())].as_str();
        Some(since.expect("it is recorded with the phase").parse().expect("a time"))
    }
}

/// Where the API server of each will be.
fn places() -> [(&'static str, String); 3] {
    NAMES.map(|name| (name, format!("127.0.0.1:{}", ports::reserve())))
}

fn listen(address: &str) -> Vec<String> {
    ["--listen", address].map(str::to_owned).to_vec()
}

/// The flags that lead to those whose objects its own refer to, or that refer to its own.
fn beside(places: &[(&'static str, String)], at: usize) -> Vec<String> {
    let beside = places.iter().enumerate().filter(|(other, _)| other.abs_diff(at) == 1);
    let flags = beside.flat_map(|(_, (name, address))| ["--service".to_owned(), format!("{name}=http://{address}")]);
    flags.collect()
}
