//! The published field numbers of the built-in kinds, as far as the server serves them.

/// A field of a message.
pub(super) struct Field {
    pub(super) number: u64,
    pub(super) name: &'static str,
    pub(super) shape: Shape,
}

/// What a field holds.
pub(super) enum Shape {
    Text,
    Bytes,
    Flag,
    Integer,
    Time,
    Message(&'static [Field]),
    List(&'static Shape),
    Map(&'static Shape),
}

const fn field(number: u64, name: &'static str, shape: Shape) -> Field {
    Field { number, name, shape }
}

/// The fields of a kind's message.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    match (api_version, kind) {
        ("v1", "Namespace") => Some(NAMESPACE),
        ("v1", "ConfigMap") => Some(CONFIG_MAP),
        ("v1", "Secret") => Some(SECRET),
        ("v1", "Event") => Some(EVENT),
        ("coordination.k8s.io/v1", "Lease") => Some(LEASE),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => Some(ACCESS_REVIEW),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => Some(RULES_REVIEW),
        ("authentication.k8s.io/v1", "SelfSubjectReview") => Some(SUBJECT_REVIEW),
        // Options are sent in the version of the resource that they are for.
        (_, "DeleteOptions") => Some(DELETE_OPTIONS),
        _ => None,
    }
}

const OBJECT_META: Shape = Shape::Message(&[
    field(1, "name", Shape::Text),
    field(2, "generateName", Shape::Text),
    field(3, "namespace", Shape::Text),
    field(5, "uid", Shape::Text),
    field(6, "resourceVersion", Shape::Text),
    field(7, "generation", Shape::Integer),
    field(8, "creationTimestamp", Shape::Time),
    field(9, "deletionTimestamp", Shape::Time),
    field(10, "deletionGracePeriodSeconds", Shape::Integer),
    field(11, "labels", Shape::Map(&Shape::Text)),
    field(12, "annotations", Shape::Map(&Shape::Text)),
    field(13, "ownerReferences", Shape::List(&OWNER_REFERENCE)),
    field(14, "finalizers", Shape::List(&Shape::Text)),
]);

const ACCESS_REVIEW: &[Field] = &[
    field(1, "metadata", OBJECT_META),
    field(
        2,
        "spec",
        Shape::Message(&[
            field(
                1,
                "resourceAttributes",
                Shape::Message(&[
                    field(1, "namespace", Shape::Text),
                    field(2, "verb", Shape::Text),
                    field(3, "group", Shape::Text),
                    field(4, "version", Shape::Text),
                    field(5, "resource", Shape::Text),
                    field(6, "subresource", Shape::Text),
                    field(7, "name", Shape::Text),
                ]),
            ),
            field(
                2,
                "nonResourceAttributes",
                Shape::Message(&[field(1, "path", Shape::Text), field(2, "verb", Shape::Text)]),
            ),
        ]),
    ),
];

const RULES_REVIEW: &[Field] = &[
    field(1, "metadata", OBJECT_META),
    field(2, "spec", Shape::Message(&[field(1, "namespace", Shape::Text)])),
];

const SUBJECT_REVIEW: &[Field] = &[field(1, "metadata", OBJECT_META)];

const OWNER_REFERENCE: Shape = Shape::Message(&[
    field(1, "kind", Shape::Text),
    field(3, "name", Shape::Text),
    field(4, "uid", Shape::Text),
    field(5, "apiVersion", Shape::Text),
    field(6, "controller", Shape::Flag),
    field(7, "blockOwnerDeletion", Shape::Flag),
]);

const NAMESPACE: &[Field] = &[
    field(1, "metadata", OBJECT_META),
    field(
        2,
        "spec",
        Shape::Message(&[field(1, "finalizers", Shape::List(&Shape::Text))]),
    ),
    field(3, "status", Shape::Message(&[field(1, "phase", Shape::Text)])),
];

const CONFIG_MAP: &[Field] = &[
    field(1, "metadata", OBJECT_META),
    field(2, "data", Shape::Map(&Shape::Text)),
    field(3, "binaryData", Shape::Map(&Shape::Bytes)),
    field(4, "immutable", Shape::Flag),
];

const SECRET: &[Field] = &[
    field(1, "metadata", OBJECT_META),
    field(2, "data", Shape::Map(&Shape::Bytes)),
    field(3, "type", Shape::Text),
    field(4, "stringData", Shape::Map(&Shape::Text)),
    field(5, "immutable", Shape::Flag),
];

const LEASE: &[Field] = &[
    field(1, "metadata", OBJECT_META),
    field(
        2,
        "spec",
        Shape::Message(&[
            field(1, "holderIdentity", Shape::Text),
            field(2, "leaseDurationSeconds", Shape::Integer),
            field(3, "acquireTime", Shape::Time),
            field(4, "renewTime", Shape::Time),
            field(5, "leaseTransitions", Shape::Integer),
            field(6, "strategy", Shape::Text),
            field(7, "preferredHolder", Shape::Text),
        ]),
    ),
];

const OBJECT_REFERENCE: Shape = Shape::Message(&[
    field(1, "kind", Shape::Text),
    field(2, "namespace", Shape::Text),
    field(3, "name", Shape::Text),
    field(4, "uid", Shape::Text),
    field(5, "apiVersion", Shape::Text),
    field(6, "resourceVersion", Shape::Text),
    field(7, "fieldPath", Shape::Text),
]);

const EVENT: &[Field] = &[
    field(1, "metadata", OBJECT_META),
    field(2, "involvedObject", OBJECT_REFERENCE),
    field(3, "reason", Shape::Text),
    field(4, "message", Shape::Text),
    field(
        5,
        "source",
        Shape::Message(&[field(1, "component", Shape::Text), field(2, "host", Shape::Text)]),
    ),
    field(6, "firstTimestamp", Shape::Time),
    field(7, "lastTimestamp", Shape::Time),
    field(8, "count", Shape::Integer),
    field(9, "type", Shape::Text),
    field(10, "eventTime", Shape::Time),
    field(
        11,
        "series",
        Shape::Message(&[
            field(1, "count", Shape::Integer),
            field(2, "lastObservedTime", Shape::Time),
        ]),
    ),
    field(12, "action", Shape::Text),
    field(13, "related", OBJECT_REFERENCE),
    field(14, "reportingComponent", Shape::Text),
    field(15, "reportingInstance", Shape::Text),
];

const DELETE_OPTIONS: &[Field] = &[
    field(1, "gracePeriodSeconds", Shape::Integer),
    field(
        2,
        "preconditions",
        Shape::Message(&[field(1, "uid", Shape::Text), field(2, "resourceVersion", Shape::Text)]),
    ),
    field(3, "orphanDependents", Shape::Flag),
    field(4, "propagationPolicy", Shape::Text),
    field(5, "dryRun", Shape::List(&Shape::Text)),
];
