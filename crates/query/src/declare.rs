//! The macro that declares the query type of a kind in a generated module, so that its methods need no import.

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

            impl $crate::ColumnOf<super::$query> for $column {}
        )*}

        /// All columns as values, to order by and to select.
        pub mod constants {
            pub use $crate::base::*;
            $(
                $(#[$column_doc])*
                pub const $constant: super::column::$column = super::column::$column;
            )*
        }

        $(#[$doc])*
        #[must_use = "a query does nothing until it is fetched"]
        pub struct $query<S = $crate::WholeTable> {
            select: $crate::Select,
            narrowing: std::marker::PhantomData<S>,
        }

        impl<S: $crate::Narrowing> $query<S> {
            $(
                $(#[$column_doc])*
                pub fn $column(self) -> $crate::Filter<Self, column::$column> {
                    $crate::Filter::new(self)
                }
            )*

            $(
                $(#[$pair_doc])*
                pub fn $pair(
                    self,
                    namespace: &str,
                    name: &str,
                ) -> $query<<column::$first as $crate::Column>::Narrowed<S>> {
                    $crate::Filter::<Self, column::$first>::new(self)
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
                    select: $crate::Select::all(&$kind),
                    narrowing: std::marker::PhantomData,
                }
            }

            /// The objects created last, by the key on `create_time`.
            pub fn newest(mut self, rows: u32) -> $query<$crate::Newest> {
                self.select.newest_first("create_time");
                self.select.limit(rows);
                $crate::TypedQuery::with_narrowing(self)
            }
        }

        impl<S: $crate::Narrowing> $crate::TypedQuery for $query<S> {
            type Narrowing = S;
            type In<T: $crate::Narrowing> = $query<T>;
            type Base = $query;

            fn select(&self) -> &$crate::Select {
                &self.select
            }

            fn select_mut(&mut self) -> &mut $crate::Select {
                &mut self.select
            }

            fn with_narrowing<T: $crate::Narrowing>(self) -> $query<T> {
                $query {
                    select: self.select,
                    narrowing: std::marker::PhantomData,
                }
            }
        }

        impl<S: $crate::Narrowing> $query<S> {
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
            pub fn label(self, key: &str, value: &str) -> $query<$crate::Narrowed> {
                self.label_one_of(key, &[value])
            }

            /// Only objects that carry this label with one of these values: `key in (…)`. Narrows.
            pub fn label_one_of(
                mut self,
                key: &str,
                values: &[&str],
            ) -> $query<$crate::Narrowed> {
                self.select.label_one_of(key, values);
                $crate::TypedQuery::with_narrowing(self)
            }

            /// Only objects that do not carry this label with one of these values: `key notin (…)`.
            /// As in Kubernetes, an object without the label matches.
            pub fn label_none_of(
                self,
                key: &str,
                values: &[&str],
            ) -> $query<S::Filtered<$crate::column::labels>> {
                // Without values every row matches, but the side table would take that for any value.
                match values {
                    [] => $crate::TypedQuery::with_narrowing(self),
                    values => self.side_label(key, values, false),
                }
            }

            /// Only objects that carry a label of this key, whatever its value.
            pub fn has_label(
                self,
                key: &str,
            ) -> $query<S::Filtered<$crate::column::labels>> {
                self.side_label(key, &[], true)
            }

            /// Only objects that carry no label of this key.
            pub fn lacks_label(
                self,
                key: &str,
            ) -> $query<S::Filtered<$crate::column::labels>> {
                self.side_label(key, &[], false)
            }

            fn side_label(
                mut self,
                key: &str,
                values: &[&str],
                present: bool,
            ) -> $query<S::Filtered<$crate::column::labels>> {
                self.select.side_label(key, values, present);
                $crate::TypedQuery::with_narrowing(self)
            }

            /// Only objects that carry this annotation. No key holds annotations.
            pub fn annotation(
                mut self,
                key: &str,
                value: &str,
            ) -> $query<S::Filtered<$crate::column::annotations>> {
                self.select.annotation(key, value);
                $crate::TypedQuery::with_narrowing(self)
            }

            /// Only objects that are not deleted: live and archived ones.
            pub fn live(mut self) -> Self {
                self.select.without("delete_time");
                self
            }

            /// Only objects that are deleted.
            pub fn deleted(mut self) -> Self {
                self.select.with("delete_time");
                self
            }

            /// Only archived objects.
            pub fn evicted(mut self) -> Self {
                self.select.with("evicted_time");
                self
            }

            /// Ordered by this column, after any order given before: `.order_by(UPDATE_TIME).desc()`.
            pub fn order_by<C: $crate::ColumnOf<$query>>(
                self,
                column: C,
            ) -> $crate::Ordering<Self, C> {
                $crate::Ordering::new(self, column)
            }

            /// Selects these columns instead of objects. Rows are tuples of their values, and no
            /// object's text is read.
            pub fn select<C: $crate::Columns<$query>>(
                self,
                columns: C,
            ) -> $crate::Projection<Self, C>
            where
                S: $crate::Runnable,
            {
                $crate::Projection::new(self, columns)
            }

            /// Brings the objects that the rows refer to, by one reference or a tuple of them.
            pub fn with<R: $crate::References<$query>>(
                self,
                references: R,
            ) -> $crate::Joined<Self, R>
            where
                S: $crate::Runnable,
            {
                $crate::Joined::new(self, references)
            }

            /// At most so many rows a page; 500 by default.
            pub fn limit(mut self, rows: u32) -> Self {
                self.select.limit(rows);
                self
            }

            /// Accepts that the whole table is read.
            pub fn allow_scan(mut self) -> $query<$crate::Narrowed> {
                self.select.allow_scan();
                $crate::TypedQuery::with_narrowing(self)
            }

            /// Runs the query: the first page, in the query's order. Rows without an order come by uid.
            pub fn fetch<'a, R: $crate::Reader + ?Sized>(
                &'a self,
                store: &'a R,
            ) -> $crate::Fetched<'a, $crate::Page, R::Error>
            where
                S: $crate::Runnable,
            {
                store.select(&self.select, None)
            }

            /// The page after the one that `continue_token` came with. The limit may be another one.
            pub fn fetch_after<'a, R: $crate::Reader + ?Sized>(
                &'a self,
                store: &'a R,
                continue_token: &'a str,
            ) -> $crate::Fetched<'a, $crate::Page, R::Error>
            where
                S: $crate::Runnable,
            {
                store.select(&self.select, Some(continue_token))
            }

            /// All rows in the query's order, fetched a page at a time: `limit` is the size of a page.
            pub fn stream<'a, R: $crate::Reader + ?Sized>(
                &'a self,
                store: &'a R,
            ) -> $crate::Streamed<'a, $crate::Stored, R::Error>
            where
                S: $crate::Runnable,
            {
                $crate::all(store, &self.select)
            }

            /// The first row in the query's order.
            pub fn fetch_one<'a, R: $crate::Reader + ?Sized>(
                &self,
                store: &'a R,
            ) -> $crate::Fetched<'a, Option<$crate::Stored>, R::Error>
            where
                S: $crate::Runnable,
            {
                $crate::first(store, &self.select)
            }
        }

        impl<S: $crate::Runnable> $crate::Selection for $query<S> {
            fn selection(&self) -> &$crate::Select {
                &self.select
            }

            fn columns(&self) -> Option<&'static [(&'static str, $crate::model::kind::ColumnType)]> {
                None
            }
        }
    };
    (@column $(#[$doc:meta])* $column:ident) => {
        $(#[$doc])*
        pub fn $column(self) -> $crate::Filter<Self, $crate::column::$column> {
            $crate::Filter::new(self)
        }
    };
}
