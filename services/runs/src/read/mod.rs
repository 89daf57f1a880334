//! Reading: runs by filter, by words and one by one, their series for charts, and what a project holds. What a request
//! means, and what is made of points, is pure; `Reader` asks the store.

mod include;

mod filter;

mod token;

mod listing;

mod select;

mod rows;

mod metrics;

mod chart;

mod compare;

mod search;

mod project;

mod reader;

pub use chart::{Chart, ChartRequest};
pub use metrics::Range;
pub use reader::{Points, Reader};
