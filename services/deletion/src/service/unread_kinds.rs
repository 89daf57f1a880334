//! Which kinds the last walk over tombstones could not read, and why: a failure that lasts is logged once.

use std::collections::BTreeMap;

/// The failure of each kind that could not be read.
#[derive(Debug, Default)]
pub(super) struct UnreadKinds(BTreeMap<String, String>);

impl UnreadKinds {
    /// A walk could not read a kind, and not because of an outage. Whether that is logged: not if it failed for the
    /// same reason the last time.
    pub(super) fn failed(&mut self, kind: &str, why: String) -> bool {
        let is_news = self.0.get(kind) != Some(&why);
        self.0.insert(kind.to_owned(), why);
        is_news
    }

    /// A walk could read a kind.
    pub(super) fn read(&mut self, kind: &str) {
        self.0.remove(kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_news_until_it_is_known_and_again_after_its_end() {
        let mut kinds = UnreadKinds::default();
        let mut failed = |kind: &str, why: &str| kinds.failed(kind, why.to_owned());
        assert!(failed("Run", "no table"));
        assert!(!failed("Run", "no table"));
        assert!(failed("Model", "no table"), "of another kind");
        assert!(failed("Run", "no permission"), "for another reason");
        kinds.read("Run");
        assert!(kinds.failed("Run", "no permission".to_owned()), "it was read meanwhile");
        assert!(!kinds.failed("Model", "no table".to_owned()));
    }
}
