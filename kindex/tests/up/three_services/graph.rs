//! The objects of the samples of examples/deletion-graph, and which of them name which.

/// An object of the samples.
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

/// All of them.
pub(super) const OBJECTS: [&Object; 5] = [&PROJECT, &CLOUD_IDENTITY, &NETWORK, &SERVER_GROUP, &CLUSTER];

/// Each holder with a target.
pub(super) const REFERENCES: [(&Object, &Object); 5] = [
    (&CLOUD_IDENTITY, &PROJECT),
    (&NETWORK, &CLOUD_IDENTITY),
    (&SERVER_GROUP, &CLOUD_IDENTITY),
    (&CLUSTER, &NETWORK),
    (&CLUSTER, &SERVER_GROUP),
];

impl Object {
    pub(super) fn group(&self) -> String {
        format!("{}.example.com", self.service)
    }

    /// Of its events.
    pub(super) fn topic(&self) -> String {
        format!("{}.{}", self.plural, self.group())
    }
}
