//! `#[derive(IndexedObject)]`: the columns of a hand-written kube type. Tokens in, tokens out; knows the attribute
//! grammar and the names that the expansion uses, and nothing of crds.toml. Modules are in reading order, which is
//! the pipeline: attributes as written, the same once validated, the expansion.

mod message;

mod sql_type;

mod attr;

mod valid;

mod expand;

use proc_macro::TokenStream;

/// Implements `kindex_model::indexed::IndexedObject` for a kind.
///
/// Beside `#[kube(…)]`, on the spec of a kube-derive type, it implements the trait for the root type: the kind, or
/// `root` where that is given. Without `#[kube]` the struct is the root itself and `#[indexed(table = "…")]` names
/// its table.
///
/// ```text
/// #[derive(CustomResource, IndexedObject, Clone, Debug, Serialize, Deserialize)]
/// #[kube(group = "ml.example", version = "v1", kind = "Experiment", namespaced)]
/// #[kube(status = "ExperimentStatus", schema = "disabled")]
/// #[indexed(column = "owner", path = spec.owner, sql = "VARCHAR(64)", key)]
/// #[indexed(column = "phase", path = status?.phase)]
/// struct ExperimentSpec {
///     owner: String,
/// }
/// ```
///
/// One `#[indexed(…)]` per column, in table order:
///
/// - `column = "owner"`: the SQL name; required.
/// - `path = spec.owner`: the Rust field, from the root, with a `?` after an `Option`
///   that lies on the way; required.
/// - `json = spec.ownerName`: the JSON names of the same field; by default the path's
///   names in camel case.
/// - `sql = "VARCHAR(64)"`: the SQL type, one of VARCHAR(n), INT, BIGINT,
///   BIGINT UNSIGNED, BOOLEAN, DOUBLE and DATETIME(6); by default that of the field's type.
/// - `key`: a secondary key over this column, named `<table>_<column>`.
///
/// `#[indexed(table = "…")]` sets the table's name; beside `#[kube]` it defaults to the kind in lower case.
///
/// # Errors
/// Every error of the attributes is reported at its own token, all at once, and the trait is implemented without
/// columns so that one error causes no others.
#[proc_macro_derive(IndexedObject, attributes(indexed, kube))]
pub fn derive_indexed_object(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::derive(&input).into()
}
