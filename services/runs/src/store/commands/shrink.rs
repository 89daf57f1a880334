//! Gives free pages of the file back to the system, some at a time.

use crate::store::statements::pages;
use crate::store::transaction::{Command, Failure, Tx};

/// Below so many free pages there is nothing to gain: they are used again.
const FREE_PAGES_MIN: i64 = 128;
/// Where one of so many pages of a file is free, pages are given back,
const BEGIN_AT: i64 = 10;
/// until it is one of so many: whoever begins goes on for a while, and then leaves the file alone for long.
const END_AT: i64 = 50;

/// Cuts free pages off; whether some may be left that are too many.
#[derive(Debug)]
pub(in crate::store) struct Shrink {
    pages: u32,
    /// Whether it goes on with what another one has begun.
    is_begun: bool,
}

impl Shrink {
    /// The first part, of so many pages at most.
    pub(in crate::store) fn begin(pages: u32) -> Self {
        Self { pages, is_begun: false }
    }

    /// The next part.
    pub(in crate::store) fn go_on(pages: u32) -> Self {
        Self { pages, is_begun: true }
    }
}

impl Command for Shrink {
    type Answer = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Failure> {
        let (free, all) = pages::count(tx.step()?).await?;
        if !is_too_much(free, all, self.is_begun) {
            return Ok(false);
        }
        pages::release(tx.change()?, self.pages).await?;
        // A file that was made without a map of its pages cannot give them back.
        let (left, _) = pages::count(tx.step()?).await?;
        Ok(left < free)
    }
}

fn is_too_much(free: i64, all: i64, is_begun: bool) -> bool {
    let one_of = if is_begun { END_AT } else { BEGIN_AT };
    free >= FREE_PAGES_MIN && free * one_of >= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_some_free_pages_and_fewer_once_some_are_given_back() {
        let free = FREE_PAGES_MIN;
        for (is_begun, one_of) in [(false, BEGIN_AT), (true, END_AT)] {
            assert!(!is_too_much(free - 1, free, is_begun));
            assert!(is_too_much(free, free * one_of, is_begun));
            assert!(!is_too_much(free, free * one_of + 1, is_begun));
        }
    }
}
