//! Who is left of the holders of an object after a sweep: those that people are told of, and what was refused of them.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::outcome::Unanswered;
use super::refusals::{NAMED_MAX, Refusals, Round};
use crate::archive::{Holder, HolderAction};

/// Who is left, as people know them.
#[derive(Default)]
pub(super) struct RemainingHolders {
    pub(super) plain: Vec<String>,
    pub(super) owned: Vec<String>,
    /// Those whose change the cluster refuses, such as by a webhook, are named before others, which may go.
    pub(super) refusals: Refusals,
    /// The uids of those in the cluster that the sweep has met.
    met: BTreeSet<String>,
    /// Whether a service was silent. It may take long to answer: no other holder is asked about in this sweep.
    pub(super) is_silent: bool,
}

impl RemainingHolders {
    /// Nobody yet, in a sweep that goes on with this round.
    pub(super) fn of(round: Round) -> Self {
        Self {
            refusals: Refusals::new(round),
            ..Self::default()
        }
    }

    /// Leaves those in the cluster out that the sweep has met before: whoever has a row and names the object, or names
    /// it by two fields, has one turn and is sent one request.
    pub(super) fn leave_out_met(&mut self, holders: &mut Vec<Holder>) {
        holders.retain(|holder| holder.version.is_some() || self.met.insert(holder.uid.clone()));
    }

    pub(super) fn add(&mut self, action: HolderAction, holder: &Holder) {
        match action {
            HolderAction::WaitForOwned => self.owned.push(holder.to_string()),
            HolderAction::Delete | HolderAction::WaitFor => self.plain.push(holder.to_string()),
        }
    }

    pub(super) fn wait_for(&mut self, service: &Unanswered, holder: &impl Display) {
        self.plain.push(format!("{holder} (waits for {})", service.place));
        self.is_silent |= service.is_silent;
    }

    pub(super) fn cut(&mut self) {
        for names in [&mut self.plain, &mut self.owned] {
            names.sort_by_cached_key(|name| (!self.refusals.names(name), name.clone()));
            names.dedup();
            names.truncate(NAMED_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use kindex_kube_client::ClusterError;
    use kindex_model::object::ResourceVersion;

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
        left.refusals.refuse(&last, denied).expect("the sweep goes on");
        for number in 0..NAMED_MAX {
            left.add(HolderAction::WaitFor, &holder(&format!("a{number}")));
        }
        left.add(HolderAction::WaitFor, &last);
        left.cut();
        assert_eq!((left.plain.len(), left.plain[0].as_str()), (NAMED_MAX, "z"));
    }

    #[test]
    fn a_holder_in_the_cluster_is_met_once_and_an_archived_one_on_each_page() {
        let archived = Holder {
            version: Some(ResourceVersion(7)),
            ..holder("archived")
        };
        let mut left = RemainingHolders::default();
        let mut met = |holders: &[&Holder]| {
            let mut holders: Vec<Holder> = holders.iter().map(|holder| (*holder).clone()).collect();
            left.leave_out_met(&mut holders);
            holders.into_iter().map(|holder| holder.uid).collect::<Vec<_>>()
        };
        assert_eq!(met(&[&holder("a"), &archived, &holder("b")]), ["a", "archived", "b"]);
        assert_eq!(met(&[&holder("b"), &archived, &holder("c")]), ["archived", "c"]);
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
