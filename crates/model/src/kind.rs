//! What the runtime knows about a kind: static tables that the generator emits and a registry of them. One
//! reconciler runs over these values; there is no code per kind below this line.

use crate::reference::{Reference, Service, Target};

/// The names of the finalizers, labels and annotations of a platform.
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    /// API group of all generated kinds.
    pub group: &'static str,
    /// Their stored version.
    pub version: &'static str,
    /// Finalizer that keeps an object in etcd until SQL holds its final version.
    pub finalizer: &'static str,
    /// Annotation that asks for asynchronous deletion when set to `"true"`.
    pub deleting: &'static str,
    /// Annotation that says the object is final and may leave etcd when `"true"`.
    pub immutable: &'static str,
    /// Annotation of an object that was restored from SQL: the uid that it had.
    pub restored_from: &'static str,
    /// Annotation with the fields that the version of an object has no place for.
    pub conversion_data: &'static str,
}

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `metadata.namespace` is set.
    Namespaced,
    /// One set of names for the whole cluster; the stored namespace is empty.
    Cluster,
}

/// The type of an extracted column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `VARCHAR(chars)`: strings, and enums by full name.
    Text {
        /// Longest value in characters; a longer one does not fit and is stored as NULL.
        chars: u32,
    },
    /// `INT`.
    Int32,
    /// `BIGINT`; read from a JSON number or string.
    Int64,
    /// `BIGINT UNSIGNED`; read from a JSON number or string.
    UInt64,
    /// `BOOLEAN`.
    Bool,
    /// `DOUBLE`.
    Double,
    /// `DATETIME(6)`, UTC.
    Time,
}

impl ColumnType {
    /// Whether its values are texts, of which one is empty.
    pub const fn is_text(self) -> bool {
        match self {
            Self::Text { .. } => true,
            Self::Int32 | Self::Int64 | Self::UInt64 | Self::Bool | Self::Double | Self::Time => false,
        }
    }
}

/// One extracted column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// SQL name.
    pub name: &'static str,
    /// JSON names from the root of the object, as a manifest shows them.
    pub path: &'static [&'static str],
    /// SQL and binding type.
    pub ty: ColumnType,
    /// The namespace half of a `ResourceIdentifier`: where the identifier is
    /// present and names no namespace, it means the object's own.
    pub own_namespace: bool,
}

/// One secondary key of the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// SQL name.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: &'static [&'static str],
}

/// A column of `kubectl get`, as `additionalPrinterColumns` of a CustomResourceDefinition has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading: `State`.
    pub name: &'static str,
    /// `string`, `integer`, `number`, `boolean`, or `date`, which shows an age.
    pub ty: &'static str,
    /// A hint at the form of the values.
    pub format: &'static str,
    /// What the column shows.
    pub description: &'static str,
    /// 0: always shown; above: only with `-o wide`.
    pub priority: i32,
    /// Where in an object the value is.
    pub json_path: &'static str,
}

/// Which rows of objects that are no longer in the cluster may be removed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Days for which a row is kept after its object went; `None`: age does not matter.
    pub keep_days: Option<u32>,
    /// Of the rows that may go, so many of each namespace are kept, those that went last.
    pub keep_last_per_namespace: Option<u32>,
    /// The column that [`Retention::states`] is about.
    pub state_column: Option<&'static str>,
    /// The only values of that column that may go; empty where all may.
    pub states: &'static [&'static str],
    /// Whether rows of archived objects may go as well as those of deleted ones.
    pub evicted: bool,
}

/// A version of a kind beside its own.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// `v1beta1`.
    pub name: &'static str,
    /// Whether the cluster serves it.
    pub served: bool,
    /// Whether the cluster stores objects in it, rather than in the kind's own version.
    pub stored: bool,
    /// What clients that use it are warned of.
    pub deprecated: Option<&'static str>,
    /// The fields that differ from those of the kind's own version; all others are the same in both.
    pub map: &'static [FieldMap],
}

/// A field that two versions of a kind have in different places, or that one of them has no place for.
#[derive(Clone, Copy, Debug)]
pub struct FieldMap {
    /// JSON names from the root of an object of this version; `None`: it has no place for the field.
    pub here: Option<&'static [&'static str]>,
    /// The same of the kind's own version.
    pub own: Option<&'static [&'static str]>,
    /// How the values follow from each other.
    pub rule: MapRule,
}

/// How the value of a field in one version follows from that in another. An absent value stays absent, unless said
/// otherwise.
#[derive(Clone, Copy, Debug)]
pub enum MapRule {
    /// It is the same.
    Same,
    /// It is the same, and where this version has none the kind's own has this one, as JSON.
    Default(&'static str),
    /// By functions of the platform.
    Function {
        /// From this version's value to that of the kind's own.
        to_own: fn(&serde_json::Value) -> Result<serde_json::Value, String>,
        /// The way back.
        from_own: fn(&serde_json::Value) -> Result<serde_json::Value, String>,
    },
}

/// Where the typed projection of an object does not agree with its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// JSON path, such as `spec.trigger.cronSchedule`; empty for the whole object.
    pub path: String,
    /// What was found and what was expected.
    pub message: String,
}

/// An object in its message encoding, as far as it fits the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The bytes of the `proto` column; `None` where the object does not fit.
    pub proto: Option<Vec<u8>>,
    /// Everything that could not be read exactly.
    pub problems: Vec<Problem>,
}

/// Everything the runtime knows about one kind.
#[derive(Debug)]
pub struct Kind {
    /// `PipelineRun`.
    pub name: &'static str,
    /// API group.
    pub group: &'static str,
    /// The version that Kindex reads and keeps in SQL.
    pub version: &'static str,
    /// The other versions, in the order of crds.toml.
    pub versions: &'static [Version],
    /// `pipelineruns`.
    pub plural: &'static str,
    /// `pipelinerun`.
    pub singular: &'static str,
    /// Short names, as kubectl takes them: `pr`.
    pub short_names: &'static [&'static str],
    /// Namespaced or cluster-wide.
    pub scope: Scope,
    /// Main table; [`tables`](Self::tables) names the others.
    pub table: &'static str,
    /// Whether a cluster has the objects; otherwise the kind is SQL-only.
    pub cluster: bool,
    /// Every object is final at birth and is archived once stored.
    pub immutable: bool,
    /// Every version is kept, in a table of its own.
    pub history: bool,
    /// The outbox has an entry for each object.
    pub events: bool,
    /// Extracted columns in table order.
    pub columns: &'static [Column],
    /// Secondary keys of the main table.
    pub keys: &'static [Key],
    /// What `kubectl get` shows after the name, in this order; empty where only the manifest says it.
    pub printer_columns: &'static [PrinterColumn],
    /// Which rows may be removed for good; `None`: none.
    pub retention: Option<Retention>,
    /// The fields that name objects of other kinds: the edges of the declared graph that begin here.
    pub references: &'static [Reference],
    /// Its CRD, as YAML, to install where a cluster has the kind; empty for a kind whose CRD others own.
    pub manifest: &'static str,
    /// Encodes an object's JSON text as its message.
    pub encode: fn(&str) -> Encoded,
    /// The JSON text of an object in its message encoding.
    ///
    /// # Errors
    /// Everything that has no JSON form: bytes that are no message, and numbers that no value of an enum has.
    pub decode: fn(&[u8]) -> Result<String, Vec<Problem>>,
}

impl Kind {
    /// `group/version`, as in `apiVersion`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The names of all its versions, its own first.
    pub fn version_names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.version).chain(self.versions.iter().map(|version| version.name))
    }

    /// The name of its CustomResourceDefinition.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// A query of crds.toml, as far as it can be asked by name. It sees rows that are not deleted.
#[derive(Debug)]
pub struct NamedQuery {
    /// `failed-runs`.
    pub name: &'static str,
    /// What it finds.
    pub doc: &'static str,
    /// The kind whose rows it finds.
    pub kind: &'static Kind,
    /// All of them must hold.
    pub conditions: &'static [QueryCondition],
    /// Its order, the first column first.
    pub order: &'static [QueryOrder],
    /// Most rows of a page where the caller does not say.
    pub limit: Option<u32>,
}

impl NamedQuery {
    /// The names of its parameters, each once, in the order of their first use.
    pub fn parameters(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for condition in self.conditions {
            match condition.operand {
                Operand::Parameter(name) if !names.contains(&name) => names.push(name),
                Operand::Parameter(_)
                | Operand::Text(_)
                | Operand::Integer(_)
                | Operand::Unsigned(_)
                | Operand::Bool(_) => {}
            }
        }
        names
    }
}

/// `column comparison operand`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryCondition {
    /// SQL name.
    pub column: &'static str,
    /// The column's type, and that of the parameter.
    pub ty: ColumnType,
    /// How they are compared.
    pub comparison: Comparison,
    /// With what.
    pub operand: Operand,
}

/// How a column is compared; a row without a value matches none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same value.
    Equal,
    /// Another value.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
}

/// What a column is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The parameter of that name.
    Parameter(&'static str),
    /// A fixed text.
    Text(&'static str),
    /// A fixed number.
    Integer(i64),
    /// A fixed number for a [`ColumnType::UInt64`].
    Unsigned(u64),
    /// A fixed flag.
    Bool(bool),
}

/// One step of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryOrder {
    /// SQL name.
    pub column: &'static str,
    /// Its type.
    pub ty: ColumnType,
    /// Largest first.
    pub descending: bool,
}

/// One step of a database's history, in every dialect: a text of `-- step: …` lines, each with one statement at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The number of the schema that it leads to.
    pub number: u32,
    /// What people call it: `model_budget`.
    pub name: &'static str,
    /// The lowest number of a schema whose programs may go on writing once it has run.
    pub compatible: u32,
    /// Its text in each dialect that there was when it was planned, after the dialect's word.
    pub texts: &'static [(&'static str, &'static str)],
    /// Hash of all texts up to and with this one, in hexadecimal digits.
    pub checksum: &'static str,
}

/// The CRD of a kind that others define: for clusters that are ours alone.
#[derive(Clone, Copy, Debug)]
pub struct ForeignManifest {
    /// The kind.
    pub kind: &'static str,
    /// A CustomResourceDefinition as YAML.
    pub manifest: &'static str,
}

/// A version in which a kind is or ever was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredVersion {
    /// `PipelineRun`; not every kind of this table is still declared.
    pub kind: &'static str,
    /// Its API group at that time.
    pub group: &'static str,
    /// `v1beta1`.
    pub version: &'static str,
    /// What Kubernetes shows in discovery as `storageVersionHash` where objects are stored in it.
    pub hash: &'static str,
    /// Whether `crds.lock` says that no cluster stores it any more.
    pub dropped: bool,
}

/// All kinds of one platform with the schemas that hold them.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    /// Names shared by all kinds.
    pub platform: Platform,
    /// The kinds, in the order of crds.toml.
    pub kinds: &'static [&'static Kind],
    /// `CREATE TABLE IF NOT EXISTS` statements in each dialect, after the dialect's word.
    pub schemas: &'static [(&'static str, &'static str)],
    /// The named queries, in the order of crds.toml.
    pub queries: &'static [&'static NamedQuery],
    /// What leads from an empty database, and from every earlier one, to these schemas: from number 1, without gaps.
    pub migrations: &'static [Migration],
    /// The CRDs of the kinds whose manifest is empty, as crds.toml names them.
    pub foreign: &'static [ForeignManifest],
    /// Every version that a kind was ever declared in, by kind and version.
    pub declared: &'static [DeclaredVersion],
    /// All messages and services, an encoded `google.protobuf.FileDescriptorSet`; empty where there are none.
    pub descriptors: &'static [u8],
    /// The other services, in the order of crds.toml.
    pub services: &'static [&'static Service],
}

impl Registry {
    /// The CRD of a kind that others define, where crds.toml names one.
    pub fn foreign_manifest(&self, kind: &Kind) -> Option<&'static str> {
        let mut foreign = self.foreign.iter();
        foreign
            .find(|foreign| foreign.kind == kind.name)
            .map(|foreign| foreign.manifest)
    }

    /// The version of a kind that has this storage version hash, among all that it was ever declared in.
    pub fn version_of(&self, kind: &Kind, hash: &str) -> Option<&'static DeclaredVersion> {
        let mut declared = self.declared.iter();
        declared.find(|version| version.kind == kind.name && version.hash == hash)
    }

    /// The references by which other kinds, and `kind` itself, may name its objects, each with the kind that has it.
    pub fn referrers(&self, kind: &Kind) -> impl Iterator<Item = (&'static Kind, &'static Reference, &'static Target)> {
        let (group, name) = (kind.group, kind.name);
        self.kinds.iter().flat_map(move |holder| {
            let references = holder.references.iter();
            references.filter_map(move |found| Some((*holder, found, found.target(group, name)?)))
        })
    }

    /// Whether deletions of its objects wait for others, or others for them: whether a reference for which the named
    /// object waits begins or ends at the kind, also one that another service has.
    pub fn is_of_graph(&self, kind: &Kind) -> bool {
        let mut referrers = self.referrers(kind);
        let mut services = self.services.iter();
        kind.references.iter().any(Reference::waits)
            || referrers.any(|(_, reference, _)| reference.waits())
            || services.any(|service| service.refers_to.contains(&kind.name))
    }
}
