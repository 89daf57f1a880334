//! Hand-written kinds: the runtime's table of a kind from a kube type that derives
//! `IndexedObject`, and the checks that the derive leaves to constant evaluation.
//! Knows no kind; what a type cannot say (its CRD) is given.

use std::any::TypeId;
use std::borrow::Cow;

use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;

use crate::indexed::IndexedObject;
use crate::kind::{ColumnType, Encoded, Kind, Problem, Scope};
use crate::value::ToColumnValue;

/// The column type that a field's own type asks for.
pub const fn column_type<R, T: ToColumnValue>(_: fn(&R) -> Option<&T>) -> ColumnType {
    T::TYPE
}

/// The declared column type of a field.
///
/// # Panics
/// Where the column cannot hold the field's values: in a constant, a compile error.
pub const fn declared_column_type<R, T: ToColumnValue>(declared: ColumnType, _: fn(&R) -> Option<&T>) -> ColumnType {
    let holds = match (declared, T::TYPE) {
        (ColumnType::Text { .. }, ColumnType::Text { .. })
        | (ColumnType::Int32, ColumnType::Int32)
        | (ColumnType::Int64, ColumnType::Int32 | ColumnType::Int64)
        | (ColumnType::UInt64, ColumnType::UInt64)
        | (ColumnType::Bool, ColumnType::Bool)
        | (ColumnType::Double, ColumnType::Double)
        | (ColumnType::Time, ColumnType::Time) => true,
        (
            ColumnType::Text { .. }
            | ColumnType::Int32
            | ColumnType::Int64
            | ColumnType::UInt64
            | ColumnType::Bool
            | ColumnType::Double
            | ColumnType::Time,
            _,
        ) => false,
    };
    assert!(holds, "a column of this SQL type cannot hold the field's values");
    declared
}

impl Kind {
    /// The kind of a hand-written type, to stand in a [`Registry`](crate::kind::Registry)
    /// beside generated ones. `manifest` is its CRD as YAML, or empty where others
    /// install it.
    ///
    /// The singular name is the lower-case kind. The `proto` column stays NULL: the
    /// type has no message encoding.
    ///
    /// # Assumptions
    /// Called once per kind at start: names that the type computes are kept for the
    /// life of the process. The kind's tables are part of the registry's schemas.
    pub fn of<K>(manifest: &'static str) -> Self
    where
        K: IndexedObject + Resource<DynamicType = ()> + DeserializeOwned,
        K::Scope: 'static,
    {
        let name = forever(K::kind(&()));
        let scope = if TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>() {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        Self {
            name,
            group: forever(K::group(&())),
            version: forever(K::version(&())),
            plural: forever(K::plural(&())),
            singular: name.to_ascii_lowercase().leak(),
            scope,
            table: K::TABLE,
            columns: K::COLUMNS,
            keys: K::KEYS,
            manifest,
            encode: encode::<K>,
            ..Self::EMPTY
        }
    }
}

fn forever(text: Cow<'static, str>) -> &'static str {
    match text {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => text.leak(),
    }
}

/// No message bytes; only whether the text fits the type.
fn encode<K: DeserializeOwned>(text: &str) -> Encoded {
    let problems = match serde_json::from_str::<K>(text) {
        Ok(_) => Vec::new(),
        Err(error) => vec![Problem {
            path: String::new(),
            message: error.to_string(),
        }],
    };
    Encoded { proto: None, problems }
}
