//! The objects of the samples of examples/deletion-graph, with a second one of two kinds, and which of them name which.

use std::fmt;

/// An object of one of the services.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) service: &'static str,
    pub(super) kind: &'static str,
    plural: &'static str,
    pub(super) name: &'static str,
}

pub(super) const PROJECT: Object = Object {
    service: "identity",
    kind: "project",
    plural: "projects",
    name: "a",
};
/// Of no sample.
pub(super) const OTHER_PROJECT: Object = Object { name: "b", ..PROJECT };
/// Of no sample.
pub(super) const LEAVING_PROJECT: Object = Object { name: "c", ..PROJECT };
pub(super) const CLOUD_IDENTITY: Object = Object {
    service: "region",
    kind: "cloudidentity",
    plural: "cloudidentities",
    name: "openstack",
};
/// Of no sample, and named by nothing.
pub(super) const OTHER_CLOUD_IDENTITY: Object = Object {
    name: "vsphere",
    ..CLOUD_IDENTITY
};
pub(super) const NETWORK: Object = Object {
    service: "region",
    kind: "network",
    plural: "networks",
    name: "blue",
};
pub(super) const SERVER_GROUP: Object = Object {
    service: "region",
    kind: "servergroup",
    plural: "servergroups",
    name: "apart",
};
pub(super) const CLUSTER: Object = Object {
    service: "compute",
    kind: "cluster",
    plural: "clusters",
    name: "prod",
};
/// Of no sample.
pub(super) const OTHER_CLUSTER: Object = Object { name: "dev", ..CLUSTER };

/// Those that go with the project.
pub(super) const OBJECTS: [&Object; 7] = [
    &PROJECT,
    &CLOUD_IDENTITY,
    &OTHER_CLOUD_IDENTITY,
    &NETWORK,
    &SERVER_GROUP,
    &CLUSTER,
    &OTHER_CLUSTER,
];

/// The manifests of those that are of no sample.
pub(super) const MANIFESTS: [(&Object, &str); 2] = [
    (
        &OTHER_CLOUD_IDENTITY,
        "{apiVersion: region.example.com/v1, kind: CloudIdentity, metadata: {name: vsphere, namespace: default}, \
         spec: {project: a}}",
    ),
    (
        &OTHER_CLUSTER,
        "{apiVersion: compute.example.com/v1, kind: Cluster, metadata: {name: dev, namespace: default}, \
         spec: {network: blue, serverGroup: apart}}",
    ),
];

/// Each holder with a target.
pub(super) const REFERENCES: [(&Object, &Object); 8] = [
    (&CLOUD_IDENTITY, &PROJECT),
    (&OTHER_CLOUD_IDENTITY, &PROJECT),
    (&NETWORK, &CLOUD_IDENTITY),
    (&SERVER_GROUP, &CLOUD_IDENTITY),
    (&CLUSTER, &NETWORK),
    (&CLUSTER, &SERVER_GROUP),
    (&OTHER_CLUSTER, &NETWORK),
    (&OTHER_CLUSTER, &SERVER_GROUP),
];

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
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
}
