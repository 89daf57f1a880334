//! Events by way of a real NATS server, as they are typed: `kindex up --nats` feeds it, `kindex events --nats` follows.
//! What is killed in between loses nothing.

use std::path::Path;
use std::process::Command;

use kindex_harness::nats::Nats;
use kindex_harness::require::require;
use kindex_harness::scrape::Scrape;
use serde_json::Value;

use super::deletion::Deletion;
use super::events::{Follower, create, delete, events};
use super::process::{KINDEX, Running, kubectl_is_there, wait_for};
use super::site::Site;
use super::text_of;

const TOPIC: &str = "projects.michelangelo.api";

fn nats_is_there() -> bool {
    kubectl_is_there() && require("nats", Nats::installed())
}

/// Until the stream is there for who comes new.
fn fed(address: &str) {
    wait_for("the stream", || {
        events(&["project", "--nats", address]).status.success()
    });
}

/// Until nobody but the test changes so many projects, and SQL has them as they are.
fn until_settled(run: &Running, projects: usize) {
    let path = "jsonpath={.items[*].metadata.finalizers}";
    wait_for("all finalizers", || {
        let finalizers = run.kubectl(&["get", "projects", "-o", path], "");
        let mut expected = Site::Embedded.finalizers().iter();
        expected.all(|finalizer| finalizers.matches(finalizer).count() == projects)
    });
    let waited = run.command(&["status", "--wait", "--timeout", "240", "--kind", "projects"]);
    assert!(waited.status.success(), "{}", text_of(&waited.stderr));
}

fn metric(run: &Running, name: &str) -> f64 {
    Scrape::parse(&run.request("/metrics").1).sum(name)
}

#[test]
fn what_is_killed_between_sql_and_a_follower_loses_no_event() {
    if !nats_is_there() {
        return;
    }
    let mut server = Nats::start();
    let address = server.address();
    let flags = ["--nats", &address, "--nats-partitions", "4"];
    let mut run = Running::start(&flags);
    create(&run, "first");
    fed(&address);
    let follower = Follower::begin(&["--nats", &address]);
    follower.sees("first", false);
    delete(&run, "first");
    follower.sees("first", true);

    // The feeder is killed, and the cluster with it.
    run.kill();
    run.restart();
    create(&run, "second");
    follower.sees("second", false);

    // The server is away while an object goes, which nothing holds up.
    server.kill();
    delete(&run, "second");
    wait_for("the row", || run.get(&["projects", "--deleted"]).contains("second"));
    wait_for("the outage in the health", || {
        run.request("/readyz").1.contains("no events reach NATS")
    });
    wait_for("the lag", || metric(&run, "kindex_nats_lag_seconds") >= 1.0);
    assert!(metric(&run, "kindex_nats_failures_total") >= 1.0);
    server.resume();
    follower.sees("second", true);
    wait_for("the health", || run.request("/readyz").0 == 200);

    // The server comes back without its disk: the stream is made anew without any change.
    server.kill();
    server.lose_disk();
    server.resume();
    let replayed = || text_of(&events(&["project", "--nats", &address]).stdout);
    wait_for("the tombstones again", || {
        let shown = replayed();
        ["first", "second"].iter().all(|name| {
            shown
                .lines()
                .any(|line| line.starts_with("Erased") && line.contains(name))
        })
    });
    create(&run, "third");
    follower.sees("third", false);
    delete(&run, "third");
    follower.sees("third", true);
    assert!(metric(&run, "kindex_nats_published_total") >= 4.0);
}

#[test]
fn a_follower_goes_on_from_its_position_and_reads_the_partitions_it_wants() {
    if !nats_is_there() {
        return;
    }
    let server = Nats::start();
    let address = server.address();
    let run = Running::start(&["--nats", &address, "--nats-partitions", "2"]);
    for name in ["one", "two", "three", "four", "five", "six"] {
        create(&run, name);
    }
    fed(&address);
    until_settled(&run, 6);
    let follower = Follower::begin(&["--nats", &address]);
    for name in ["one", "two", "three", "four", "five", "six"] {
        follower.sees(name, false);
    }
    let position = follower.printed.last_position();
    drop(follower);
    delete(&run, "one");
    create(&run, "seven");
    let resumed = Follower::begin(&["--nats", &address, "--from", &position]);
    resumed.sees("one", true);
    resumed.sees("seven", false);
    assert!(!resumed.printed.has("two", false), "it was seen before the position");

    let part = |numbers: &str| {
        let output = events(&["project", "--nats", &address, "--partitions", numbers]);
        text_of(&output.stdout).lines().count()
    };
    wait_for("both halves", || {
        part("0") + part("1") == part("0-1") && part("0-1") == 7
    });

    // With more partitions, what exists of these follows, and nothing of the others.
    let number = if part("0") > 0 { "0" } else { "1" };
    let half = text_of(&events(&["project", "--nats", &address, "--partitions", number, "-o", "json"]).stdout);
    let last = half.lines().next_back().expect("an event in this half");
    let last: Value = serde_json::from_str(last).expect("each line is JSON");
    let reached = last["position"].as_str().expect("a position");
    let both = ["project", "--nats", &address, "--partitions", "0-1", "--from", reached];
    let rest = text_of(&events(&both).stdout);
    assert_eq!(half.lines().count() + rest.lines().count(), 7, "{rest}");
    let of_api = events(&[
        "project",
        "--url",
        &format!("http://{}", run.api().expect("it serves")),
        "--from",
        &position,
    ]);
    assert_eq!(of_api.status.code(), Some(2), "{}", text_of(&of_api.stderr));
}

#[test]
fn an_archived_object_exists_for_who_follows_until_it_is_deleted() {
    if !nats_is_there() {
        return;
    }
    let server = Nats::start();
    let address = server.address();
    let run = Running::start(&["--nats", &address]);
    create(&run, "kept");
    fed(&address);
    let follower = Follower::begin(&["--nats", &address]);
    follower.sees("kept", false);
    run.kubectl(&["annotate", "project", "kept", "michelangelo/Immutable=true"], "");
    wait_for("the archive", || {
        let left = run.kubectl(&["get", "project", "kept", "--ignore-not-found", "-o", "name"], "");
        left.is_empty()
    });
    create(&run, "later");
    follower.sees("later", false);
    assert!(!follower.printed.is_deleted("kept"), "an eviction is not a deletion");
    let replayed = text_of(&events(&["project", "--nats", &address]).stdout);
    let exists = |line: &str| line.starts_with("Exists") && line.contains("default/kept");
    assert!(replayed.lines().any(exists), "{replayed}");

    let api = format!("http://{}", run.api().expect("it says where"));
    run.kubectl(&["--server", &api, "delete", "project", "kept", "--wait=false"], "");
    follower.sees("kept", true);
}

/// What a command says that ends with an error of the command line.
fn refused(args: &[&str]) -> String {
    let output = Command::new(KINDEX).args(args).output().expect("kindex runs");
    let said = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    said
}

#[test]
fn a_server_that_will_never_take_events_is_refused_at_once() {
    if !nats_is_there() {
        return;
    }
    let without = refused(&["deletion", "--nats", "nats://127.0.0.1:1"]);
    assert!(without.contains("there is no database"), "{without}");

    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().display().to_string();
    let database = format!("sqlite:{data}/kindex.db");
    std::fs::write(directory.path().join("kindex.db"), "").expect("writable");
    let deletion = |nats: &str| refused(&["deletion", "--database", &database, "--nats", nats]);
    let address = deletion("nats://ada:secret@");
    assert!(address.contains("is not the address of a NATS server"), "{address}");
    assert!(!address.contains("secret"), "{address}");

    let memory = Nats::start_with(&["--user", "ada", "--pass", "right"], false);
    let said = deletion(&memory.address());
    assert!(said.contains("refuses the connection"), "{said}");
    let credentials = memory.address().replace("nats://", "nats://ada:right@");
    let said = deletion(&credentials);
    assert!(said.contains("has no JetStream"), "{said}");
    let said = refused(&["events", "project", "--nats", &credentials]);
    assert!(said.contains("has no JetStream"), "{said}");

    let nobody = events(&["project", "--nats", "nats://127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(text_of(&nobody.stderr).contains("no NATS server answers"));

    let server = Nats::start_with(&["--auth", "t0ken"], true);
    let token = directory.path().join("token");
    std::fs::write(&token, "t0ken\n").expect("writable");
    let token = token.display().to_string();
    let unfed = events(&["project", "--nats", &server.address(), "--nats-token-file", &token]);
    let said = text_of(&unfed.stderr);
    assert!(
        said.contains(TOPIC) && said.contains("kindex deletion --nats"),
        "{said}"
    );
    std::fs::write(directory.path().join("token"), "wrong").expect("writable");
    let said = refused(&[
        "events",
        "project",
        "--nats",
        &server.address(),
        "--nats-token-file",
        &token,
    ]);
    assert!(said.contains("refuses the connection"), "{said}");
}

#[test]
fn the_process_with_the_lease_feeds_and_another_one_follows_it() {
    if !nats_is_there() {
        return;
    }
    let server = Nats::start();
    let address = server.address();
    let run = Running::start(&[]);
    create(&run, "first");
    wait_for("the row", || run.get(&["projects", "-n", "default"]).contains("first"));
    let kubeconfig = run.data_dir().join("kubeconfig");
    let begin = |name: &str| {
        let flags = ["--nats", &address, "--replica-name", name].map(str::to_owned);
        Deletion::start(Path::new(KINDEX), &run, &kubeconfig, flags.to_vec())
    };
    let mut processes = vec![begin("one"), begin("two")];
    fed(&address);
    let follower = Follower::begin(&["--nats", &address]);
    follower.sees("first", false);
    // Each is taken for itself.
    wait_for("both leases", || {
        let leases = run.kubectl(&["get", "leases", "-A", "-o", "name"], "");
        leases.contains("kindex-nats-feeder") && leases.contains("kindex-deletion")
    });
    for (round, killed) in [("second", 1), ("third", 0)] {
        processes[killed].kill();
        if killed == 0 {
            processes.push(begin("three"));
        }
        create(&run, round);
        follower.sees(round, false);
        delete(&run, round);
        follower.sees(round, true);
    }
}
