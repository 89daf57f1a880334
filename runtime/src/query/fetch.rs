//! Running a query on a store: a page, the first row, or all rows one after the other. One function
//! for all kinds, so that a query type is only names.

use std::future::Future;
use std::pin::Pin;

use futures::stream::{self, Stream, StreamExt, TryStreamExt};

use crate::store::{MetadataStorage, Page, Select, StoreError, Stored};

/// An answer on its way.
pub type Fetched<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Rows on their way, page by page.
pub type Streamed<'a, T> = Pin<Box<dyn Stream<Item = Result<T, StoreError>> + Send + 'a>>;

/// The first row in the query's order.
#[doc(hidden)]
pub fn first<'a>(store: &'a dyn MetadataStorage, select: &Select) -> Fetched<'a, Option<Stored>> {
    let mut select = select.clone();
    select.limit(1);
    Box::pin(async move { Ok(store.select(&select, None).await?.items.pop()) })
}

/// All rows in the query's order.
#[doc(hidden)]
pub fn all<'a>(store: &'a dyn MetadataStorage, select: &'a Select) -> Streamed<'a, Stored> {
    streamed(move |token| Box::pin(async move { store.select(select, token.as_deref()).await }))
}

/// The items of all pages. One page is held at a time, and asked for when the one before is used up.
pub(super) fn streamed<'a, T, P>(page: P) -> Streamed<'a, T>
where
    T: Send + 'a,
    P: Fn(Option<String>) -> Fetched<'a, Page<T>> + Send + 'a,
{
    let pages = stream::try_unfold((page, Some(None)), async |(page, next)| {
        let Some(token) = next else { return Ok(None) };
        let found = page(token).await?;
        let items = stream::iter(found.items.into_iter().map(Ok));
        Ok::<_, StoreError>(Some((items, (page, found.continue_token.map(Some)))))
    });
    pages.try_flatten().boxed()
}
