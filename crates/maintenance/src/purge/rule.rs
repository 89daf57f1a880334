//! A retention rule: which rows it covers, when they may be removed, and which are kept as the last of their namespace.
//! Pure.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use kindex_model::kind::{Kind, Retention};
use kindex_model::object::Uid;
use kindex_store::{Gone, GoneRow};

const HOURS_OF_A_DAY: i64 = 24;
/// Times in SQL are in microseconds.
const TICK: SignedDuration = SignedDuration::from_micros(1);

/// What becomes of archived objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfArchived {
    /// The rule does not cover them.
    Uncovered,
    /// Their rows are removed.
    Removed,
    /// They are deleted, which releases what they hold elsewhere, and cleans up. Their rows are removed after that.
    Deleted,
    /// They stay: nobody would carry out their deletion.
    Kept,
}

/// What is done with the rows that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowAction {
    /// They are removed.
    Remove,
    /// The deletion of their objects is requested.
    Delete,
}

/// The rule as text, for people, and how far it is followed.
pub(super) fn describe(rule: &Retention, archived: OfArchived) -> String {
    let mut text = match rule.states {
        [] => String::new(),
        states => format!("{}: ", states.join(", ")),
    };
    let mut limits = Vec::new();
    if let Some(days) = rule.keep_days {
        limits.push(format!("{days} days"));
    }
    if let Some(rows) = rule.keep_last_per_namespace {
        limits.push(format!("the last {rows} of a namespace"));
    }
    write!(text, "keep {}", limits.join(" and ")).expect("a String takes all text");
    text += match archived {
        OfArchived::Removed => "; deleted and archived",
        OfArchived::Deleted => "; deleted; archived ones are deleted first",
        OfArchived::Kept => {
            "; deleted, not archived: these may hold objects of other services, or have something outside of the \
             cluster, until they are deleted"
        }
        OfArchived::Uncovered => "; deleted",
    };
    text
}

/// How far the rule may be followed. An archived object that may hold objects of other services, or have something
/// outside, is not removed: its deletion releases them, and cleans up, if somebody carries it out.
pub(super) fn of_archived(kind: &Kind, rule: &Retention, has_outside: bool, has_deletion: bool) -> OfArchived {
    let waiting = kind.references.iter().filter(|reference| reference.waits());
    let mut targets = waiting.flat_map(|reference| reference.targets);
    let holds_elsewhere = targets.any(|target| target.service.is_some());
    match (rule.evicted, holds_elsewhere || has_outside) {
        (false, _) => OfArchived::Uncovered,
        (true, false) => OfArchived::Removed,
        (true, true) if has_deletion => OfArchived::Deleted,
        (true, true) => OfArchived::Kept,
    }
}

/// The rows that a rule covers, regardless of age, and what is done with them. Those of archived objects that are
/// deleted first are apart: counted together, those that were deleted last would push out the others.
pub(super) fn covered(rule: &Retention, archived: OfArchived) -> Vec<(Gone, RowAction)> {
    let gone = |deleted, archived| Gone {
        deleted,
        archived,
        states: rule.state_column.zip((!rule.states.is_empty()).then_some(rule.states)),
        ..Gone::default()
    };
    match archived {
        OfArchived::Removed => vec![(gone(true, true), RowAction::Remove)],
        OfArchived::Uncovered | OfArchived::Kept => vec![(gone(true, false), RowAction::Remove)],
        OfArchived::Deleted => vec![
            (gone(true, false), RowAction::Remove),
            (gone(false, true), RowAction::Delete),
        ],
    }
}

/// The age from which the rule removes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// Any age.
    Any,
    /// Rows whose objects left before this time.
    Before(Timestamp),
    /// No row is old enough.
    None,
}

/// The age condition of a rule.
pub(super) fn age(rule: &Retention, now: Timestamp) -> Age {
    let Some(days) = rule.keep_days else { return Age::Any };
    let kept = SignedDuration::from_hours(i64::from(days) * HOURS_OF_A_DAY);
    match now.checked_sub(kept) {
        Ok(before) if before > Timestamp::UNIX_EPOCH => Age::Before(before),
        // Nothing can be that old.
        Ok(_) | Err(_) => Age::None,
    }
}

/// The last row of a namespace that is kept as one of the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastKept {
    time: Timestamp,
    uid: Uid,
    pub(super) namespace: String,
}

impl From<GoneRow> for LastKept {
    fn from(row: GoneRow) -> Self {
        Self {
            time: row.gone_time,
            uid: row.uid,
            namespace: row.namespace,
        }
    }
}

impl LastKept {
    /// The rows of the namespace that may be older. [`is_before`](Self::is_before) decides on those of the same time.
    pub(super) fn narrow(&self, gone: Gone) -> Gone {
        let behind = self.time.checked_add(TICK).unwrap_or(self.time);
        Gone {
            namespace: Some(self.namespace.clone()),
            before: Some(gone.before.map_or(behind, |before| before.min(behind))),
            ..gone
        }
    }

    /// Whether a row is older, in the order of the time at which objects left.
    pub(super) fn is_before(&self, row: &GoneRow) -> bool {
        (row.gone_time, &row.uid) < (self.time, &self.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kindex_model::object::ResourceVersion;
    use kindex_model::row_version::RowVersion;
    use kindex_query::Life;
    use kindex_store::Arrival;

    const RULE: Retention = Retention {
        keep_days: Some(30),
        keep_last_per_namespace: Some(5),
        state_column: Some("state"),
        states: &["DONE", "FAILED"],
        evicted: false,
    };

    #[test]
    fn a_rule_reads_like_a_sentence() {
        let text = "DONE, FAILED: keep 30 days and the last 5 of a namespace; deleted";
        assert_eq!(describe(&RULE, OfArchived::Uncovered), text);
        let bare = Retention {
            keep_last_per_namespace: None,
            states: &[],
            evicted: true,
            ..RULE
        };
        let text = describe(&bare, OfArchived::Removed);
        assert_eq!(text, "keep 30 days; deleted and archived");
        let text = describe(&bare, OfArchived::Kept);
        assert!(text.starts_with("keep 30 days; deleted, not archived: "), "{text}");
        let text = describe(&bare, OfArchived::Deleted);
        assert_eq!(text, "keep 30 days; deleted; archived ones are deleted first");
    }

    #[test]
    fn archived_rows_are_covered_only_where_the_rule_says_so() {
        let stateless = Retention { states: &[], ..RULE };
        for (archived, lives) in [
            (OfArchived::Uncovered, vec![(true, false, RowAction::Remove)]),
            (OfArchived::Kept, vec![(true, false, RowAction::Remove)]),
            (OfArchived::Removed, vec![(true, true, RowAction::Remove)]),
            (
                OfArchived::Deleted,
                vec![(true, false, RowAction::Remove), (false, true, RowAction::Delete)],
            ),
        ] {
            let found = covered(&RULE, archived);
            assert!(
                found
                    .iter()
                    .all(|(gone, _)| gone.states == Some(("state", RULE.states)))
            );
            let found = found
                .iter()
                .map(|(gone, action)| (gone.deleted, gone.archived, *action));
            assert_eq!(found.collect::<Vec<_>>(), lives, "{archived:?}");
            let found = covered(&stateless, archived);
            assert!(found.iter().all(|(gone, _)| gone.states.is_none()), "{archived:?}");
        }
    }

    /// What they have outside would stay for ever.
    #[test]
    fn archived_objects_that_may_have_something_outside_are_not_removed() {
        let rule = Retention { evicted: true, ..RULE };
        let of = |rule, has_outside, has_deletion| of_archived(&Kind::EMPTY, rule, has_outside, has_deletion);
        for has_deletion in [false, true] {
            assert_eq!(of(&rule, false, has_deletion), OfArchived::Removed);
            assert_eq!(of(&RULE, true, has_deletion), OfArchived::Uncovered);
        }
        assert_eq!(of(&rule, true, false), OfArchived::Kept);
        assert_eq!(of(&rule, true, true), OfArchived::Deleted);
    }

    #[test]
    fn a_rule_of_more_days_than_there_were_removes_nothing() {
        let now = Timestamp::from_second(1_700_000_000).expect("in range");
        let of = |keep_days| age(&Retention { keep_days, ..RULE }, now);
        let month = Timestamp::from_second(1_700_000_000 - 30 * 86_400).expect("in range");
        assert_eq!(of(Some(30)), Age::Before(month));
        assert_eq!(of(Some(u32::MAX)), Age::None);
        assert_eq!(of(Some(20_000)), Age::None);
        assert_eq!(of(None), Age::Any);
    }

    #[test]
    fn rows_of_the_same_time_are_ordered_by_uid() {
        let row = |uid: &str, second| GoneRow {
            arrival: Arrival(1),
            uid: Uid::from(uid),
            namespace: "n".to_owned(),
            name: uid.to_owned(),
            res_version: RowVersion::Cluster(ResourceVersion(1)),
            life: Life::Deleted,
            gone_time: Timestamp::from_second(second).expect("in range"),
        };
        let last = LastKept::from(row("m", 7));
        assert!(last.is_before(&row("a", 7)) && last.is_before(&row("z", 6)));
        assert!(!last.is_before(&row("m", 7)) && !last.is_before(&row("n", 7)));
        let narrowed = last.narrow(covered(&RULE, OfArchived::Uncovered).remove(0).0);
        assert!(
            narrowed.before > Some(row("m", 7).gone_time),
            "its own moment is looked at"
        );
    }
}
