//! Running a query on a store. One function for all kinds, so that a query type is only names.

use std::future::Future;
use std::pin::Pin;

use crate::store::{MetadataStorage, Select, StoreError, Stored};

/// An answer on its way.
pub type Fetched<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The first row in the query's order.
#[doc(hidden)]
pub fn first<'a>(store: &'a dyn MetadataStorage, select: &Select) -> Fetched<'a, Option<Stored>> {
    let mut select = select.clone();
    select.limit(1);
    Box::pin(async move { Ok(store.select(&select, None).await?.items.pop()) })
}
