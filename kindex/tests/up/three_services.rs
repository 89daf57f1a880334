//! The services of examples/deletion-graph as three processes, each with a cluster and a database of its own. Between
//! any two steps of a deletion one of them is killed. They hear of each other from their APIs, by events or by
//! lists and watches, or over NATS. Takes
//! minutes to build, and runs where `KINDEX_REQUIRE` names `walk`.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use kindex_harness::nats::Nats;
use kindex_harness::require::require;

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;
use super::workspace::{Example, checkout, walk_is_required};

const MACHINES: &str = "example.com/machines";

/// The program of a service, built once for all tests.
fn program(name: &str) -> PathBuf {
    static BUILT: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());
    let mut built = BUILT.lock().expect("no build panicked");
    if let Some((_, program)) = built.iter().find(|(of, _)| of == name) {
        return program.clone();
    }
    let example = Example::copy(&format!("deletion-graph/{name}"), &["crds.toml"]);
    let program = example.build(&format!("{name}-kindex")).expect("builds");
    built.push((name.to_owned(), program.clone()));
    program
}

/// One of the three.
struct Service {
    name: &'static str,
    program: PathBuf,
    url: String,
    flags: Vec<String>,
    run: Running,
}

impl Service {
    /// With the events of `peer` by a transport. All of them feed the NATS server if there is one.
    fn start(name: &'static str, peer: Option<&Self>, events: &str, nats: Option<&str>) -> Self {
        let program = program(name);
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let mut flags = vec!["--listen".to_owned(), address.clone()];
        if let Some(peer) = peer {
            let service = format!("{}={}", peer.name, peer.url);
            flags.extend(["--blocked-after", "1", "--service", &service].map(str::to_owned));
            flags.extend(["--service-events", events].map(str::to_owned));
        }
        if let Some(nats) = nats {
            flags.extend(["--nats", nats].map(str::to_owned));
        }
        let words: Vec<_> = flags.iter().map(String::as_str).collect();
        let run = Running::start_binary(&program, &words);
        Self {
            name,
            program,
            url: format!("http://{address}"),
            flags,
            run,
        }
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.run.kill();
    }

    fn restart(&mut self) {
        let words: Vec<_> = self.flags.iter().map(String::as_str).collect();
        self.run.restart_with(&words);
    }

    /// Applies the samples that are of this service.
    fn apply(&self) {
        let samples = checkout().join("examples/deletion-graph/platform/samples.yaml");
        let samples = std::fs::read_to_string(samples).expect("in the checkout");
        let group = format!("apiVersion: {}.example.com/", self.name);
        let own = samples.split("---\n").filter(|sample| sample.starts_with(&group));
        self.run
            .kubectl(&["apply", "-f", "-"], &own.collect::<Vec<_>>().join("---\n"));
    }

    fn finalizers(&self, kind: &str, name: &str) -> String {
        let path = "-o=jsonpath={.metadata.finalizers}";
        self.run.kubectl(&["get", kind, name, "--ignore-not-found", path], "")
    }

    fn phase(&self, kind: &str, name: &str) -> String {
        let group = format!("{}.example.com", self.name).replace('.', "\\.");
        let path = format!("-o=jsonpath={{.metadata.annotations.{group}/deletion-phase}}");
        self.run.kubectl(&["get", kind, name, "--ignore-not-found", &path], "")
    }

    /// What the events of a kind have of its object: `Exists`, `Deleting` or `Erased`.
    fn event(&self, kind: &str) -> String {
        let output = Command::new(&self.program)
            .args(["events", kind, "--url", &self.url])
            .output();
        let text = text_of(&output.expect("kindex runs").stdout);
        text.split_whitespace().next().unwrap_or_default().to_owned()
    }

    /// Whether `kindex verify` finds every reference in its place, those on objects of another service too.
    fn is_verified(&self, peer: &Self) -> bool {
        let service = format!("{}.example.com={}", peer.name, peer.url);
        let output = self.run.command(&["verify", "--settle", "0.2", "--service", &service]);
        output.status.success() && !text_of(&output.stdout).contains("is not compared")
    }

    fn said(&self, reason: &str) -> String {
        let path = format!("-o=jsonpath={{.items[?(@.reason==\"{reason}\")].message}}");
        self.run.kubectl(&["get", "events", &path], "")
    }
}

fn until(what: &str, service: &Service, kind: &str, event: &str) {
    wait_for(what, || service.event(kind) == event);
}

/// The objects of the samples, each with the references of those that name it; the cluster waits for its machines.
fn everything_is_held(identity: &Service, region: &Service, compute: &Service) {
    for service in [identity, region, compute] {
        service.apply();
    }
    wait_for("every target to be held", || {
        let is_held = |kind, name, holder| region.finalizers(kind, name).contains(holder);
        identity
            .finalizers("project", "a")
            .contains("cloudidentity.region.example.com/")
            && is_held("cloudidentity", "openstack", "network.region.example.com/")
            && is_held("cloudidentity", "openstack", "servergroup.region.example.com/")
            && is_held("network", "blue", "cluster.compute.example.com/")
            && is_held("servergroup", "apart", "cluster.compute.example.com/")
    });
    let held = format!(r#"[{{"op":"add","path":"/metadata/finalizers/-","value":"{MACHINES}"}}]"#);
    compute
        .run
        .kubectl(&["patch", "cluster", "prod", "--type=json", "-p", &held], "");
}

#[test]
fn a_project_of_three_services_goes_in_order_whichever_of_them_is_killed_between_two_steps() {
    walk("api");
}

#[test]
fn it_does_so_too_where_services_hear_of_each_other_by_lists_and_watches() {
    walk("watch");
}

#[test]
fn it_does_so_too_where_services_hear_of_each_other_over_nats() {
    walk("nats");
}

/// Archived clusters that name objects of the region: one is deleted and releases them, the other goes with the
/// network.
#[test]
fn what_is_archived_goes_with_the_target_of_another_service() {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let identity = Service::start("identity", None, "api", None);
    let region = Service::start("region", Some(&identity), "api", None);
    let mut compute = Service::start("compute", Some(&region), "api", None);
    for service in [&identity, &region, &compute] {
        service.apply();
    }
    let second = "{apiVersion: compute.example.com/v1, kind: Cluster, metadata: {name: second, namespace: default}, \
                  spec: {network: blue, serverGroup: apart}}";
    compute.run.kubectl(&["apply", "-f", "-"], second);
    let uid = |name: &str| {
        compute
            .run
            .kubectl(&["get", "cluster", name, "-o=jsonpath={.metadata.uid}"], "")
    };
    let references = ["prod", "second"].map(|name| format!("cluster.compute.example.com/{}", uid(name)));
    let [prod, second] = &references;
    let bears = |kind, name, reference: &str| region.finalizers(kind, name).contains(reference);
    wait_for("the references", || {
        let all = |reference: &String| bears("network", "blue", reference) && bears("servergroup", "apart", reference);
        references.iter().all(all)
    });
    let immutable = "compute.example.com/immutable=true";
    compute.run.kubectl(&["annotate", "clusters", "--all", immutable], "");
    wait_for("the archive", || {
        compute.run.kubectl(&["get", "clusters", "-o=name"], "").is_empty()
    });
    let all = compute.run.get(&["clusters"]);
    assert!(all.contains("prod") && all.contains("second"), "{all}");

    compute
        .run
        .kubectl(&["--server", &compute.url, "delete", "cluster", "second"], "");
    wait_for("its references to be released", || {
        !bears("network", "blue", second) && !bears("servergroup", "apart", second)
    });
    assert!(bears("network", "blue", prod) && bears("servergroup", "apart", prod));

    // The compute service learns of the deletion once it is back.
    compute.kill();
    region.run.kubectl(&["delete", "network", "blue", "--wait=false"], "");
    until("the network to wait", &region, "network", "Deleting");
    compute.restart();
    until("the archived cluster to go", &compute, "cluster", "Erased");
    until("the network to go", &region, "network", "Erased");
    assert!(!bears("servergroup", "apart", prod), "it holds nothing any more");
}

fn walk(events: &str) {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let nats = (events == "nats").then(|| {
        assert!(require("nats", Nats::installed()), "the walk uses NATS");
        Nats::start()
    });
    a_project_goes_in_order(events, nats);
}

fn a_project_goes_in_order(events: &str, mut nats: Option<Nats>) {
    let address = nats.as_ref().map(Nats::address);
    let address = address.as_deref();
    let mut identity = Service::start("identity", None, events, address);
    let mut region = Service::start("region", Some(&identity), events, address);
    let mut compute = Service::start("compute", Some(&region), events, address);
    everything_is_held(&identity, &region, &compute);
    wait_for("every reference to be verified", || {
        region.is_verified(&identity) && compute.is_verified(&region)
    });
    // The region learns of the deletion once it is back.
    region.kill();
    identity.run.kubectl(&["delete", "project", "a", "--wait=false"], "");
    until("the project to go", &identity, "project", "Deleting");
    assert_eq!(compute.event("cluster"), "Exists");
    compute.kill();
    region.restart();
    for kind in ["cloudidentity", "network", "servergroup"] {
        until("the region to follow", &region, kind, "Deleting");
    }
    compute.restart();
    wait_for("the cluster to drain", || {
        compute.phase("cluster", "prod") == "DRAINING"
    });
    assert_eq!(region.phase("network", "blue"), "DELETING");

    // Killed while it drains, and alone once it is back.
    compute.kill();
    region.kill();
    identity.kill();
    if let Some(nats) = &mut nats {
        nats.kill();
    }
    compute.restart();
    let own = ["compute.example.com/deletion", "compute.example.com/kindex"];
    let left = serde_json::json!({"metadata": {"finalizers": own}}).to_string();
    compute
        .run
        .kubectl(&["patch", "cluster", "prod", "--type=merge", "-p", &left], "");
    wait_for("people to be told", || {
        compute.said("DeletionBlocked").contains("network.region.example.com")
    });
    assert_eq!(compute.event("cluster"), "Deleting");

    // The cluster goes, then what is of the region but its last object: that one waits for identity.
    if let Some(nats) = &mut nats {
        nats.resume();
    }
    region.restart();
    until("the cluster to go", &compute, "cluster", "Erased");
    for kind in ["network", "servergroup"] {
        until("the region to follow", &region, kind, "Erased");
    }
    wait_for("people to be told", || {
        region
            .said("DeletionBlocked")
            .contains("all objects of project.identity.example.com are known")
    });
    assert_eq!(region.event("cloudidentity"), "Deleting");
    identity.restart();
    until("the cloud identity to go", &region, "cloudidentity", "Erased");
    until("the project to go", &identity, "project", "Erased");
}
