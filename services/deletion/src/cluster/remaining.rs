//! Who is left of the holders of an object after a sweep: those that people are told of, and what was refused of them.

use std::collections::BTreeSet;

use kindex_kube_client::ClusterError;

use super::outcome::Unanswered;
use crate::archive::{Holder, HolderAction};

/// Holders that a sweep names.
const NAMED_MAX: usize = 8;

/// Who is left, as people know them.
#[derive(Default)]
pub(super) struct RemainingHolders {
    pub(super) plain: Vec<String>,
    pub(super) owned: Vec<String>,
    /// Those whose change the cluster refuses, such as by a webhook: they are named before others, which may go.
    refused: BTreeSet<String>,
    /// Whether a service was silent. It may take long to answer: no other holder is asked about in this sweep.
    pub(super) is_silent: bool,
}

impl RemainingHolders {
    pub(super) fn add(&mut self, action: HolderAction, holder: &Holder) {
        match action {
            HolderAction::WaitForOwned => self.owned.push(holder.to_string()),
            HolderAction::Delete | HolderAction::WaitFor => self.plain.push(holder.to_string()),
        }
    }

    pub(super) fn wait_for(&mut self, service: &Unanswered, holder: &Holder) {
        self.plain.push(format!("{holder} (waits for {})", service.place));
        self.is_silent |= service.is_silent;
    }

    /// A holder that cannot be changed keeps no other one waiting.
    ///
    /// # Errors
    /// Where it was not refused: what else fails may fail for all of them.
    pub(super) fn refuse(&mut self, holder: &Holder, error: ClusterError) -> Result<(), ClusterError> {
        match error {
            ClusterError::Refused(why) => {
                // A sweep comes again every few seconds, and what refuses one holder may refuse thousands.
                if self.refused.is_empty() {
                    tracing::warn!(%holder, why, "The cluster refuses a change of a holder");
                } else {
                    tracing::debug!(%holder, why, "The cluster refuses a change of a holder");
                }
                self.refused.insert(holder.to_string());
                Ok(())
            }
            error => Err(error),
        }
    }

    pub(super) fn cut(&mut self) {
        for names in [&mut self.plain, &mut self.owned] {
            names.sort_by_cached_key(|name| (!self.refused.contains(name), name.clone()));
            names.dedup();
            names.truncate(NAMED_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(uid: &str) -> Holder {
        Holder {
            key: None,
            uid: uid.to_owned(),
            reference: None,
            version: None,
            edges: Vec::new(),
        }
    }

    /// As if a webhook that denies the deletion of one holder kept all others, or nobody were told of that one.
    #[test]
    fn a_holder_that_cannot_be_changed_is_named_first_and_keeps_no_other_waiting() {
        let mut left = RemainingHolders::default();
        let last = holder("z");
        let denied = ClusterError::Refused("admission webhook \"a.b.c\" denied the request: no".to_owned());
        left.refuse(&last, denied).expect("the sweep goes on");
        for number in 0..NAMED_MAX {
            left.add(HolderAction::WaitFor, &holder(&format!("a{number}")));
        }
        left.add(HolderAction::WaitFor, &last);
        left.cut();
        assert_eq!((left.plain.len(), left.plain[0].as_str()), (NAMED_MAX, "z"));
        left.refuse(&last, ClusterError::Expired("a moment ago".to_owned()))
            .expect_err("it may fail for all of them");
    }

    #[test]
    fn only_a_service_that_is_silent_ends_the_questions_of_a_sweep() {
        let holder = holder("u");
        let service = |is_silent| Unanswered {
            place: "the service identity".to_owned(),
            why: String::new(),
            is_silent,
        };
        let mut left = RemainingHolders::default();
        left.wait_for(&service(false), &holder);
        assert!(!left.is_silent, "another holder may name what it answers about");
        left.wait_for(&service(true), &holder);
        left.wait_for(&service(false), &holder);
        assert!(left.is_silent);
        assert_eq!(left.plain[0], "u (waits for the service identity)");
    }
}
