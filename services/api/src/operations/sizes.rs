//! How much the server reads at once, of the cluster and of SQL.

/// Numbers of objects. What is more comes page by page; none of them says what a request finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of a page of a list where the caller does not say.
    pub page: u32,
    /// Of such a page at most, whatever the caller says: a page is in memory as a whole. Clients follow the token.
    pub page_max: u32,
    /// That are passed over at once where a list by conditions begins further on.
    pub passed: u32,
    /// Of the cluster's own list, where it is read as a whole for what left it lately.
    pub snapshot: u32,
    /// That are deleted at once, of a collection.
    pub deleted: u32,
    /// Changes in SQL that are read together for watches.
    pub changes: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            page: 500,
            page_max: 2000,
            passed: 2000,
            snapshot: 2000,
            deleted: 500,
            changes: 100,
        }
    }
}

impl Sizes {
    /// Objects of a page of which a caller wants so many; 0 where it does not say.
    pub(super) fn of_page(&self, wanted: u32) -> u32 {
        match wanted {
            0 => self.page,
            wanted => wanted.min(self.page_max),
        }
    }
}
