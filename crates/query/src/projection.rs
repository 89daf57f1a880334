//! Queries of columns instead of objects. Rows are typed tuples, and no text of an object is read.

use std::marker::PhantomData;

use kindex_model::kind::ColumnType;
use kindex_model::value::Value;

use super::column::{Column, ColumnOf};
use super::fetch::{Fetched, Streamed, streamed};
use super::narrowing::Runnable;
use super::typed::TypedQuery;
use crate::{MistypedColumn, Page, Reader, Select, Selection};

/// Some columns of a query of type `Q`: a tuple of up to eight.
pub trait Columns<Q>: 'static {
    /// A row: a tuple of the columns' values.
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
    Q::Narrowing: Runnable,
    C: Columns<Q::Base>,
{
    /// Selects columns `C` of `query`.
    pub fn new(query: Q, _: C) -> Self {
        Self {
            query,
            columns: PhantomData,
        }
    }

    /// The first page, in the query's order.
    pub fn fetch<'a, R: Reader + ?Sized>(&'a self, store: &'a R) -> Fetched<'a, Page<C::Row>, R::Error> {
        page::<Q, C, R>(store, self.query.select(), None)
    }

    /// The page after the one that `continue_token` came with.
    pub fn fetch_after<'a, R: Reader + ?Sized>(
        &'a self,
        store: &'a R,
        token: &str,
    ) -> Fetched<'a, Page<C::Row>, R::Error> {
        page::<Q, C, R>(store, self.query.select(), Some(token.to_owned()))
    }

    /// All rows in the query's order, fetched a page at a time.
    pub fn stream<'a, R: Reader + ?Sized>(&'a self, store: &'a R) -> Streamed<'a, C::Row, R::Error> {
        let select = self.query.select();
        streamed(move |token| page::<Q, C, R>(store, select, token))
    }
}

impl<Q, C> Selection for Projection<Q, C>
where
    Q: TypedQuery,
    Q::Narrowing: Runnable,
    C: Columns<Q::Base>,
{
    fn selection(&self) -> &Select {
        self.query.select()
    }

    fn columns(&self) -> Option<&'static [(&'static str, ColumnType)]> {
        Some(C::COLUMNS)
    }
}

fn page<'a, Q: TypedQuery, C: Columns<Q::Base>, R: Reader + ?Sized>(
    store: &'a R,
    select: &'a Select,
    token: Option<String>,
) -> Fetched<'a, Page<C::Row>, R::Error> {
    Box::pin(async move {
        let page = store.project(select, C::COLUMNS, token.as_deref()).await?;
        let mistyped = MistypedColumn {
            kind: select.kind().name,
        };
        let rows = page.items.into_iter().map(|cells| C::read(cells).ok_or(mistyped));
        Ok(Page {
            items: rows.collect::<Result<_, _>>()?,
            continue_token: page.continue_token,
        })
    })
}
