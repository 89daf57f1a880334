//! The same project on a kube-apiserver whose garbage collector follows the owner references of the same objects, with
//! `kindex deletion` as a process that is killed in every state in which the deletion can stand still.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{Deletion, OBJECTS, assert_story, object, program, samples};
use crate::process::{Running, kubectl_is_there, wait_for};
use crate::site::Site;
use crate::workspace::walk_is_required;

/// The finalizer of somebody who cleans up after an object. The cluster has its machine.
const CLEANUP: &str = "example.com/cleanup";
/// Each owner with what it owns.
const OWNED: [(&str, &str); 4] = [
    ("project", "cloudidentity"),
    ("cloudidentity", "network"),
    ("cloudidentity", "servergroup"),
    ("network", "cluster"),
];

/// `kindex deletion`.
struct Process<'r> {
    run: &'r Running,
    kubeconfig: &'r Path,
    machines: &'r Path,
    child: Option<Child>,
}

impl Process<'_> {
    /// It works once the lease of the one that was killed is over.
    fn begin(&mut self) {
        let database = format!("sqlite:{}", self.run.data_dir().join("kindex.db").display());
        let child = Command::new(program())
            .args(["deletion", "--database", &database, "--blocked-after", "1"])
            .args(["--lease-seconds", "3", "--health-addr", "127.0.0.1:0", "--kubeconfig"])
            .arg(self.kubeconfig)
            .env("MACHINES", self.machines)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.expect("kindex starts"));
    }

    /// SIGKILL.
    fn kill(&mut self) {
        let mut child = self.child.take().expect("it was started");
        child.kill().expect("it runs");
        child.wait().expect("it was started");
    }

    fn kill_and_begin(&mut self) {
        self.kill();
        self.begin();
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// One deletion of the project.
struct Walk<'r> {
    deletion: Deletion<'r>,
    process: Process<'r>,
}

impl Walk<'_> {
    /// What kubectl shows of an object; nothing of one that is gone.
    fn get(&self, kind: &str, path: &str) -> String {
        let (_, name, _) = object(kind);
        let path = format!("-o=jsonpath={path}");
        self.deletion.kubectl(&["get", kind, name, "--ignore-not-found", &path])
    }

    fn patch(&self, kind: &str, form: &str, patch: &Value) {
        let (_, name, _) = object(kind);
        self.deletion
            .kubectl(&["patch", kind, name, form, "-p", &patch.to_string()]);
    }

    fn phase(&self, kind: &str) -> String {
        self.get(kind, r"{.metadata.annotations.platform\.example\.com/deletion-phase}")
    }

    fn until_phase(&self, kind: &str, phase: &str) {
        wait_for(&format!("{kind} to be {phase}"), || self.phase(kind) == phase);
    }

    fn until_gone(&self, kind: &str) {
        wait_for(&format!("the end of {kind}"), || {
            self.get(kind, "{.metadata.uid}").is_empty()
        });
    }

    /// The objects with owner references beside their fields, what a controller has made for the cluster, and somebody
    /// who is about to clean up after each of them, without whom nothing would stand still.
    fn prepare(&self) {
        self.deletion.run.kubectl(&["apply", "-f", "-"], &samples());
        self.deletion.every_target_is_held();
        for (owner, owned) in OWNED {
            let owners = json!({"metadata": {"ownerReferences": [self.owner(owner)]}});
            self.patch(owned, "--type=merge", &owners);
        }
        let settings = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "default", "ownerReferences": [self.owner("cluster")]},
        });
        let run = self.deletion.run;
        run.kubectl(&["create", "-f", "-"], &settings.to_string());
        for kind in ["project", "cloudidentity", "network", "servergroup"] {
            let begun = json!([{"op": "add", "path": "/metadata/finalizers/-", "value": CLEANUP}]);
            self.patch(kind, "--type=json", &begun);
        }
        fs::write(&self.deletion.machine, "runs").expect("writable");
    }

    fn owner(&self, kind: &str) -> Value {
        let (_, name, _) = object(kind);
        json!({
            "apiVersion": self.get(kind, "{.apiVersion}"),
            "kind": self.get(kind, "{.kind}"),
            "name": name,
            "uid": self.get(kind, "{.metadata.uid}"),
            "blockOwnerDeletion": true,
        })
    }

    /// The cleanup is over; the other finalizers stay. The garbage collector may take its own one off meanwhile.
    fn end_cleanup(&self, kind: &str) {
        let (_, name, _) = object(kind);
        wait_for(&format!("the end of the cleanup of {kind}"), || {
            let finalizers = self.get(kind, "{.metadata.finalizers}");
            let finalizers: Vec<String> = serde_json::from_str(&finalizers).expect("a list");
            let at = finalizers.iter().position(|finalizer| finalizer == CLEANUP);
            let path = format!("/metadata/finalizers/{}", at.expect("it has begun"));
            let tested = json!({"op": "test", "path": path, "value": CLEANUP});
            let ended = json!([tested, {"op": "remove", "path": path}]).to_string();
            let args = ["patch", kind, name, "--type=json", "-p", &ended];
            self.deletion.run.run_kubectl(&args, "").status.success()
        });
    }

    /// Nobody decides. The garbage collector deletes what is owned at once.
    fn the_collector_is_first(&mut self) {
        self.process.kill();
        let deleted = ["delete", "project", "a", "--cascade=foreground", "--wait=false"];
        self.deletion.kubectl(&deleted);
        for (kind, _, _) in OBJECTS {
            wait_for(&format!("the collector to delete {kind}"), || {
                !self.get(kind, "{.metadata.deletionTimestamp}").is_empty()
            });
            assert_eq!(self.phase(kind), "");
        }
        self.process.begin();
    }

    /// All that is held is DELETING, and the cluster has a machine.
    fn the_cluster_drains(&mut self) {
        self.until_phase("cluster", "DRAINING");
        for kind in ["project", "cloudidentity", "network", "servergroup"] {
            self.until_phase(kind, "DELETING");
        }
        self.process.kill();
        fs::write(&self.deletion.machine, "runs").expect("writable");
        self.process.begin();
        wait_for("the machine to be asked for again", || {
            fs::read(&self.deletion.machine).expect("it is there") == b"to be removed\n"
        });
        self.process.kill();
        fs::remove_file(&self.deletion.machine).expect("it is there");
        self.process.begin();
        self.until_gone("cluster");
    }

    /// DRAINING, one after the other.
    fn its_targets_drain(&mut self) {
        for kind in ["network", "servergroup"] {
            self.until_phase(kind, "DRAINING");
        }
        assert_eq!(self.phase("cloudidentity"), "DELETING");
        self.process.kill();
        self.end_cleanup("servergroup");
        self.process.begin();
        self.until_gone("servergroup");
        self.end_cleanup("network");
        self.process.kill_and_begin();
        self.until_gone("network");
    }

    fn the_others_drain(&mut self) {
        self.until_phase("cloudidentity", "DRAINING");
        assert_eq!(self.phase("project"), "DELETING");
        self.process.kill_and_begin();
        self.end_cleanup("cloudidentity");
        self.until_gone("cloudidentity");
        self.until_phase("project", "DRAINING");
        self.process.kill();
        self.end_cleanup("project");
        self.process.begin();
        self.until_gone("project");
    }

    /// All that happened to a kind until its object was gone.
    fn assert_order(&self, since: &str) {
        let story = OBJECTS.map(|(kind, _, _)| {
            let mut versions = Vec::new();
            wait_for(&format!("the watch of {kind} to be through"), || {
                versions = self.deletion.versions(kind, since);
                versions.iter().any(|version| version.is_gone)
            });
            (kind, versions)
        });
        assert_story(&BTreeMap::from(story));
    }
}

#[test]
fn a_process_that_is_killed_in_every_state_keeps_the_order_beside_the_garbage_collector() {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let site = Site::real().expect("the walk uses a control plane");
    let run = Running::start_binary_on(program(), &site);
    let machines = tempfile::tempdir().expect("a temporary directory");
    let mut process = Process {
        run: &run,
        kubeconfig: site.kubeconfig().expect("it is not an embedded cluster"),
        machines: machines.path(),
        child: None,
    };
    process.begin();
    let deletion = Deletion {
        run: &run,
        machine: machines.path().join("prod"),
        port: Vec::new(),
    };
    let mut walk = Walk { deletion, process };
    walk.prepare();
    let since = walk.deletion.version();
    walk.the_collector_is_first();
    walk.the_cluster_drains();
    walk.its_targets_drain();
    walk.the_others_drain();
    walk.assert_order(&since);
    wait_for("the garbage collector", || {
        let settings = ["get", "configmap", "settings", "--ignore-not-found", "-o=name"];
        run.kubectl(&settings, "").is_empty()
    });
}
