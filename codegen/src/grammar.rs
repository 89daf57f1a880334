//! Every key that `crds.toml` may contain, with its documentation: the one list behind unknown-key messages, type
//! checks, required keys and the JSON Schema for editors. What the values mean is decided in `lower`.

mod references;
mod versions;

pub use references::{REFERENCE, SERVICE, SERVICE_KIND};
pub use versions::{MAPPING, VERSION};

/// A table with a fixed set of keys.
#[derive(Debug)]
pub struct Section {
    /// What a person calls it: `kind`.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Its keys, in the order of the reference.
    pub keys: &'static [Key],
}

/// A key of a [`Section`].
#[derive(Debug)]
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// What it means and what holds when it is absent.
    pub doc: &'static str,
    /// What may stand on its right side.
    pub sort: Sort,
    /// Whether the section is wrong without it.
    pub required: bool,
}

/// The sort of a value.
#[derive(Debug, Clone, Copy)]
pub enum Sort {
    /// A string.
    Text,
    /// A list of strings.
    Texts,
    /// `true` or `false`.
    Flag,
    /// A whole number from 1 to 2,147,483,647.
    Count,
    /// A string, a number, `true` or `false`.
    Scalar,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A table with fixed keys.
    Table(&'static Section),
    /// A table whose keys a person chooses, each holding a table with fixed keys.
    Each {
        /// The section of each entry.
        section: &'static Section,
        /// The key that a plain string on the right side stands for.
        shorthand: Option<&'static str>,
        /// What the chosen names look like, as a regular expression for editors.
        names: &'static str,
    },
    /// A list of tables with fixed keys, each of which may be a plain string.
    Entries {
        /// The section of each item.
        section: &'static Section,
        /// The key that a plain string stands for.
        shorthand: &'static str,
    },
    /// The shape of a message: names to types, nested tables to nested messages, lists of strings to enums.
    Fields,
}

impl Section {
    /// The key of that name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

const PASCAL_CASE: &str = "^[A-Z][A-Za-z0-9]*$";
const SNAKE_CASE: &str = "^[a-z][a-z0-9_]*$";
const KEBAB_CASE: &str = "^[a-z][a-z0-9-]*$";
const VERSION_NAME: &str = "^[v][a-z0-9]*$";

const fn key(name: &'static str, sort: Sort, doc: &'static str) -> Key {
    Key {
        name,
        doc,
        sort,
        required: false,
    }
}

const fn required(name: &'static str, sort: Sort, doc: &'static str) -> Key {
    Key {
        name,
        doc,
        sort,
        required: true,
    }
}

/// The whole file.
pub static FILE: Section = Section {
    name: "file",
    doc: "Kinds of a platform: their shapes, their SQL columns, how they refer to each other.",
    keys: &[
        required("platform", Sort::Table(&PLATFORM), "What all kinds have in common."),
        key(
            "kinds",
            Sort::Each {
                section: &KIND,
                shorthand: None,
                names: PASCAL_CASE,
            },
            "The kinds, each under its name in PascalCase.",
        ),
        key(
            "services",
            Sort::Each {
                section: &SERVICE,
                shorthand: None,
                names: KEBAB_CASE,
            },
            "Other services whose kinds references may name, each under its name in kebab-case.",
        ),
        key(
            "queries",
            Sort::Each {
                section: &QUERY,
                shorthand: None,
                names: KEBAB_CASE,
            },
            "Named queries, each under its name in kebab-case. Every one becomes a typed function and is checked \
             against the keys of its kind.",
        ),
    ],
};

/// `[platform]`.
pub static PLATFORM: Section = Section {
    name: "platform",
    doc: "What all kinds have in common.",
    keys: &[
        required(
            "group",
            Sort::Text,
            "API group of the kinds, a DNS name such as `michelangelo.api`.",
        ),
        required("version", Sort::Text, "API version of the kinds, such as `v2`."),
        required(
            "finalizer",
            Sort::Text,
            "Finalizer that keeps an object in the cluster until SQL holds its final version. A qualified name: \
             prefix, slash, name.",
        ),
        required(
            "deleting",
            Sort::Text,
            "Annotation that asks for deletion without waiting for it. A qualified name.",
        ),
        required(
            "immutable",
            Sort::Text,
            "Annotation that marks an object as final, so that it leaves etcd and is archived in SQL. A qualified \
             name.",
        ),
        key(
            "restored_from",
            Sort::Text,
            "Annotation that `kindex restore` gives to an object that it creates anew, with the uid that the object \
             had. A qualified name. Default: `RestoredFrom` with the prefix of `immutable`.",
        ),
        key(
            "conversion_data",
            Sort::Text,
            "Annotation that carries the fields of an object that its version has no place for. A qualified name. \
             Default: `ConversionData` with the prefix of `immutable`.",
        ),
        key(
            "database",
            Sort::Text,
            "Name of the SQL database in the schema files. Default: `michelangelo`.",
        ),
    ],
};

/// `[kinds.<Kind>]`.
pub static KIND: Section = Section {
    name: "kind",
    doc: "One kind. Its shape comes from exactly one of `message`, `fields` and `crd`.",
    keys: &[
        key(
            "doc",
            Sort::Text,
            "What an object of this kind is, in one or two sentences. Default: the comment of the message.",
        ),
        key(
            "message",
            Sort::Text,
            "Full name of the message in proto/ that is the whole object; it has a field `spec` and may have a \
             field `status`.",
        ),
        key(
            "fields",
            Sort::Fields,
            "The shape written here: `spec` and, if wanted, `status`, each a table of JSON names and types. A type \
             is a scalar (`string`, `bool`, `int32`, `int64`, `uint32`, `uint64`, `float`, `double`, `bytes`), a \
             message or enum by its full or its last name (`Timestamp`, `Struct`, `ResourceIdentifier`), \
             `optional T`, `repeated T` or `map<K, T>`; a nested table is a nested message, a list of strings an \
             enum. Field numbers are assigned once and kept in schema/crds.lock.",
        ),
        key(
            "crd",
            Sort::Text,
            "Path of a CustomResourceDefinition manifest that somebody else installs. No CRD is emitted for it.",
        ),
        key("group", Sort::Text, "API group of this kind. Default: the platform's."),
        key(
            "version",
            Sort::Text,
            "API version of this kind. Default: the platform's.",
        ),
        key(
            "plural",
            Sort::Text,
            "Plural name in URLs. Default: the lower-case kind with an `s`.",
        ),
        key("short_names", Sort::Texts, "Short names for kubectl. Default: none."),
        key(
            "categories",
            Sort::Texts,
            "Groups of kinds for kubectl, such as `all`. Default: none.",
        ),
        key(
            "scope",
            Sort::Choice(&["Namespaced", "Cluster"]),
            "Whether objects live in namespaces. Default: `Namespaced`.",
        ),
        key(
            "cluster",
            Sort::Flag,
            "Whether a Kubernetes cluster has the objects of this kind. `false`: the kind is SQL-only, and the API \
             server serves it. Default: true.",
        ),
        key(
            "immutable",
            Sort::Flag,
            "Whether every object is final as soon as it exists, so that it leaves etcd once it is stored. Default: \
             false.",
        ),
        key(
            "history",
            Sort::Flag,
            "Whether every version of an object is kept, compressed, in a table `<table>_history`. Default: false.",
        ),
        key(
            "events",
            Sort::Flag,
            "Whether the outbox has an entry for each object, from which subscribers learn what exists, changes and \
             goes. Default: false.",
        ),
        key(
            "storage",
            Sort::Text,
            "The version in which the cluster stores objects, one of `versions` or the kind's own. Default: the kind's own.",
        ),
        key(
            "versions",
            Sort::Each {
                section: &VERSION,
                shorthand: None,
                names: VERSION_NAME,
            },
            "Other versions of this kind, each under its name.",
        ),
        key(
            "retention",
            Sort::Table(&RETENTION),
            "Which rows `kindex purge` removes for good. Default: none.",
        ),
        key(
            "columns",
            Sort::Each {
                section: &COLUMN,
                shorthand: Some("path"),
                names: SNAKE_CASE,
            },
            "Fields that get SQL columns of their own, in table order. A plain string is the path.",
        ),
        key(
            "references",
            Sort::Each {
                section: &REFERENCE,
                shorthand: None,
                names: SNAKE_CASE,
            },
            "Fields that name objects of other kinds.",
        ),
        key("allow", ALLOWED, ALLOW_DOC),
    ],
};

const ALLOWED: Sort = Sort::Each {
    section: &ALLOW,
    shorthand: Some("reason"),
    names: "^[K][0-9]*$",
};
const ALLOW_DOC: &str = "Findings of `kindex lint` that may pass here, each code with the reason why.";

/// `[kinds.<Kind>.allow]` and `[queries.<name>.allow]`, one entry.
pub static ALLOW: Section = Section {
    name: "allowance",
    doc: "A finding of `kindex lint` that may pass.",
    keys: &[required(
        "reason",
        Sort::Text,
        "Why it may pass, for whoever reads this next.",
    )],
};

/// `[kinds.<Kind>.retention]`.
pub static RETENTION: Section = Section {
    name: "retention",
    doc: "Which rows may be removed for good, labels, annotations and history included. The row of an object that is in \
          the cluster never is. At least one of `keep_days` and `keep_last_per_namespace` is given; with both, a row \
          goes only where both let it go.",
    keys: &[
        key(
            "keep_days",
            Sort::Count,
            "Days for which a row is kept after its object was deleted or archived, by the database's clock. Default: \
             age does not matter.",
        ),
        key(
            "keep_last_per_namespace",
            Sort::Count,
            "Of the rows that may go, so many of each namespace are kept, those of the objects that went last. \
             Default: none.",
        ),
        key(
            "states",
            Sort::Texts,
            "Only rows whose `state_column` holds one of these values may go. Default: all.",
        ),
        key(
            "state_column",
            Sort::Text,
            "The column that `states` is about. Default: `state`.",
        ),
        key(
            "evicted",
            Sort::Flag,
            "Whether rows of archived objects may go as well; such a row is the only copy of an object that nobody \
             deleted. Default: false.",
        ),
    ],
};

/// `[kinds.<Kind>.columns]`, one entry.
pub static COLUMN: Section = Section {
    name: "column",
    doc: "A field with a SQL column of its own. A ResourceIdentifier becomes the two columns `<name>_namespace` and \
          `<name>_name`, a UserInfo the two columns `<name>_name` and `<name>_proxy_user`.",
    keys: &[
        required(
            "path",
            Sort::Text,
            "Where the value is found, in the JSON names that a manifest shows: `spec.trainingFramework`.",
        ),
        key(
            "key",
            Sort::Flag,
            "Whether the column gets a SQL key, so that queries by it are fast. Default: false.",
        ),
        key(
            "sql",
            Sort::Text,
            "SQL type instead of the default of the field's type, such as `VARCHAR(768)`.",
        ),
        key(
            "was",
            Sort::Text,
            "Name that the column had before, so that `kindex plan` renames it instead of dropping one column and \
             adding another. Not needed once the rename is planned. Default: the column always had this name.",
        ),
        key(
            "doc",
            Sort::Text,
            "What the value means. Default: the comment of the field.",
        ),
        key(
            "printer",
            Sort::Text,
            "Heading under which `kubectl get` shows the value. Default: not shown.",
        ),
        key(
            "wide",
            Sort::Flag,
            "Whether `kubectl get` shows the value only with `-o wide`. Default: false.",
        ),
    ],
};

/// `[queries.<name>]`.
pub static QUERY: Section = Section {
    name: "query",
    doc: "A query by name. It sees live rows only.",
    keys: &[
        key(
            "doc",
            Sort::Text,
            "What the query answers. Default: a sentence made of its condition.",
        ),
        required("kind", Sort::Text, "The kind whose rows are searched."),
        required(
            "where",
            Sort::Text,
            "Conditions joined by `and`: column, one of `= != < <= > >=`, then `:parameter`, `'text'`, a number or \
             a bool. One must be an equality with the first column of a key.",
        ),
        key(
            "order_by",
            Sort::Text,
            "Columns by which rows are sorted, separated by commas, each with `asc` or `desc`.",
        ),
        key("limit", Sort::Count, "Most rows returned. Default: no limit."),
        key("allow", ALLOWED, ALLOW_DOC),
    ],
};
