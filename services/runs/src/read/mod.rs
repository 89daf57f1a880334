//! Reading: runs by filter, by words and one by one, their series for charts, and what a project holds. What a request
//! means, and what is made of points, is pure; `Reader` asks the store.

mod include;

mod filter;

pub(crate) mod pages;

mod listing;

mod select;

mod rows;

mod metrics;

mod chart;

mod compare;

mod search;

mod project;

mod latest;

mod reader;

pub use chart::{Chart, ChartRequest};
pub use latest::Latest;
pub use metrics::Range;
pub use reader::Reader;

pub(crate) use filter::{check_pattern, glob};
pub(crate) use listing::page_size;
pub(crate) use pages::{PagePosition, SortKey, fingerprint};
pub(crate) use rows::{failed, fetch, number_of};
pub(crate) use select::{Statement, Value};

#[cfg(test)]
mod tests;
