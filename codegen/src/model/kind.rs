//! The platform and its kinds: names in Kubernetes and SQL, tables, keys, references, printer columns. Field-level
//! detail is in `column` and `message`.

use super::{
    ApiVersion, BaseColumn, Column, ColumnName, FieldMap, GroupName, Holder, KeyName, KindName, MapRule, MessageName,
    Path, Reference, TableName,
};

/// What all kinds share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// Default API group of the kinds: `michelangelo.api`.
    pub group: GroupName,
    /// Default API version of the kinds: `v2`.
    pub version: ApiVersion,
    /// Finalizer that guards deletion: `michelangelo/Ingester`.
    pub finalizer: String,
    /// Annotation that asks for asynchronous deletion: `michelangelo/Deleting`.
    pub deleting: String,
    /// Annotation that marks an object as final: `michelangelo/Immutable`.
    pub immutable: String,
    /// Annotation with the uid that a restored object had: `michelangelo/RestoredFrom`.
    pub restored_from: String,
    /// Annotation with what an object's version has no place for: `michelangelo/ConversionData`.
    pub conversion_data: String,
    /// Name of the SQL database: `michelangelo`.
    pub database: TableName,
}

/// One declared kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// `PipelineRun`.
    pub name: KindName,
    /// Documentation; never empty.
    pub doc: String,
    /// API group, the platform's unless declared (or taken from a CRD manifest).
    pub group: GroupName,
    /// API version that Kindex reads; always served.
    pub version: ApiVersion,
    /// The version in which the cluster stores objects: this one or one of `versions`.
    pub storage: ApiVersion,
    /// The other versions, in the order of their declaration.
    pub versions: Vec<Version>,
    /// `pipelineruns`; unique in its group.
    pub plural: String,
    /// `pipelinerun`.
    pub singular: String,
    /// `PipelineRunList`.
    pub list_kind: String,
    /// Names for kubectl: `pr`.
    pub short_names: Vec<String>,
    /// Groups for kubectl: `all`.
    pub categories: Vec<String>,
    /// Namespaced or cluster-wide.
    pub scope: Scope,
    /// Whether a cluster has its objects. Otherwise the kind is SQL-only.
    pub cluster: bool,
    /// Whether every object of this kind is archived as soon as it is stored.
    pub immutable: bool,
    /// Whether every version is kept, in a table of its own.
    pub history: bool,
    /// Whether the outbox has an entry for each object.
    pub events: bool,
    /// Which rows may be removed for good; `None`: none.
    pub retention: Option<Retention>,
    /// Rust module: `pipeline_run`.
    pub module: String,
    /// Main table: `pipelinerun`.
    pub table: TableName,
    /// Where the shape of the objects came from.
    pub shape: Shape,
    /// The whole object: a message with type_meta, metadata, spec and status.
    pub root: MessageName,
    /// Message of the `spec` field.
    pub spec: MessageName,
    /// Message of the `status` field, and thereby the status subresource.
    pub status: SubresourceStatus,
    /// Extracted columns in table order.
    pub columns: Vec<Column>,
    /// Secondary keys in table order, without the `uid` that ends each of them in SQL.
    pub keys: Vec<Key>,
    /// References to other kinds.
    pub references: Vec<Reference>,
    /// Columns of `kubectl get` after NAME, in order, `Age` included; of a kind with an existing CRD those of the CRD.
    /// Empty: the age alone, as Kubernetes has it.
    pub printer_columns: Vec<PrinterColumn>,
    /// What Kubernetes shows in discovery as `storageVersionHash` where objects are stored in the kind's own version.
    pub storage_version_hash: String,
}

impl Kind {
    /// `michelangelo.api/v2`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// `pipelineruns.michelangelo.api`, the name of the CustomResourceDefinition.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Whether `name` is a version of this kind.
    pub fn has_version(&self, name: &str) -> bool {
        let others = self.versions.iter().map(|version| &version.name);
        std::iter::once(&self.version)
            .chain(others)
            .any(|version| version.as_str() == name)
    }

    /// Whether objects must be changed to become those of another version. Otherwise versions differ in name alone.
    pub fn is_converted(&self) -> bool {
        self.versions.iter().any(|version| !version.map.is_empty())
    }

    /// The extracted column of that name.
    pub fn column(&self, name: &ColumnName) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == *name)
    }

    /// The columns that carry `group`, in table order.
    pub fn group_columns<'a>(&'a self, group: &'a ColumnName) -> impl Iterator<Item = &'a Column> + 'a {
        self.columns
            .iter()
            .filter(move |column| column.group.as_ref().is_some_and(|member| member.name == *group))
    }

    /// Where a manifest of this kind shows what `reference` names: `spec.pipeline`.
    pub fn holder_path<'a>(&'a self, reference: &'a Reference) -> Vec<&'a str> {
        match &reference.holder {
            Holder::Path { path, .. } => path.json().collect(),
            Holder::Column(group) => {
                let mut halves = self.group_columns(group).map(|column| column.path.json().collect());
                let half: Vec<&str> = halves.next().expect("lower resolves the columns of references");
                half[..half.len() - 1].to_vec()
            }
        }
    }

    /// Whether some key starts with that column, so that an equality on it narrows a query.
    pub fn leads_a_key(&self, column: &ColumnName) -> bool {
        *column == BaseColumn::Uid.name() || self.keys.iter().any(|key| key.columns.first() == Some(column))
    }
}

/// A version of a kind beside its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `v1beta1`.
    pub name: ApiVersion,
    /// Whether clients can use it.
    pub served: bool,
    /// What clients that use it are warned of.
    pub deprecated: Option<String>,
    /// The whole object: a message with type_meta, metadata, spec and status.
    pub root: MessageName,
    /// Message of the `spec` field.
    pub spec: MessageName,
    /// Message of the `status` field.
    pub status: SubresourceStatus,
    /// Columns of `kubectl get` after NAME: those of the kind whose values this version has as they are.
    pub printer_columns: Vec<PrinterColumn>,
    /// The fields that differ from those of the kind's own version.
    pub map: Vec<FieldMap>,
    /// What Kubernetes shows in discovery as `storageVersionHash` where objects are stored in it.
    pub storage_version_hash: String,
}

impl Version {
    /// Where this version has the value that the kind's own has at `own`, if it has the same value.
    pub fn here(&self, own: &Path) -> Option<Path> {
        let length = |map: &FieldMap| map.own.as_ref().map_or(0, |path| path.segments.len());
        let is_in = |map: &&FieldMap| {
            let outer = map.own.as_ref();
            outer.is_some_and(|outer| own.segments.starts_with(&outer.segments))
        };
        let Some(map) = self.map.iter().filter(is_in).max_by_key(|map| length(map)) else {
            return Some(own.clone());
        };
        match (&map.here, &map.rule) {
            (Some(here), MapRule::Same | MapRule::Default(_)) => Some(Path {
                segments: [&here.segments[..], &own.segments[length(map)..]].concat(),
            }),
            (None, _) | (Some(_), MapRule::Function { .. }) => None,
        }
    }
}

/// Namespaced or cluster-wide, in Kubernetes' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Objects live in namespaces.
    Namespaced,
    /// Objects are cluster-wide.
    Cluster,
}

impl Scope {
    /// The text in a CRD manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Namespaced => "Namespaced",
            Self::Cluster => "Cluster",
        }
    }
}

/// Where the shape of a kind came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A message in `proto/`; all outputs are emitted.
    Message,
    /// `fields` in `crds.toml`; all outputs are emitted, the `.proto` file included. The text is the import path of
    /// that file.
    Inline(String),
    /// A CRD manifest that belongs to somebody else. A CRD is never emitted for such a kind: a partial schema would
    /// make the API server prune their fields.
    Crd {
        /// Path of the manifest, relative to the root.
        manifest: String,
        /// Import path of the `.proto` file that was made from the manifest.
        proto: String,
    },
}

/// Whether objects have a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubresourceStatus {
    /// The message has no `status` field and the CRD no status subresource.
    Absent,
    /// `status` is this message, and the CRD has the status subresource.
    Present(MessageName),
}

impl SubresourceStatus {
    /// The status message, if there is one.
    pub const fn message(&self) -> Option<&MessageName> {
        match self {
            Self::Absent => None,
            Self::Present(message) => Some(message),
        }
    }
}

/// A secondary key of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `<table>_<column>`.
    pub name: KeyName,
    /// The columns in key order, never empty.
    pub columns: Vec<ColumnName>,
}

/// Which rows of objects that are no longer in the cluster may be removed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Days for which a row is kept.
    pub keep_days: Option<u32>,
    /// Rows of each namespace that are kept.
    pub keep_last_per_namespace: Option<u32>,
    /// The only states that may go; `None`: all.
    pub states: Option<RetentionStates>,
    /// Whether rows of archived objects may go as well.
    pub evicted: bool,
}

/// Values of a column by which rows may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionStates {
    /// The column, of text or an enum.
    pub column: ColumnName,
    /// In the order of the file, never empty.
    pub values: Vec<String>,
}

/// A column of `kubectl get`, as `additionalPrinterColumns` of a CRD has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading: `State`.
    pub name: String,
    /// How kubectl renders it.
    pub ty: PrinterType,
    /// A hint at the form of the values, such as `int32`; mostly empty.
    pub format: String,
    /// Documentation; may be empty.
    pub doc: String,
    /// 0: shown by `kubectl get`; above: only with `-o wide`.
    pub priority: i32,
    /// Where the value is found: `.status.state`.
    pub json_path: String,
}

/// The types that Kubernetes knows for printer columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrinterType {
    /// Text as it is.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A time, rendered as an age.
    Date,
}

impl PrinterType {
    /// All types.
    pub const ALL: [Self; 5] = [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Date];

    /// The text in a CRD manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Date => "date",
        }
    }
}
