//! The next page of a pass, listed while the one before it is patched: the API server lists and writes at the same
//! time. Never the first page of a pass, which verifies only what it sees after the pass before it has ended.

use tokio::task::JoinSet;

use super::objects::{Objects, Page};

/// A page that is being listed. Dropped, the list is given up.
pub(super) struct Prefetch {
    token: String,
    list: JoinSet<Page>,
}

impl Prefetch {
    /// Begins to list the page that goes on with this token.
    pub(super) fn begin(objects: &Objects, token: &str) -> Self {
        let (objects, own) = (objects.clone(), token.to_owned());
        let mut list = JoinSet::new();
        list.spawn(async move { objects.page(Some(own)).await });
        Self {
            token: token.to_owned(),
            list,
        }
    }

    /// The page that goes on with `token`; `None` where this is another one.
    pub(super) async fn page(mut self, token: Option<&str>) -> Option<Page> {
        if token != Some(self.token.as_str()) {
            return None;
        }
        self.list.join_next().await?.ok()
    }
}
