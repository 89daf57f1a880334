//! The keys of references between kinds, and of the other services whose kinds they may name.

use super::{Section, Sort, key, required};

/// `[kinds.<Kind>.references]`, one entry.
pub static REFERENCE: Section = Section {
    name: "reference",
    doc: "A field that names an object of another kind. Exactly one of `kind` and `kind_column` says which kind, and \
          exactly one of `column` and `path` where the name is.",
    keys: &[
        key(
            "kind",
            Sort::Text,
            "The kind of the named object; a kind of another service with the service in front: `region.Network`. A \
             kind that names itself has objects that form trees.",
        ),
        key(
            "kind_column",
            Sort::Text,
            "The column that holds the kind of the named object, where it differs from object to object.",
        ),
        key(
            "kinds",
            Sort::Texts,
            "With `kind_column`: the only kinds that the column may name. Default: all kinds of this file but the \
             one that has the reference.",
        ),
        key(
            "column",
            Sort::Text,
            "The ResourceIdentifier column that holds the name.",
        ),
        key(
            "path",
            Sort::Text,
            "Instead of `column`: the field that holds the name, a ResourceIdentifier or a string, where it has no \
             ResourceIdentifier column. A string names an object in the namespace of the one that has it.",
        ),
        key(
            "owned",
            Sort::Flag,
            "Whether the named object owns this one: it deletes what it owns once nothing else refers to it. Default: \
             false.",
        ),
        key(
            "on_delete",
            Sort::Choice(&["cascade", "block", "orphan"]),
            "What the deletion of the named object does: `cascade` deletes this object first, `block` waits until \
             this object is gone, `orphan` leaves it with a dangling name. Default: `orphan`; `cascade` where the \
             object is owned.",
        ),
    ],
};

/// `[services.<name>]`.
pub static SERVICE: Section = Section {
    name: "service",
    doc: "Another service with kinds of its own, which references of this file may name.",
    keys: &[
        required("group", Sort::Text, "API group of its kinds, a DNS name."),
        required(
            "kinds",
            Sort::Entries {
                section: &SERVICE_KIND,
                shorthand: "kind",
            },
            "Its kinds that references of this file name, or whose objects refer to kinds of this file. A plain string \
             is the kind.",
        ),
        required(
            "address",
            Sort::Text,
            "Where its API is, an https URL; http only on the same machine.",
        ),
        key(
            "cluster_scoped",
            Sort::Texts,
            "Those of its kinds whose objects have no namespace. Default: none.",
        ),
        key(
            "refers_to",
            Sort::Texts,
            "Kinds of this file that objects of the service refer to. Their deletion goes by the states of the graph, \
             also where nothing of this file refers to them. Default: none.",
        ),
        key(
            "ca_file",
            Sort::Text,
            "File with the certificates of the authorities that its certificate may be from, in PEM. Default: those \
             of the machine.",
        ),
        key(
            "token_file",
            Sort::Text,
            "File with the token that it is asked with. Default: none.",
        ),
    ],
};

/// An item of `kinds` in `[services.<name>]`.
pub static SERVICE_KIND: Section = Section {
    name: "kind of a service",
    doc: "A kind of another service.",
    keys: &[
        required("kind", Sort::Text, "Its name in PascalCase."),
        key(
            "plural",
            Sort::Text,
            "Its plural name in URLs, as the service itself declares it. Default: the lower-case kind with an `s`.",
        ),
    ],
};
