//! The declaration as written: every value with its place, nothing decided. A [`Spec`] may contradict itself; only
//! the sorts of its values are known to be right. `lower` checks the rest.

mod table;

mod entries;

mod fields;

mod versions;

mod parse;

use crate::source::{Span, Text};

pub use parse::parse;

/// A value other than a string, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WithSpan<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

/// The whole of `crds.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec {
    /// `[platform]`; `None` was reported.
    pub platform: Option<PlatformSpec>,
    /// `[kinds.…]` in file order.
    pub kinds: Vec<KindSpec>,
    /// `[services.…]` in file order.
    pub services: Vec<ServiceSpec>,
    /// `[queries.…]` in file order.
    pub queries: Vec<QuerySpec>,
}

/// `[platform]`. A missing required key was reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformSpec {
    /// API group.
    pub group: Option<Text>,
    /// API version.
    pub version: Option<Text>,
    /// Finalizer that guards deletion.
    pub finalizer: Option<Text>,
    /// Annotation for asynchronous deletion.
    pub deleting: Option<Text>,
    /// Annotation for final objects.
    pub immutable: Option<Text>,
    /// Annotation with the uid that a restored object had.
    pub restored_from: Option<Text>,
    /// Annotation with what an object's version has no place for.
    pub conversion_data: Option<Text>,
    /// SQL database.
    pub database: Option<Text>,
}

/// `[kinds.<Kind>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindSpec {
    /// The kind's name.
    pub name: Text,
    /// Documentation.
    pub doc: Option<Text>,
    /// Shape from a message.
    pub message: Option<Text>,
    /// Shape written inline.
    pub fields: Option<FieldsSpec>,
    /// Shape from a CRD manifest.
    pub crd: Option<Text>,
    /// API group.
    pub group: Option<Text>,
    /// API version.
    pub version: Option<Text>,
    /// Plural name.
    pub plural: Option<Text>,
    /// Short names.
    pub short_names: Vec<Text>,
    /// Categories.
    pub categories: Vec<Text>,
    /// `Namespaced` or `Cluster`.
    pub scope: Option<Text>,
    /// Whether a cluster has its objects, and where that is said.
    pub cluster: Option<WithSpan<bool>>,
    /// Whether all objects are final, where that is said.
    pub immutable: Option<WithSpan<bool>>,
    /// Whether versions are kept.
    pub history: bool,
    /// Whether the outbox has an entry for each object.
    pub events: bool,
    /// The version that is stored.
    pub storage: Option<Text>,
    /// Other versions in file order.
    pub versions: Vec<VersionSpec>,
    /// Which rows may be removed.
    pub retention: Option<RetentionSpec>,
    /// Columns in file order.
    pub columns: Vec<ColumnSpec>,
    /// References in file order.
    pub references: Vec<ReferenceSpec>,
    /// Findings of the lint that may pass, in file order.
    pub allow: Vec<AllowSpec>,
}

/// An entry of `[kinds.<Kind>.allow]` or `[queries.<name>.allow]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowSpec {
    /// The code.
    pub code: Text,
    /// Why; `None` was reported.
    pub reason: Option<Text>,
}

/// `[kinds.<Kind>.versions.<version>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionSpec {
    /// The version's name.
    pub name: Text,
    /// Shape from a message.
    pub message: Option<Text>,
    /// Shape written inline.
    pub fields: Option<FieldsSpec>,
    /// Whether it is served, and where that is said.
    pub served: Option<WithSpan<bool>>,
    /// What clients are warned of.
    pub deprecated: Option<Text>,
    /// What differs from the kind's own version, in file order.
    pub map: Vec<MappingSpec>,
}

/// An entry of `[kinds.<Kind>.versions.<version>.map]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingSpec {
    /// Path in the kind's own version.
    pub own: Text,
    /// Path in this version.
    pub from: Option<Text>,
    /// Value where this version has none.
    pub default: Option<WithSpan<Scalar>>,
    /// Value of every object of this version.
    pub constant: Option<WithSpan<Scalar>>,
    /// Function to the kind's own version.
    pub function: Option<Text>,
    /// Function back.
    pub back: Option<Text>,
}

/// A value that is no table and no list.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
}

impl Eq for Scalar {}

/// `[kinds.<Kind>.retention]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionSpec {
    /// Where the table begins.
    pub span: Span,
    /// Days since the object went.
    pub keep_days: Option<WithSpan<u32>>,
    /// Rows of each namespace that stay.
    pub keep_last_per_namespace: Option<WithSpan<u32>>,
    /// States that may go, and where the list stands.
    pub states: Option<WithSpan<Vec<Text>>>,
    /// Column of the states.
    pub state_column: Option<Text>,
    /// Rows of archived objects too.
    pub evicted: Option<WithSpan<bool>>,
}

/// An entry of `[kinds.<Kind>.columns]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name of the column, or the base name of the columns of a composite.
    pub name: Text,
    /// JSON path; `None` was reported.
    pub path: Option<Text>,
    /// Name that the column had before.
    pub was: Option<Text>,
    /// Whether a key is wanted, and where that is said.
    pub key: Option<WithSpan<bool>>,
    /// SQL type instead of the default.
    pub sql: Option<Text>,
    /// Documentation.
    pub doc: Option<Text>,
    /// Heading in `kubectl get`.
    pub printer: Option<Text>,
    /// Only with `-o wide`, and where that is said.
    pub wide: Option<WithSpan<bool>>,
}

/// An entry of `[kinds.<Kind>.references]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceSpec {
    /// Name of the reference.
    pub name: Text,
    /// Kind of the named object.
    pub kind: Option<Text>,
    /// Column that holds the kind of the named object.
    pub kind_column: Option<Text>,
    /// Kinds that the column may name, and where the list stands.
    pub kinds: Option<WithSpan<Vec<Text>>>,
    /// Column that holds the name.
    pub column: Option<Text>,
    /// Field that holds the name.
    pub path: Option<Text>,
    /// Whether the named object owns the holder, and where that is said.
    pub owned: Option<WithSpan<bool>>,
    /// `cascade`, `block` or `orphan`.
    pub on_delete: Option<Text>,
}

impl ReferenceSpec {
    /// Where the reference says which kind it names.
    pub fn target(&self) -> &Text {
        let target = self.kind.as_ref().or(self.kind_column.as_ref());
        target.unwrap_or(&self.name)
    }
}

/// `[services.<name>]`. A missing required key was reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceSpec {
    /// Name of the service.
    pub name: Text,
    /// API group.
    pub group: Option<Text>,
    /// Kinds, in file order.
    pub kinds: Vec<ServiceKindSpec>,
    /// Those without a namespace.
    pub cluster_scoped: Vec<Text>,
    /// Kinds of this file that its objects refer to.
    pub refers_to: Vec<Text>,
    /// URL.
    pub address: Option<Text>,
    /// Certificates of authorities.
    pub ca_file: Option<Text>,
    /// Token.
    pub token_file: Option<Text>,
}

/// An item of `kinds` in `[services.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceKindSpec {
    /// Name of the kind.
    pub name: Text,
    /// Plural name.
    pub plural: Option<Text>,
}

/// `[queries.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuerySpec {
    /// Name of the query.
    pub name: Text,
    /// Documentation.
    pub doc: Option<Text>,
    /// Kind; `None` was reported.
    pub kind: Option<Text>,
    /// Condition; `None` was reported.
    pub condition: Option<Text>,
    /// Sort order.
    pub order_by: Option<Text>,
    /// Most rows.
    pub limit: Option<WithSpan<u32>>,
    /// Findings of the lint that may pass, in file order.
    pub allow: Vec<AllowSpec>,
}

/// `fields = { spec = {…}, status = {…} }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsSpec {
    /// Fields of the spec in file order; `None` was reported.
    pub spec: Option<Vec<FieldSpec>>,
    /// Fields of the status in file order, if there is a status.
    pub status: Option<Vec<FieldSpec>>,
}

/// A field of an inline message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSpec {
    /// JSON name.
    pub name: Text,
    /// What it holds.
    pub shape: FieldShape,
}

/// What an inline field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldShape {
    /// A type by name: `"map<string, string>"`.
    Type(Text),
    /// An enum with these values.
    Enum(Vec<Text>),
    /// A nested message.
    Message(Vec<FieldSpec>),
}
