//! A page of what a query found.

use crate::stored::Stored;

/// Some rows of a query, in its order.
#[derive(Clone, Debug)]
pub struct Page<T = Stored> {
    /// The rows.
    pub items: Vec<T>,
    /// Fetches the next page; `None` where this one is the last.
    pub continue_token: Option<String>,
}
