//! Decisions of the repair commands. They do less than the ingester's: a list is older than a watch, no effect follows,
//! and an ingester may run at the same time. Anything that may be in flight is left to it.

use kindex_model::head::Head;
use kindex_model::object::ResourceVersion;
use kindex_query::Life;

use super::row::{Row, TextComparison};

/// The decision of a backfill on one listed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillDecision {
    /// It is stored as live.
    Store,
    /// Its row holds the same.
    Unchanged,
    /// Its row holds a newer version.
    Newer,
    /// Its row is not live, or it is being deleted: left to the ingester.
    Leave,
}

/// Decides what to store of one listed object.
pub fn fill(head: &Head, row: Option<&Row>) -> BackfillDecision {
    let Some(row) = row else { return BackfillDecision::Store };
    match (row.life, row.compare_text(head.version)) {
        // It stopped being final after it was stored.
        (Life::Archived, TextComparison::Behind) if head.is_staying() => BackfillDecision::Store,
        // A list may be older than the end of the object. Only who has read it from the cluster since makes a row live
        // that is deleted, or was archived in this version.
        (Life::Archived | Life::Deleted, _) => BackfillDecision::Leave,
        (Life::Live, TextComparison::Ahead | TextComparison::Edited) => BackfillDecision::Newer,
        (Life::Live, TextComparison::Current) => BackfillDecision::Unchanged,
        (Life::Live, TextComparison::Behind | TextComparison::Unproven | TextComparison::Contradicting) => {
            BackfillDecision::Store
        }
    }
}

/// The decision of a release on one object that has our finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseDecision {
    /// SQL holds this version, or its row is not live: it is released.
    Now,
    /// It is being deleted: its final version is stored as deleted, then it is released.
    AfterClosing,
    /// SQL lacks this version: it is stored as live, then it is released.
    AfterStoring,
    /// Others use it, or Kindex is deleting it: it keeps our finalizers, which go after theirs.
    Never,
}

/// Decides what SQL must hold before one object is released.
pub fn release(head: &Head, row: Option<&Row>) -> ReleaseDecision {
    if head.has_references || head.has_deletion_finalizer && head.is_leaving() {
        return ReleaseDecision::Never;
    }
    let leaving = head.deletion_timestamp.is_some();
    let lacking = match leaving {
        true => ReleaseDecision::AfterClosing,
        false => ReleaseDecision::AfterStoring,
    };
    let Some(row) = row else { return lacking };
    match (row.life, row.compare_text(head.version)) {
        // Others have written since.
        (Life::Deleted, TextComparison::Behind) if leaving => ReleaseDecision::AfterClosing,
        (Life::Deleted, _) | (_, TextComparison::Ahead) => ReleaseDecision::Now,
        // Leaving by our own delete, unless the Deleting annotation says that a user deleted it.
        (Life::Archived, _) if head.immutable && !(leaving && head.deleting) => ReleaseDecision::Now,
        (Life::Archived | Life::Live, TextComparison::Current) if !leaving => ReleaseDecision::Now,
        (Life::Archived | Life::Live, _) => lacking,
    }
}

/// The decision of a retry on one quarantined object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// It is stored, and its row gets this state.
    Store(Life),
    /// Its row already holds it.
    Current,
    /// It is present, but its row is not live: the ingester decides at its next relist.
    Left,
}

/// Decides on a quarantined object that is present in this version.
pub fn retry_present(version: ResourceVersion, row: Option<&Row>) -> RetryDecision {
    match row.map(|row| (row.life, row.compare_text(version))) {
        Some((Life::Live, TextComparison::Ahead)) => RetryDecision::Current,
        None | Some((Life::Live, _)) => RetryDecision::Store(Life::Live),
        Some((Life::Archived | Life::Deleted, _)) => RetryDecision::Left,
    }
}

/// Decides on a quarantined object that is gone. `version` is that of its last text.
pub fn retry_gone(version: ResourceVersion, row: Option<&Row>) -> RetryDecision {
    match row.map(|row| (row.life, row.compare_text(version))) {
        None | Some((Life::Live, _)) => RetryDecision::Store(Life::Deleted),
        Some((Life::Archived | Life::Deleted, comparison)) if comparison != TextComparison::Behind => {
            RetryDecision::Current
        }
        Some((life @ (Life::Archived | Life::Deleted), _)) => RetryDecision::Store(life),
    }
}

/// The decision of a restoration on the new object, which the cluster has just returned. The row of the old one is
/// closed in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreDecision {
    /// It is stored as live, even if its row was deleted.
    Store,
    /// It is to leave the cluster again: left to the ingester.
    Leave,
}

/// Decides whether a restored object is stored.
pub fn restored(head: &Head) -> RestoreDecision {
    match head.is_staying() {
        true => RestoreDecision::Store,
        false => RestoreDecision::Leave,
    }
}

/// Whether the row of a present object has the state that an ingester with nothing left to do leaves it in. Ignores its
/// text.
pub fn is_settled_life(head: &Head, life: Life) -> bool {
    // An object that is being deleted and held by others may stay, and its row follows it.
    let followed = head.deletion_timestamp.is_some() && (head.held || !head.has_finalizer) && !head.in_use();
    life == Life::Live || followed
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kindex_model::row_version::RowVersion;

    use super::*;
    use crate::row::RowText;

    fn row(version: u64, life: Life, text: RowText) -> Row {
        Row {
            version: RowVersion::Cluster(ResourceVersion(version)),
            life,
            text,
        }
    }

    fn head(version: u64) -> Head {
        Head {
            version: ResourceVersion(version),
            deletion_timestamp: None,
            has_finalizer: true,
            held: false,
            has_references: false,
            has_deletion_finalizer: false,
            deleting: false,
            immutable: false,
        }
    }

    fn leaving(version: u64) -> Head {
        Head {
            deletion_timestamp: Some(Timestamp::UNIX_EPOCH),
            ..head(version)
        }
    }

    #[test]
    fn a_backfill_stores_only_what_differs() {
        let live = |version, text| fill(&head(5), Some(&row(version, Life::Live, text)));
        assert_eq!(fill(&head(5), None), BackfillDecision::Store);
        assert_eq!(live(4, RowText::Trusted), BackfillDecision::Store);
        assert_eq!(live(5, RowText::Trusted), BackfillDecision::Unchanged);
        assert_eq!(
            live(5, RowText::Different),
            BackfillDecision::Store,
            "the same version with another text"
        );
        assert_eq!(
            live(5, RowText::Foreign),
            BackfillDecision::Store,
            "a row of another program"
        );
        assert_eq!(live(6, RowText::Trusted), BackfillDecision::Newer);
    }

    /// A row that is made live while its object is being evicted would be closed as deleted.
    #[test]
    fn a_backfill_leaves_an_eviction_under_way_alone() {
        let immutable = Head {
            immutable: true,
            ..head(5)
        };
        let archived = row(5, Life::Archived, RowText::Trusted);
        assert_eq!(fill(&immutable, Some(&archived)), BackfillDecision::Leave);
        assert_eq!(fill(&leaving(6), Some(&archived)), BackfillDecision::Leave);
        assert_eq!(fill(&head(6), Some(&archived)), BackfillDecision::Store, "taken back");
        assert_eq!(fill(&head(5), Some(&archived)), BackfillDecision::Leave);
        assert_eq!(
            fill(&head(4), Some(&archived)),
            BackfillDecision::Leave,
            "the list is late"
        );
    }

    #[test]
    fn only_the_ingester_revives_a_deleted_row() {
        for version in [4, 5, 6] {
            let deleted = row(5, Life::Deleted, RowText::Trusted);
            assert_eq!(fill(&head(version), Some(&deleted)), BackfillDecision::Leave);
        }
    }

    #[test]
    fn only_what_sql_holds_is_released_at_once() {
        let live = |version, text| release(&head(5), Some(&row(version, Life::Live, text)));
        assert_eq!(release(&head(5), None), ReleaseDecision::AfterStoring);
        assert_eq!(live(4, RowText::Trusted), ReleaseDecision::AfterStoring);
        let other_text = live(5, RowText::Different);
        assert_eq!(
            other_text,
            ReleaseDecision::AfterStoring,
            "the same version with another text"
        );
        assert_eq!(live(5, RowText::Foreign), ReleaseDecision::AfterStoring);
        assert_eq!(live(5, RowText::Trusted), ReleaseDecision::Now);
        assert_eq!(live(6, RowText::Trusted), ReleaseDecision::Now, "the list is late");
    }

    #[test]
    fn what_is_in_use_is_never_released() {
        let referenced = [head(5), leaving(5)].map(|head| Head {
            has_references: true,
            ..head
        });
        let marked = Head {
            deleting: true,
            ..head(5)
        };
        let going = [marked, leaving(5)].map(|head| Head {
            has_deletion_finalizer: true,
            ..head
        });
        for head in referenced.into_iter().chain(going) {
            assert_eq!(release(&head, None), ReleaseDecision::Never);
            for life in [Life::Live, Life::Archived, Life::Deleted] {
                assert_eq!(
                    release(&head, Some(&row(5, life, RowText::Trusted))),
                    ReleaseDecision::Never
                );
            }
        }
    }

    #[test]
    fn the_finalizer_of_a_deletion_that_nobody_asked_for_holds_nothing() {
        let head = Head {
            has_deletion_finalizer: true,
            ..head(5)
        };
        assert_eq!(release(&head, None), ReleaseDecision::AfterStoring);
        let current = row(5, Life::Live, RowText::Trusted);
        assert_eq!(release(&head, Some(&current)), ReleaseDecision::Now);
    }

    #[test]
    fn a_deleted_object_is_closed_before_it_is_released() {
        assert_eq!(release(&leaving(5), None), ReleaseDecision::AfterClosing);
        let at = |version, life| release(&leaving(5), Some(&row(version, life, RowText::Trusted)));
        assert_eq!(at(5, Life::Live), ReleaseDecision::AfterClosing);
        assert_eq!(at(5, Life::Deleted), ReleaseDecision::Now);
        assert_eq!(
            at(4, Life::Deleted),
            ReleaseDecision::AfterClosing,
            "others have written since"
        );
        let taken_back = at(5, Life::Archived);
        assert_eq!(
            taken_back,
            ReleaseDecision::AfterClosing,
            "a user deleted it after it stopped being final"
        );
    }

    #[test]
    fn an_eviction_under_way_is_released_as_one() {
        let immutable = Head {
            immutable: true,
            ..leaving(6)
        };
        let archived = row(5, Life::Archived, RowText::Trusted);
        assert_eq!(release(&immutable, Some(&archived)), ReleaseDecision::Now);
        let marked = Head {
            deleting: true,
            ..immutable
        };
        assert_eq!(
            release(&marked, Some(&archived)),
            ReleaseDecision::AfterClosing,
            "a user deleted it"
        );
    }

    #[test]
    fn what_was_edited_in_sql_is_no_text_of_the_cluster() {
        let archived = row(5, Life::Archived, RowText::Trusted);
        let edited = Row {
            version: archived.version.next_direct().expect("the first"),
            ..archived
        };
        assert_eq!(release(&head(5), Some(&edited)), ReleaseDecision::AfterStoring);
        let live = Row {
            life: Life::Live,
            ..edited
        };
        assert_eq!(fill(&head(5), Some(&live)), BackfillDecision::Newer);
    }

    #[test]
    fn a_refused_object_that_is_there_is_stored_as_live_or_left_to_the_ingester() {
        let retried = |version, life| {
            let row = row(version, life, RowText::Foreign);
            retry_present(ResourceVersion(5), Some(&row))
        };
        assert_eq!(
            retry_present(ResourceVersion(5), None),
            RetryDecision::Store(Life::Live)
        );
        assert_eq!(retried(5, Life::Live), RetryDecision::Store(Life::Live));
        assert_eq!(retried(6, Life::Live), RetryDecision::Current);
        assert_eq!(retried(4, Life::Archived), RetryDecision::Left);
        assert_eq!(retried(4, Life::Deleted), RetryDecision::Left);
    }

    #[test]
    fn the_last_text_of_a_gone_object_is_kept_and_the_row_is_never_live() {
        let retried = |version, life| {
            let row = row(version, life, RowText::Foreign);
            retry_gone(ResourceVersion(5), Some(&row))
        };
        assert_eq!(
            retry_gone(ResourceVersion(5), None),
            RetryDecision::Store(Life::Deleted)
        );
        assert_eq!(retried(4, Life::Live), RetryDecision::Store(Life::Deleted));
        assert_eq!(retried(4, Life::Archived), RetryDecision::Store(Life::Archived));
        assert_eq!(retried(4, Life::Deleted), RetryDecision::Store(Life::Deleted));
        assert_eq!(retried(5, Life::Deleted), RetryDecision::Current);
        assert_eq!(retried(5, Life::Archived), RetryDecision::Current);
    }

    /// As if a final object were stored as live, or one that somebody has deleted meanwhile.
    #[test]
    fn a_restored_object_is_stored_only_if_it_stays() {
        assert_eq!(restored(&head(5)), RestoreDecision::Store);
        let marked = Head {
            deleting: true,
            ..head(5)
        };
        let immutable = Head {
            immutable: true,
            ..head(5)
        };
        for head in [leaving(5), marked, immutable] {
            assert_eq!(restored(&head), RestoreDecision::Leave);
        }
    }

    #[test]
    fn a_closed_row_of_a_present_object_is_settled_only_while_others_hold_it() {
        for life in [Life::Archived, Life::Deleted] {
            assert!(!is_settled_life(&head(5), life));
            assert!(!is_settled_life(&leaving(5), life), "ours is to be released");
            let held = Head {
                held: true,
                ..leaving(5)
            };
            assert!(is_settled_life(&held, life));
            let without_finalizer = Head {
                has_finalizer: false,
                ..leaving(5)
            };
            assert!(is_settled_life(&without_finalizer, life));
        }
        assert!(is_settled_life(&head(5), Life::Live));
    }
}
