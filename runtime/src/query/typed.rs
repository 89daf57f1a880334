//! The query type of a kind: a generated module declares it, so that its methods need no
//! import. What they do is said once, in the macro here.

use super::state::State;
use crate::kind::ColumnType;
use crate::store::Select;
use crate::store::select::{Condition, Direction, Label, Order};

/// A query type that carries its state.
pub trait TypedQuery: Sized {
    /// How far the query is narrowed.
    type State: State;
    /// The same query in another state.
    type In<S: State>: TypedQuery<State = S>;

    /// What was gathered so far.
    fn select(&mut self) -> &mut Select;

    /// The same query, with a state that its last condition earned.
    fn into_state<S: State>(self) -> Self::In<S>;
}

impl Select {
    /// Only objects that carry this label with one of these values.
    pub fn label_one_of(&mut self, key: &str, values: &[&str]) {
        self.labels.push(Label {
            key: key.to_owned(),
            values: owned(values),
        });
    }

    /// Only objects that carry a label of this key, or only those that do not: with one of these
    /// values, or with any where none is given.
    pub fn side_label(&mut self, key: &str, values: &[&str], present: bool) {
        self.side("labels", key, values, present);
    }

    /// Only objects that carry this annotation.
    pub fn annotation(&mut self, key: &str, value: &str) {
        self.side("annotations", key, &[value], true);
    }

    fn side(&mut self, suffix: &'static str, key: &str, values: &[&str], present: bool) {
        self.conditions.push(Condition::Side {
            suffix,
            key: key.to_owned(),
            values: owned(values),
            present,
        });
    }

    /// Only rows without a value in that base column.
    pub fn without(&mut self, column: &'static str) {
        self.conditions.push(Condition::Null { column });
    }

    /// Only rows with a value in that base column.
    pub fn with(&mut self, column: &'static str) {
        self.conditions.push(Condition::NotNull { column });
    }

    /// Latest first in that base column of times, after any order given before.
    pub fn newest_first(&mut self, column: &'static str) {
        self.order.push(Order {
            column,
            ty: ColumnType::Time,
            direction: Direction::Descending,
        });
    }

    /// At most so many rows a page.
    pub fn limit(&mut self, rows: u32) {
        self.limit = Some(rows);
    }

    /// Accepts that the whole table is read.
    pub fn allow_scan(&mut self) {
        self.scan = true;
    }
}

fn owned(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

/// Declares the query type of a kind with a method for each of its columns.
///
/// A column is `keyed` where a key starts with it and `unkeyed` otherwise, and holds `text`,
/// `names(Enum)` or `value(Type)`. A pair compares both halves of a field at once.
#[macro_export]
macro_rules! typed_query {
    (
        $(#[$doc:meta])*
        pub struct $query:ident of $kind:path;
        columns {$(
            $(#[$column_doc:meta])*
            $keyed:ident $column:ident $sql:literal: $sort:ident $(($ty:ty))?;
        )*}
        pairs {$(
            $(#[$pair_doc:meta])*
            $pair:ident: $first:ident, $second:ident;
        )*}
    ) => {
        /// The kind's own columns, as types.
        pub mod column {$(
            $crate::query_column! {
                $(#[$column_doc])*
                $keyed $column $sql, $sort $(($ty))?
            }
        )*}

        $(#[$doc])*
        #[must_use = "a query does nothing until it is fetched"]
        pub struct $query<S = $crate::query::All> {
            select: $crate::query::Select,
            state: std::marker::PhantomData<S>,
        }

        impl<S: $crate::query::State> $query<S> {
            $(
                $(#[$column_doc])*
                pub fn $column(self) -> $crate::query::Filter<Self, column::$column> {
                    $crate::query::Filter::new(self)
                }
            )*

            $(
                $(#[$pair_doc])*
                pub fn $pair(
                    self,
                    namespace: &str,
                    name: &str,
                ) -> $query<<column::$first as $crate::query::Column>::Narrowed<S>> {
                    $crate::query::Filter::<Self, column::$first>::new(self)
                        .eq_both::<column::$second>(namespace, name)
                }
            )*
        }

        $crate::query_common!($query of $kind);
    };
}

/// What the query types of all kinds have in common.
#[doc(hidden)]
#[macro_export]
macro_rules! query_common {
    ($query:ident of $kind:path) => {
        impl $query {
            /// All rows, to be narrowed.
            pub fn all() -> Self {
                Self {
                    select: $crate::query::Select::all(&$kind),
                    state: std::marker::PhantomData,
                }
            }

            /// The objects created last, by the key on `create_time`.
            pub fn newest(mut self, rows: u32) -> $query<$crate::query::Newest> {
                self.select.newest_first("create_time");
                self.select.limit(rows);
                $crate::query::TypedQuery::into_state(self)
            }
        }

        impl<S: $crate::query::State> $crate::query::TypedQuery for $query<S> {
            type State = S;
            type In<T: $crate::query::State> = $query<T>;

            fn select(&mut self) -> &mut $crate::query::Select {
                &mut self.select
            }

            fn into_state<T: $crate::query::State>(self) -> $query<T> {
                $query {
                    select: self.select,
                    state: std::marker::PhantomData,
                }
            }
        }

        impl<S: $crate::query::State> $query<S> {
            $crate::query_common! { @column
                /// Kubernetes UID, the primary key.
                uid
            }
            $crate::query_common! { @column
                /// API group and version.
                group_ver
            }
            $crate::query_common! { @column
                /// Kubernetes namespace; narrows.
                namespace
            }
            $crate::query_common! { @column
                /// Kubernetes name; narrows only after the namespace.
                name
            }
            $crate::query_common! { @column
                /// Kubernetes resource version.
                res_version
            }
            $crate::query_common! { @column
                /// Creation of the object; narrows.
                create_time
            }
            $crate::query_common! { @column
                /// Last write that changed the row.
                update_time
            }
            $crate::query_common! { @column
                /// Soft delete; a comparison narrows.
                delete_time
            }
            $crate::query_common! { @column
                /// Eviction from etcd.
                evicted_time
            }

            /// Only objects that carry this label. Narrows, by the key on labels.
            pub fn label(self, key: &str, value: &str) -> $query<$crate::query::Narrowed> {
                self.label_one_of(key, &[value])
            }

            /// Only objects that carry this label with one of these values: `key in (…)`. Narrows.
            pub fn label_one_of(
                mut self,
                key: &str,
                values: &[&str],
            ) -> $query<$crate::query::Narrowed> {
                self.select.label_one_of(key, values);
                $crate::query::TypedQuery::into_state(self)
            }

            /// Only objects that do not carry this label with one of these values: `key notin (…)`.
            /// As in Kubernetes, an object without the label matches.
            pub fn label_none_of(
                self,
                key: &str,
                values: &[&str],
            ) -> $query<S::Filtered<$crate::query::column::labels>> {
                // None of no values is everything, and the side table takes none for any.
                match values {
                    [] => $crate::query::TypedQuery::into_state(self),
                    values => self.side_label(key, values, false),
                }
            }

            /// Only objects that carry a label of this key, whatever its value.
            pub fn has_label(
                self,
                key: &str,
            ) -> $query<S::Filtered<$crate::query::column::labels>> {
                self.side_label(key, &[], true)
            }

            /// Only objects that carry no label of this key.
            pub fn lacks_label(
                self,
                key: &str,
            ) -> $query<S::Filtered<$crate::query::column::labels>> {
                self.side_label(key, &[], false)
            }

            fn side_label(
                mut self,
                key: &str,
                values: &[&str],
                present: bool,
            ) -> $query<S::Filtered<$crate::query::column::labels>> {
                self.select.side_label(key, values, present);
                $crate::query::TypedQuery::into_state(self)
            }

            /// Only objects that carry this annotation. No key holds annotations.
            pub fn annotation(
                mut self,
                key: &str,
                value: &str,
            ) -> $query<S::Filtered<$crate::query::column::annotations>> {
                self.select.annotation(key, value);
                $crate::query::TypedQuery::into_state(self)
            }

            /// Only objects that are not deleted, whether or not the cluster still holds them.
            pub fn live(mut self) -> Self {
                self.select.without("delete_time");
                self
            }

            /// Only objects that are deleted.
            pub fn deleted(mut self) -> Self {
                self.select.with("delete_time");
                self
            }

            /// Only objects that live in SQL alone.
            pub fn evicted(mut self) -> Self {
                self.select.with("evicted_time");
                self
            }

            /// Newest first by the time of creation.
            pub fn order_by_create_time(mut self) -> Self {
                self.select.newest_first("create_time");
                self
            }

            /// Newest first by the time of the last write.
            pub fn order_by_update_time(mut self) -> Self {
                self.select.newest_first("update_time");
                self
            }

            /// At most so many rows a page; 500 where nothing is said.
            pub fn limit(mut self, rows: u32) -> Self {
                self.select.limit(rows);
                self
            }

            /// Accepts that the whole table is read.
            pub fn allow_scan(mut self) -> $query<$crate::query::Narrowed> {
                self.select.allow_scan();
                $crate::query::TypedQuery::into_state(self)
            }

            /// Runs the query: the first page, in the query's order. Rows without an order come by uid.
            pub fn fetch<'a>(
                &'a self,
                store: &'a dyn $crate::query::MetadataStorage,
            ) -> $crate::query::Fetched<'a, $crate::query::Page>
            where
                S: $crate::query::Runnable,
            {
                store.select(&self.select, None)
            }

            /// The page after the one that `continue_token` came with. The limit may be another one.
            pub fn fetch_after<'a>(
                &'a self,
                store: &'a dyn $crate::query::MetadataStorage,
                continue_token: &'a str,
            ) -> $crate::query::Fetched<'a, $crate::query::Page>
            where
                S: $crate::query::Runnable,
            {
                store.select(&self.select, Some(continue_token))
            }

            /// The first row in the query's order.
            pub fn fetch_one<'a>(
                &self,
                store: &'a dyn $crate::query::MetadataStorage,
            ) -> $crate::query::Fetched<'a, Option<$crate::query::Stored>>
            where
                S: $crate::query::Runnable,
            {
                $crate::query::first(store, &self.select)
            }

            /// The SQL text of the first page and the values it is bound to.
            pub fn to_sql(&self, dialect: $crate::query::Dialect) -> $crate::query::Statement
            where
                S: $crate::query::Runnable,
            {
                self.select.statement(dialect)
            }
        }
    };
    (@column $(#[$doc:meta])* $column:ident) => {
        $(#[$doc])*
        pub fn $column(self) -> $crate::query::Filter<Self, $crate::query::column::$column> {
            $crate::query::Filter::new(self)
        }
    };
}
