//! The query type of a kind: a generated module declares it, so that its methods need no
//! import. What they do is said once, in the macro here.

use super::column::Column;
use super::joined::{Joined, References};
use super::order::Ordering;
use super::projection::{Columns, Projection};
use super::state::{Runnable, State};
use crate::store::Select;

/// A query type that carries its state.
pub trait TypedQuery: Sized {
    /// How far the query is narrowed.
    type State: State;
    /// The same query in another state.
    type In<S: State>: TypedQuery<State = S, Base = Self::Base>;
    /// The query that every query of the kind begins with.
    type Base: 'static;

    /// What was gathered so far.
    fn select(&self) -> &Select;

    /// What was gathered so far, to add to it.
    fn select_mut(&mut self) -> &mut Select;

    /// The same query, with a state that its last condition earned.
    fn into_state<S: State>(self) -> Self::In<S>;

    /// The query, ordered by a column once it is said which way.
    fn ordered_by<C: Column>(self, _: C) -> Ordering<Self, C> {
        Ordering::new(self)
    }

    /// The query, asked for columns alone.
    fn projected<C: Columns<Self::Base>>(self, _: C) -> Projection<Self, C>
    where
        Self::State: Runnable,
    {
        Projection::new(self)
    }

    /// The query, with what its rows refer to.
    fn joined<R: References<Self::Base>>(self, references: R) -> Joined<Self, R>
    where
        Self::State: Runnable,
    {
        Joined::new(self, references)
    }
}

/// Declares the query type of a kind with a method for each of its columns.
///
/// A column is `keyed` where a key starts with it and `unkeyed` otherwise, and holds `text`,
/// `names(Enum)` or `value(Type)`; its value is a constant in the module `constants`. A pair compares both
/// halves of a field at once.
#[macro_export]
macro_rules! typed_query {
    (
        $(#[$doc:meta])*
        pub struct $query:ident of $kind:path;
        columns {$(
            $(#[$column_doc:meta])*
            $keyed:ident $column:ident $constant:ident $sql:literal: $sort:ident $(($ty:ty))?;
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

            impl $crate::query::ColumnOf<super::$query> for $column {}
        )*}

        /// All columns as values, to order by and to select.
        pub mod constants {
            pub use $crate::query::base::*;
            $(
                $(#[$column_doc])*
                pub const $constant: super::column::$column = super::column::$column;
            )*
        }

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
            type Base = $query;

            fn select(&self) -> &$crate::query::Select {
                &self.select
            }

            fn select_mut(&mut self) -> &mut $crate::query::Select {
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

            /// Ordered by this column, after any order given before: `.order_by(UPDATE_TIME).desc()`.
            pub fn order_by<C: $crate::query::ColumnOf<$query>>(
                self,
                column: C,
            ) -> $crate::query::Ordering<Self, C> {
                $crate::query::TypedQuery::ordered_by(self, column)
            }

            /// Asks for these columns in place of objects: rows are tuples of their values, and no
            /// object's text is read.
            pub fn select<C: $crate::query::Columns<$query>>(
                self,
                columns: C,
            ) -> $crate::query::Projection<Self, C>
            where
                S: $crate::query::Runnable,
            {
                $crate::query::TypedQuery::projected(self, columns)
            }

            /// Brings the objects that the rows refer to, by one reference or a tuple of them.
            pub fn with<R: $crate::query::References<$query>>(
                self,
                references: R,
            ) -> $crate::query::Joined<Self, R>
            where
                S: $crate::query::Runnable,
            {
                $crate::query::TypedQuery::joined(self, references)
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

            /// All rows in the query's order, fetched a page at a time: `limit` is the size of a page.
            pub fn stream<'a>(
                &'a self,
                store: &'a dyn $crate::query::MetadataStorage,
            ) -> $crate::query::Streamed<'a, $crate::query::Stored>
            where
                S: $crate::query::Runnable,
            {
                $crate::query::all(store, &self.select)
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
