//! `kindex events` as it is typed, against a server that is killed and comes back.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use kindex_harness::ports;
use serde_json::Value;

use super::process::{KINDEX, Running, kubectl_is_there, wait_for};

pub(crate) fn create(run: &Running, name: &str) {
    let metadata = format!("{{name: {name}, namespace: default}}");
    let project = format!("{{apiVersion: michelangelo.api/v2, kind: Project, metadata: {metadata}, spec: {{}}}}");
    run.kubectl(&["create", "-f", "-"], &project);
}

pub(crate) fn delete(run: &Running, name: &str) {
    run.kubectl(&["delete", "project", name], "");
}

/// `kindex events` with these flags, until it ends by itself.
pub(crate) fn events(args: &[&str]) -> Output {
    let events = Command::new(KINDEX).arg("events").args(args).output();
    events.expect("kindex runs")
}

/// What was printed of each object, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<Value>>>);

impl Printed {
    pub(crate) fn has(&self, name: &str, erased: bool) -> bool {
        let lines = self.0.lock().expect("nobody panics with it");
        let mut lines = lines.iter().filter(|line| line["name"] == name);
        lines.any(|line| (line["erased"] == true) == erased)
    }

    /// Whether it was printed with the time of its deletion.
    pub(crate) fn is_deleted(&self, name: &str) -> bool {
        let lines = self.0.lock().expect("nobody panics with it");
        let mut lines = lines.iter().filter(|line| line["name"] == name);
        lines.any(|line| !line["deletionTimestamp"].is_null())
    }

    pub(crate) fn last_position(&self) -> String {
        let lines = self.0.lock().expect("nobody panics with it");
        let last = lines.last().expect("something was printed");
        last["position"].as_str().expect("a position").to_owned()
    }

    /// All that was printed of an object.
    pub(crate) fn of(&self, name: &str) -> Vec<Value> {
        let lines = self.0.lock().expect("nobody panics with it");
        lines.iter().filter(|line| line["name"] == name).cloned().collect()
    }
}

/// `kindex events --follow`, in a process of its own.
pub(crate) struct Follower {
    process: Child,
    pub(crate) printed: Printed,
}

impl Follower {
    /// Of projects.
    pub(crate) fn begin(args: &[&str]) -> Self {
        Self::begin_with("project", args, Printed::default())
    }

    /// Of any kind, beside others whose objects are printed with its own.
    pub(crate) fn begin_with(kind: &str, args: &[&str], printed: Printed) -> Self {
        let mut process = Command::new(KINDEX)
            .args(["events", kind, "--follow", "-o", "json"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kindex runs");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let seen = printed.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("each line is JSON");
                seen.0.lock().expect("nobody panics with it").push(event);
            }
        });
        Self { process, printed }
    }

    pub(crate) fn sees(&self, name: &str, erased: bool) {
        wait_for(&format!("{name}, erased: {erased}"), || self.printed.has(name, erased));
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

#[test]
fn a_follower_outlives_its_server_and_lacks_no_tombstone() {
    if !kubectl_is_there() {
        return;
    }
    let listen = format!("127.0.0.1:{}", ports::reserve());
    let url = format!("http://{listen}");
    let mut run = Running::start(&["--listen", &listen]);
    create(&run, "before");
    let follower = Follower::begin(&["--url", &url]);
    follower.sees("before", false);
    for round in ["first", "second"] {
        let name = format!("goes-{round}");
        create(&run, &name);
        follower.sees(&name, false);
        let last = format!("last-{round}");
        create(&run, &last);
        // What is told of these may or may not have been sent.
        delete(&run, &name);
        run.kill();
        run.restart();
        follower.sees(&name, true);
        delete(&run, &last);
        follower.sees(&last, true);
    }
    assert!(!follower.printed.has("before", true));
}
