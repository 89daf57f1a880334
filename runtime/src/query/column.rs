//! Columns as types, and the ones that every kind has. A column's type is named as SQL
//! names the column, because the compiler's messages show it.

use std::marker::PhantomData;

use super::state::State;
use crate::kind::ColumnType;
use crate::value::Value;

/// A column that a query may filter or order by.
pub trait Column {
    /// What the column is compared with.
    type Operand<'a>;
    /// The state of a query after a comparison: narrowed, where a key starts with the column.
    type Narrowed<S: State>: State;
    /// The name in SQL.
    const NAME: &'static str;
    /// What a row holds in it.
    const TYPE: ColumnType;

    /// The operand as the store binds it.
    fn bind(operand: Self::Operand<'_>) -> Value;
}

/// A column of text, which may be searched by prefix.
pub trait TextColumn: Column {}

/// A column that holds the names of an enum.
pub trait EnumColumn: Column {}

/// An enum's column, compared with text.
pub struct ByName<C>(PhantomData<C>);

impl<C: EnumColumn> Column for ByName<C> {
    type Operand<'a> = &'a str;
    type Narrowed<S: State> = C::Narrowed<S>;
    const NAME: &'static str = C::NAME;
    const TYPE: ColumnType = C::TYPE;

    fn bind(operand: Self::Operand<'_>) -> Value {
        Value::Text(operand.to_owned())
    }
}

impl<C: EnumColumn> TextColumn for ByName<C> {}

/// Declares a column type: `text`, `names(Enum)` for an enum of a message, or `value(Type)`
/// for another [`ToColumnValue`](crate::value::ToColumnValue); `keyed` where a key starts
/// with the column.
#[doc(hidden)]
#[macro_export]
macro_rules! query_column {
    ($(#[$doc:meta])* keyed $name:ident $sql:expr, $sort:ident $(($ty:ty))?) => {
        $crate::query_column!(@declare [$(#[$doc])*] $name);
        $crate::query_column!(@$sort $name $sql, ($crate::query::Narrowed) $($ty)?);
    };
    ($(#[$doc:meta])* unkeyed $name:ident $sql:expr, $sort:ident $(($ty:ty))?) => {
        $crate::query_column!(@declare [$(#[$doc])*] $name);
        $crate::query_column!(@$sort $name $sql, (S::Filtered<Self>) $($ty)?);
    };
    (@declare [$(#[$doc:meta])*] $name:ident) => {
        $(#[$doc])*
        #[expect(non_camel_case_types, reason = "the compiler's messages name a column as SQL does")]
        pub enum $name {}
    };
    (@text $name:ident $sql:expr, ($state:ty)) => {
        $crate::query_column!(@implement $name $sql, ($state) str, &'a str, operand => operand);
        impl $crate::query::TextColumn for $name {}
    };
    (@names $name:ident $sql:expr, ($state:ty) $ty:ty) => {
        $crate::query_column!(@implement $name $sql, ($state) str, $ty, operand => operand.as_str_name());
        impl $crate::query::EnumColumn for $name {}
    };
    (@value $name:ident $sql:expr, ($state:ty) $ty:ty) => {
        $crate::query_column!(@implement $name $sql, ($state) $ty, $ty, operand => operand);
    };
    (@implement $name:ident $sql:expr, ($state:ty) $stored:ty, $operand:ty, $value:ident => $bound:expr) => {
        impl $crate::query::Column for $name {
            type Operand<'a> = $operand;
            type Narrowed<S: $crate::query::State> = $state;
            const NAME: &'static str = $sql;
            const TYPE: $crate::kind::ColumnType = <$stored as $crate::value::ToColumnValue>::TYPE;

            fn bind($value: Self::Operand<'_>) -> $crate::value::Value {
                $crate::value::ToColumnValue::to_column_value(&$bound)
            }
        }
    };
}

query_column! {
    /// The primary key.
    keyed uid "uid", text
}

query_column! {
    /// API group and version.
    unkeyed group_ver "group_ver", text
}

query_column! {
    /// Kubernetes namespace, first column of the key on namespace and name.
    keyed namespace "namespace", text
}

query_column! {
    /// Kubernetes name. Its key starts with the namespace.
    unkeyed name "name", text
}

query_column! {
    /// Kubernetes resource version.
    unkeyed res_version "res_version", value(i64)
}

query_column! {
    /// Creation of the object; has a key.
    keyed create_time "create_time", value(jiff::Timestamp)
}

query_column! {
    /// Last write that changed the row.
    unkeyed update_time "update_time", value(jiff::Timestamp)
}

query_column! {
    /// Soft delete; has a key.
    keyed delete_time "delete_time", value(jiff::Timestamp)
}

query_column! {
    /// Eviction from etcd.
    unkeyed evicted_time "evicted_time", value(jiff::Timestamp)
}

query_column! {
    /// The side table of labels, asked for a key without a value.
    unkeyed labels "labels", text
}

query_column! {
    /// The side table of annotations, whose values no key holds.
    unkeyed annotations "annotations", text
}
