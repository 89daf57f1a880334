//! Gives free pages of the file back to the system, some at a time.

use crate::store::statements::pages;
use crate::store::transaction::{Command, Failure, Tx};

/// Below so many free pages there is nothing to gain: they are used again.
const FREE_PAGES_MIN: i64 = 128;
/// Of so many pages of a file, one may be free.
const KEPT: i64 = 10;

/// Cuts free pages off; whether some may be left that are too many.
#[derive(Debug)]
pub(in crate::store) struct Shrink {
    pub(in crate::store) pages: u32,
}

impl Command for Shrink {
    type Answer = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Failure> {
        let (free, all) = pages::count(tx.step()?).await?;
        if !is_too_much(free, all) {
            return Ok(false);
        }
        pages::release(tx.change()?, self.pages).await?;
        // A file that was made without a map of its pages cannot give them back.
        let (left, _) = pages::count(tx.step()?).await?;
        Ok(left < free)
    }
}

fn is_too_much(free: i64, all: i64) -> bool {
    free >= FREE_PAGES_MIN && free * KEPT >= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_some_free_pages() {
        assert!(!is_too_much(FREE_PAGES_MIN - 1, FREE_PAGES_MIN));
        assert!(is_too_much(FREE_PAGES_MIN, FREE_PAGES_MIN * KEPT));
        assert!(!is_too_much(FREE_PAGES_MIN, FREE_PAGES_MIN * KEPT + 1));
    }
}
