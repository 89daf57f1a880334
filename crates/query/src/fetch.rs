//! Runs a query: a page, the first row, or all rows one after the other. The functions are not generic over kinds, so
//! that query types stay thin.

use std::future::Future;
use std::pin::Pin;

use futures::stream::{self, Stream, StreamExt, TryStreamExt};

use crate::page::Page;
use crate::reader::Reader;
use crate::select::Select;
use crate::stored::Stored;

/// A future result.
pub type Fetched<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A stream of rows, fetched page by page.
pub type Streamed<'a, T, E> = Pin<Box<dyn Stream<Item = Result<T, E>> + Send + 'a>>;

/// The first row in the query's order.
#[doc(hidden)]
pub fn first<'a, R: Reader + ?Sized>(reader: &'a R, select: &Select) -> Fetched<'a, Option<Stored>, R::Error> {
    let mut select = select.clone();
    select.limit(1);
    Box::pin(async move { Ok(reader.select(&select, None).await?.items.pop()) })
}

/// All rows in the query's order.
#[doc(hidden)]
pub fn all<'a, R: Reader + ?Sized>(reader: &'a R, select: &'a Select) -> Streamed<'a, Stored, R::Error> {
    streamed(move |token| Box::pin(async move { reader.select(select, token.as_deref()).await }))
}

/// The items of all pages. Holds one page at a time, and fetches the next when it is used up.
pub(super) fn streamed<'a, T, E, P>(page: P) -> Streamed<'a, T, E>
where
    T: Send + 'a,
    E: Send + 'a,
    P: Fn(Option<String>) -> Fetched<'a, Page<T>, E> + Send + 'a,
{
    let pages = stream::try_unfold((page, Some(None)), async |(page, next)| {
        let Some(token) = next else { return Ok(None) };
        let found = page(token).await?;
        let items = stream::iter(found.items.into_iter().map(Ok));
        Ok::<_, E>(Some((items, (page, found.continue_token.map(Some)))))
    });
    pages.try_flatten().boxed()
}
