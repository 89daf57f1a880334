//! The keys of versions of a kind, and of what maps them to the kind's own.

use super::{Section, Sort, key};

const PATH: &str = "^[a-z][A-Za-z0-9_.-]*$";

/// `[kinds.<Kind>.versions.<version>]`.
pub static VERSION: Section = Section {
    name: "version",
    doc: "A version of the kind beside its own. Its shape is that of the kind's own version, or comes from one of \
          `message` and `fields`.",
    keys: &[
        key(
            "message",
            Sort::Text,
            "Full name of the message in proto/ that is the whole object in this version.",
        ),
        key(
            "fields",
            Sort::Fields,
            "The shape of this version written here, as in the kind itself.",
        ),
        key(
            "served",
            Sort::Flag,
            "Whether clients can use this version. Default: true.",
        ),
        key(
            "deprecated",
            Sort::Text,
            "What clients that use this version are warned of. Default: the version is not deprecated.",
        ),
        key(
            "map",
            Sort::Each {
                section: &MAPPING,
                shorthand: Some("from"),
                names: PATH,
            },
            "How fields of the kind's own version follow from this version's. Fields of the same path and type need no \
             entry. A plain string is the path in this version.",
        ),
    ],
};

/// `[kinds.<Kind>.versions.<version>.map]`, one entry.
pub static MAPPING: Section = Section {
    name: "mapping",
    doc: "How one field of the kind's own version follows from this version.",
    keys: &[
        key(
            "from",
            Sort::Text,
            "Path of the value in this version. Default: the same path.",
        ),
        key(
            "default",
            Sort::Scalar,
            "The value where this version has none. Default: no value.",
        ),
        key(
            "constant",
            Sort::Scalar,
            "The value of every object of this version, which has no place for the field.",
        ),
        key(
            "function",
            Sort::Text,
            "Path of the Rust function that makes this version's value that of the kind's own.",
        ),
        key("back", Sort::Text, "Path of the Rust function for the way back."),
    ],
};
