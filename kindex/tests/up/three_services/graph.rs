//! What the three services have: the objects of the samples of examples/deletion-graph with a second one of two kinds,
//! more of them for a deletion that takes a while, and some that are out of its reach.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

/// An object of one of the services. In all of them together, no two have the same name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) service: &'static str,
    kind: &'static str,
    pub(super) singular: &'static str,
    plural: &'static str,
    pub(super) name: &'static str,
}

const fn project(name: &'static str) -> Object {
    Object {
        service: "identity",
        kind: "Project",
        singular: "project",
        plural: "projects",
        name,
    }
}

const fn cloud_identity(name: &'static str) -> Object {
    Object {
        service: "region",
        kind: "CloudIdentity",
        singular: "cloudidentity",
        plural: "cloudidentities",
        name,
    }
}

const fn network(name: &'static str) -> Object {
    Object {
        service: "region",
        kind: "Network",
        singular: "network",
        plural: "networks",
        name,
    }
}

const fn server_group(name: &'static str) -> Object {
    Object {
        service: "region",
        kind: "ServerGroup",
        singular: "servergroup",
        plural: "servergroups",
        name,
    }
}

const fn cluster(name: &'static str) -> Object {
    Object {
        service: "compute",
        kind: "Cluster",
        singular: "cluster",
        plural: "clusters",
        name,
    }
}

pub(super) const PROJECT: Object = project("a");
/// Of no sample.
pub(super) const OTHER_PROJECT: Object = project("b");
/// Of no sample.
pub(super) const LEAVING_PROJECT: Object = project("c");
pub(super) const CLOUD_IDENTITY: Object = cloud_identity("openstack");
/// Of no sample, and named by nothing.
pub(super) const OTHER_CLOUD_IDENTITY: Object = cloud_identity("vsphere");
/// Of no sample: the other project has it.
pub(super) const CLOUD_IDENTITY_ELSEWHERE: Object = cloud_identity("azure");
pub(super) const NETWORK: Object = network("blue");
pub(super) const SERVER_GROUP: Object = server_group("apart");
pub(super) const CLUSTER: Object = cluster("prod");
/// Of no sample.
pub(super) const OTHER_CLUSTER: Object = cluster("dev");

/// Objects, each with its fields that name others of them.
pub(super) struct Graph(&'static [(Object, &'static [(&'static str, &'static str)])]);

/// What goes with the project.
pub(super) const SAMPLES: Graph = Graph(&[
    (PROJECT, &[]),
    (CLOUD_IDENTITY, &[("project", "a")]),
    (OTHER_CLOUD_IDENTITY, &[("project", "a")]),
    (NETWORK, &[("cloudIdentity", "openstack")]),
    (SERVER_GROUP, &[("cloudIdentity", "openstack")]),
    (CLUSTER, &[("network", "blue"), ("serverGroup", "apart")]),
    (OTHER_CLUSTER, &[("network", "blue"), ("serverGroup", "apart")]),
]);

/// The same with more of each.
pub(super) const MANY: Graph = Graph(&[
    (PROJECT, &[]),
    (CLOUD_IDENTITY, &[("project", "a")]),
    (OTHER_CLOUD_IDENTITY, &[("project", "a")]),
    (network("net-1"), &[("cloudIdentity", "openstack")]),
    (network("net-2"), &[("cloudIdentity", "openstack")]),
    (network("net-3"), &[("cloudIdentity", "vsphere")]),
    (server_group("group-1"), &[("cloudIdentity", "openstack")]),
    (server_group("group-2"), &[("cloudIdentity", "vsphere")]),
    (server_group("group-3"), &[("cloudIdentity", "vsphere")]),
    (CLEANED_UP, &[("network", "net-1"), ("serverGroup", "group-1")]),
    (cluster("c-2"), &[("network", "net-1"), ("serverGroup", "group-2")]),
    (cluster("c-3"), &[("network", "net-2"), ("serverGroup", "group-1")]),
    (cluster("c-4"), &[("network", "net-2"), ("serverGroup", "group-3")]),
    (cluster("c-5"), &[("network", "net-3"), ("serverGroup", "group-2")]),
    (cluster("c-6"), &[("network", "net-3"), ("serverGroup", "group-3")]),
]);

/// One of them that somebody cleans up after.
pub(super) const CLEANED_UP: Object = cluster("c-1");

/// What another project has.
pub(super) const OUT_OF_REACH: Graph = Graph(&[
    (OTHER_PROJECT, &[]),
    (CLOUD_IDENTITY_ELSEWHERE, &[("project", "b")]),
    (network("green"), &[("cloudIdentity", "azure")]),
    (server_group("together"), &[("cloudIdentity", "azure")]),
    (cluster("stage"), &[("network", "green"), ("serverGroup", "together")]),
]);

/// Two projects with their cloud identities.
pub(super) const PROJECTS: Graph = Graph(&[
    (PROJECT, &[]),
    (CLOUD_IDENTITY, &[("project", "a")]),
    (OTHER_CLOUD_IDENTITY, &[("project", "a")]),
    (OTHER_PROJECT, &[]),
    (CLOUD_IDENTITY_ELSEWHERE, &[("project", "b")]),
]);

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.singular, self.name)
    }
}

impl Object {
    pub(super) fn group(&self) -> String {
        format!("{}.example.com", self.service)
    }

    /// Of its events.
    pub(super) fn topic(&self) -> String {
        format!("{}.{}", self.plural, self.group())
    }

    /// As another object names its owner, which waits for what it owns if it is deleted in the foreground.
    pub(super) fn as_owner(&self, uid: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group()),
            "kind": self.kind,
            "name": self.name,
            "uid": uid,
            "blockOwnerDeletion": true,
        })
    }
}

impl Graph {
    pub(super) fn objects(&self) -> impl Iterator<Item = &'static Object> + use<> {
        self.0.iter().map(|(object, _)| object)
    }

    /// Each holder with a target.
    pub(super) fn references(&self) -> impl Iterator<Item = (&'static Object, &'static Object)> + use<> {
        let all = self.0;
        all.iter().flat_map(move |(holder, fields)| {
            fields.iter().map(move |(_, name)| {
                let target = all.iter().find(|(target, _)| target.name == *name);
                (holder, &target.expect("one of the graph").0)
            })
        })
    }

    /// The kinds with events.
    pub(super) fn topics(&self) -> BTreeSet<(String, &'static str)> {
        let topics = self.objects().map(|object| (object.topic(), object.service));
        topics.collect()
    }

    /// The objects of a service, for kubectl.
    pub(super) fn manifest(&self, service: &str) -> String {
        let own = self.0.iter().filter(|(object, _)| object.service == service);
        let items = own.map(|(object, fields)| {
            let spec = fields.iter().map(|(field, name)| ((*field).to_owned(), json!(name)));
            json!({
                "apiVersion": format!("{}/v1", object.group()),
                "kind": object.kind,
                "metadata": {"name": object.name, "namespace": "default"},
                "spec": spec.collect::<Map<_, _>>(),
            })
        });
        json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()}).to_string()
    }
}
