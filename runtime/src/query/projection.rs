//! Queries that ask for columns and not for objects: typed tuples, and no text of an object is read.

use std::marker::PhantomData;

use super::column::{Column, ColumnOf};
use super::fetch::{Fetched, Streamed, streamed};
use super::state::Runnable;
use super::typed::TypedQuery;
use crate::kind::ColumnType;
use crate::store::{Dialect, MetadataStorage, Page, Select, Statement, StoreError};
use crate::value::Value;

/// Some columns of a query of type `Q`: a tuple of up to eight.
pub trait Columns<Q>: 'static {
    /// What a row gives back: a tuple of the columns' values.
    type Row: Send + 'static;

    /// Names in SQL, and what they hold.
    const COLUMNS: &'static [(&'static str, ColumnType)];

    /// A row of cells in that order; `None` where one is not of its column's type.
    fn read(cells: Vec<Value>) -> Option<Self::Row>;
}

macro_rules! columns {
    ($($column:ident)+) => {
        impl<Q, $($column: ColumnOf<Q>),+> Columns<Q> for ($($column,)+) {
            type Row = ($($column::Output,)+);

            const COLUMNS: &'static [(&'static str, ColumnType)] = &[$(($column::NAME, $column::TYPE)),+];

            fn read(cells: Vec<Value>) -> Option<Self::Row> {
                let mut cells = cells.into_iter();
                Some(($(<$column as Column>::read(cells.next()?)?,)+))
            }
        }
    };
}

columns!(A);
columns!(A B);
columns!(A B C);
columns!(A B C D);
columns!(A B C D E);
columns!(A B C D E F);
columns!(A B C D E F G);
columns!(A B C D E F G H);

/// A query whose rows are columns `C`.
#[must_use = "a query does nothing until it is fetched"]
pub struct Projection<Q, C> {
    query: Q,
    columns: PhantomData<C>,
}

impl<Q, C> Projection<Q, C>
where
    Q: TypedQuery,
    Q::State: Runnable,
    C: Columns<Q::Base>,
{
    /// Asks `query` for columns `C`.
    pub(super) fn new(query: Q) -> Self {
        Self {
            query,
            columns: PhantomData,
        }
    }

    /// The first page, in the query's order.
    pub fn fetch<'a>(&'a self, store: &'a dyn MetadataStorage) -> Fetched<'a, Page<C::Row>> {
        page::<Q, C>(store, self.query.select(), None)
    }

    /// The page after the one that `continue_token` came with.
    pub fn fetch_after<'a>(&'a self, store: &'a dyn MetadataStorage, token: &str) -> Fetched<'a, Page<C::Row>> {
        page::<Q, C>(store, self.query.select(), Some(token.to_owned()))
    }

    /// All rows in the query's order, fetched a page at a time.
    pub fn stream<'a>(&'a self, store: &'a dyn MetadataStorage) -> Streamed<'a, C::Row> {
        let select = self.query.select();
        streamed(move |token| page::<Q, C>(store, select, token))
    }

    /// The SQL text of the first page and the values it is bound to.
    pub fn to_sql(&self, dialect: Dialect) -> Statement {
        self.query.select().columns_statement(C::COLUMNS, dialect)
    }
}

fn page<'a, Q: TypedQuery, C: Columns<Q::Base>>(
    store: &'a dyn MetadataStorage,
    select: &'a Select,
    token: Option<String>,
) -> Fetched<'a, Page<C::Row>> {
    Box::pin(async move {
        let page = store.project(select, C::COLUMNS, token.as_deref()).await?;
        let rows = page
            .items
            .into_iter()
            .map(|cells| C::read(cells).ok_or_else(|| foreign(select)));
        Ok(Page {
            items: rows.collect::<Result<_, _>>()?,
            continue_token: page.continue_token,
        })
    })
}

/// A program of another schema has written what the column's type cannot hold.
fn foreign(select: &Select) -> StoreError {
    StoreError::Corrupt {
        kind: select.kind().name.to_owned(),
        uid: "?".to_owned(),
        message: "a column holds a value that is not of its type".to_owned(),
    }
}
