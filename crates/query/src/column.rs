//! Columns as types, and the ones that every kind has. A column's type is named as SQL
//! names the column, because the compiler's messages show it.

use std::marker::PhantomData;

use kindex_model::kind::ColumnType;
use kindex_model::value::{FromColumnValue, Value};

use super::narrowing::Narrowing;

/// A column that a query may filter or order by, or ask for.
pub trait Column: 'static {
    /// What the column is compared with.
    type Operand<'a>;
    /// How far a query is narrowed after a comparison: `Narrowed`, where a key starts with the column.
    type Narrowed<S: Narrowing>: Narrowing;
    /// What a row gives back.
    type Output: Send + 'static;
    /// The name in SQL.
    const NAME: &'static str;
    /// What a row holds in it.
    const TYPE: ColumnType;

    /// The operand as the store binds it.
    fn bind(operand: Self::Operand<'_>) -> Value;

    /// The value of a row; `None` where it is not one that the column can hold.
    fn read(value: Value) -> Option<Self::Output>;
}

/// A column that a query of type `Q` has: its kind's own, or one of every kind.
#[diagnostic::on_unimplemented(
    message = "the kind of this query has no column `{Self}`",
    label = "a column of another kind",
    note = "a kind's columns are in its module: `pipeline_run::STATE`"
)]
pub trait ColumnOf<Q>: Column {}

/// A column of text, which may be searched by prefix.
pub trait TextColumn: Column {}

/// A column that holds the names of an enum.
pub trait EnumColumn: Column {}

/// An enum's column, compared with text.
pub struct ByName<C>(PhantomData<C>);

impl<C: EnumColumn> Column for ByName<C> {
    type Operand<'a> = &'a str;
    type Narrowed<S: Narrowing> = C::Narrowed<S>;
    type Output = Option<String>;
    const NAME: &'static str = C::NAME;
    const TYPE: ColumnType = C::TYPE;

    fn bind(operand: Self::Operand<'_>) -> Value {
        Value::Text(operand.to_owned())
    }

    fn read(value: Value) -> Option<Self::Output> {
        FromColumnValue::from_column_value(value)
    }
}

impl<C: EnumColumn> TextColumn for ByName<C> {}

/// The name of an enum's value as a row holds it: one that the enum does not know is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnumName<E> {
    text: String,
    known: Option<E>,
}

impl<E> EnumName<E> {
    /// A name, read by the enum.
    pub fn read(value: Value, of: impl Fn(&str) -> Option<E>) -> Option<Option<Self>> {
        let text: Option<String> = FromColumnValue::from_column_value(value)?;
        Some(text.map(|text| Self { known: of(&text), text }))
    }

    /// The full name.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value; `None` for a name of a newer producer.
    pub fn known(&self) -> Option<&E> {
        self.known.as_ref()
    }
}

/// Declares a column type: `text`, `names(Enum)` for an enum of a message, or `value(Type)`
/// for another [`ToColumnValue`](kindex_model::value::ToColumnValue), `required_text` and `required(Type)`
/// where every row has a value; `keyed` where a key starts with the column.
#[doc(hidden)]
#[macro_export]
macro_rules! query_column {
    ($(#[$doc:meta])* keyed $name:ident $sql:expr, $sort:ident $(($ty:ty))?) => {
        $crate::query_column!(@declare [$(#[$doc])*] $name);
        $crate::query_column!(@$sort $name $sql, ($crate::Narrowed) $($ty)?);
    };
    ($(#[$doc:meta])* unkeyed $name:ident $sql:expr, $sort:ident $(($ty:ty))?) => {
        $crate::query_column!(@declare [$(#[$doc])*] $name);
        $crate::query_column!(@$sort $name $sql, (S::Filtered<Self>) $($ty)?);
    };
    (@declare [$(#[$doc:meta])*] $name:ident) => {
        $(#[$doc])*
        #[expect(non_camel_case_types, reason = "the compiler's messages name a column as SQL does")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
    };
    (@text $name:ident $sql:expr, ($narrowing:ty)) => {
        $crate::query_column!(@value $name $sql, ($narrowing) str, &'a str, Option<String>);
        impl $crate::TextColumn for $name {}
    };
    (@required_text $name:ident $sql:expr, ($narrowing:ty)) => {
        $crate::query_column!(@value $name $sql, ($narrowing) str, &'a str, String);
        impl $crate::TextColumn for $name {}
    };
    (@names $name:ident $sql:expr, ($narrowing:ty) $ty:ty) => {
        $crate::query_column!(
            @implement $name $sql, ($narrowing) str, $ty, Option<$crate::EnumName<$ty>>,
            operand => operand.as_str_name(),
            value => $crate::EnumName::read(value, <$ty>::from_str_name)
        );
        impl $crate::EnumColumn for $name {}
    };
    (@value $name:ident $sql:expr, ($narrowing:ty) $ty:ty) => {
        $crate::query_column!(@value $name $sql, ($narrowing) $ty, $ty, Option<$ty>);
    };
    (@required $name:ident $sql:expr, ($narrowing:ty) $ty:ty) => {
        $crate::query_column!(@value $name $sql, ($narrowing) $ty, $ty, $ty);
    };
    (@value $name:ident $sql:expr, ($narrowing:ty) $stored:ty, $operand:ty, $output:ty) => {
        $crate::query_column!(
            @implement $name $sql, ($narrowing) $stored, $operand, $output,
            operand => operand,
            value => $crate::model::value::FromColumnValue::from_column_value(value)
        );
    };
    (
        @implement $name:ident $sql:expr, ($narrowing:ty) $stored:ty, $operand:ty, $output:ty,
        $value:ident => $bound:expr, $cell:ident => $read:expr
    ) => {
        impl $crate::Column for $name {
            type Operand<'a> = $operand;
            type Narrowed<S: $crate::Narrowing> = $narrowing;
            type Output = $output;
            const NAME: &'static str = $sql;
            const TYPE: $crate::model::kind::ColumnType = <$stored as $crate::model::value::ToColumnValue>::TYPE;

            fn bind($value: Self::Operand<'_>) -> $crate::model::value::Value {
                $crate::model::value::ToColumnValue::to_column_value(&$bound)
            }

            fn read($cell: $crate::model::value::Value) -> Option<Self::Output> {
                $read
            }
        }
    };
}

query_column! {
    /// The primary key.
    keyed uid "uid", required_text
}

query_column! {
    /// API group and version.
    unkeyed group_ver "group_ver", required_text
}

query_column! {
    /// Kubernetes namespace, first column of the key on namespace and name.
    keyed namespace "namespace", required_text
}

query_column! {
    /// Kubernetes name. Its key starts with the namespace.
    unkeyed name "name", required_text
}

query_column! {
    /// Kubernetes resource version.
    unkeyed res_version "res_version", required(i64)
}

query_column! {
    /// Creation of the object; has a key.
    keyed create_time "create_time", required(jiff::Timestamp)
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

/// The columns of every kind as values, to order by and to select.
pub mod base {
    macro_rules! columns {
        ($($constant:ident $column:ident,)*) => {$(
            #[doc = concat!("`", stringify!($column), "`.")]
            pub const $constant: super::$column = super::$column;

            impl<Q> super::ColumnOf<Q> for super::$column {}
        )*};
    }

    columns! {
        UID uid,
        GROUP_VER group_ver,
        NAMESPACE namespace,
        NAME name,
        RES_VERSION res_version,
        CREATE_TIME create_time,
        UPDATE_TIME update_time,
        DELETE_TIME delete_time,
        EVICTED_TIME evicted_time,
    }
}
