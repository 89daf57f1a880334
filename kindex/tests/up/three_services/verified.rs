//! `kindex verify` of the compute service about references at the region, on objects in its cluster and in its archive.

use std::process::Output;

use serde_json::{Value, json};

use super::can_run;
use super::graph::CLUSTER;
use super::service::Service;
use crate::process::wait_for;
use crate::text_of;

/// A cluster that is not there.
const GONE: &str = "cluster.compute.example.com/00000000-f1cc-4f3b-b1c0-232ae8d852ce";
/// Stays in the cluster.
const SECOND: &str = "
apiVersion: compute.example.com/v1
kind: Cluster
metadata: {name: second, namespace: default}
spec: {network: blue, serverGroup: apart}
";
/// Named by no cluster.
const GREEN: &str = "
apiVersion: region.example.com/v1
kind: Network
metadata: {name: green, namespace: default}
spec: {cloudIdentity: openstack}
";

fn verify(compute: &Service, url: &str, flags: &[&str]) -> Output {
    let service = format!("region.example.com={url}");
    let words = ["verify", "--settle", "0.2", "--service", &service];
    compute.run.command(&[&words[..], flags].concat())
}

/// Kind, name and class of all that differs, in order.
fn differing(compute: &Service, url: &str) -> Vec<[String; 3]> {
    let output = verify(compute, url, &["-o", "json"]);
    let text = text_of(&output.stdout);
    let found: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let differences = found["references"]["differences"].as_array().expect("differences");
    assert_eq!(output.status.success(), differences.is_empty(), "{text}");
    let differences = differences.iter().map(|one| {
        assert_eq!(one["service"], json!("region.example.com"), "{one}");
        ["kind", "name", "class"].map(|field| one[field].as_str().expect("text").to_owned())
    });
    differences.collect()
}

fn place(region: &Service, plural: &str, name: &str, reference: &str) {
    let path = format!("/api/v1/{plural}.region.example.com/default/{name}/references/{reference}");
    let put = ["--server", &region.url, "replace", "--raw", &path, "-f", "-"];
    region.run.kubectl(&put, "{}");
}

/// As an operator of the region does it.
fn release(region: &Service, object: &str, reference: &str) {
    let words = ["references", "drop", object, reference, "--force", "--reason", "a test"];
    let output = region.run.command(&words);
    assert!(output.status.success(), "{}", text_of(&output.stderr));
}

#[test]
fn what_an_archived_cluster_lacks_at_the_region_and_what_was_left_behind_there_is_found() {
    if !can_run() {
        return;
    }
    let services = Service::start_all("api", None);
    services.iter().for_each(Service::apply);
    let [_, region, compute] = &services;
    compute.run.kubectl(&["apply", "-f", "-"], SECOND);
    region.run.kubectl(&["apply", "-f", "-"], GREEN);
    let prod = format!("cluster.compute.example.com/{}", compute.uid(&CLUSTER));
    wait_for("every reference", || compute.is_verified(region));
    let immutable = "compute.example.com/immutable=true";
    compute.run.kubectl(&["annotate", "cluster", "prod", immutable], "");
    wait_for("the archive of clusters", || {
        !compute
            .run
            .kubectl(&["get", "clusters", "-o=name"], "")
            .contains("prod")
    });
    assert_eq!(differing(compute, &region.url), Vec::<[String; 3]>::new());

    release(region, "network/blue", &prod);
    place(region, "networks", "green", &prod);
    place(region, "servergroups", "apart", GONE);
    // The reference on it is a row from then on.
    let immutable = "region.example.com/immutable=true";
    region.run.kubectl(&["annotate", "network", "green", immutable], "");
    wait_for("the archive of networks", || {
        !region
            .run
            .kubectl(&["get", "networks", "-o=name"], "")
            .contains("green")
    });
    let found = [
        ["Network", "blue", "reference-missing"],
        ["Network", "green", "holder-elsewhere"],
        ["ServerGroup", "apart", "holder-missing"],
    ];
    assert_eq!(differing(compute, &region.url), found.map(|row| row.map(str::to_owned)));
    let table = text_of(&verify(compute, &region.url, &[]).stdout);
    for shown in [
        "Network.region.example.com",
        "kindex references drop",
        "archived cluster default/prod",
    ] {
        assert!(table.contains(shown), "{shown}: {table}");
    }

    let nobody = verify(compute, "http://127.0.0.1:1", &[]);
    let said = text_of(&nobody.stdout);
    assert!(nobody.status.success(), "{said}");
    assert!(said.contains("references there are not compared"), "{said}");

    release(region, "network/green", &prod);
    release(region, "servergroup/apart", GONE);
    place(region, "networks", "blue", &prod);
    assert_eq!(differing(compute, &region.url), Vec::<[String; 3]>::new());
}
