//! `kindex events` as it is typed, against a server that is killed and comes back, or that cannot be reached at first.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use kindex_harness::ports;
use kindex_harness::proxy::{Mode, Proxy};
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
    /// What it says on stderr.
    notes: Arc<Mutex<Vec<String>>>,
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
            .stderr(Stdio::piped())
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
        let said = BufReader::new(process.stderr.take().expect("piped")).lines();
        let notes = Arc::new(Mutex::new(Vec::new()));
        let kept = notes.clone();
        std::thread::spawn(move || {
            for line in said.map_while(Result::ok) {
                kept.lock().expect("nobody panics with it").push(line);
            }
        });
        Self {
            process,
            printed,
            notes,
        }
    }

    /// Waits until it says so on stderr.
    fn says(&self, words: &str) {
        wait_for(words, || {
            let notes = self.notes.lock().expect("nobody panics with it");
            notes.iter().any(|line| line.contains(words))
        });
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

#[test]
fn a_follower_from_a_position_outlasts_a_server_that_is_away_at_first_and_lacks_no_tombstone() {
    if !kubectl_is_there() {
        return;
    }
    let port = ports::reserve();
    let listen = format!("127.0.0.1:{port}");
    let run = Running::start(&["--listen", &listen]);
    let before = Follower::begin(&["--url", &format!("http://{listen}")]);
    for name in ["goes-first", "goes-second", "stays"] {
        create(&run, name);
        before.sees(name, false);
    }
    let position = before.printed.last_position();
    drop(before);
    let proxy = Proxy::start(port);
    let url = format!("http://127.0.0.1:{}", proxy.port);
    for (mode, name) in [(Mode::Reset, "goes-first"), (Mode::Refuse, "goes-second")] {
        proxy.set(mode);
        // Whoever begins may have mistyped the address.
        let begun = events(&["project", "--follow", "--url", &url]);
        let said = String::from_utf8_lossy(&begun.stderr).into_owned();
        assert_eq!(begun.status.code(), Some(1), "{mode:?}: {said}");
        assert!(said.contains("does the API server run at"), "{mode:?}: {said}");
        let follower = Follower::begin(&["--url", &url, "--from", &position]);
        follower.says("there is no subscription yet");
        delete(&run, name);
        proxy.set(Mode::Pass);
        follower.sees(name, true);
        assert!(!follower.printed.has("stays", true), "{mode:?}");
    }
}
