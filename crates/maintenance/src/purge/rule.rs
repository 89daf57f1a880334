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

/// The rule as text, for people, and how far it is followed.
pub(super) fn describe(rule: &Retention, followed: &Retention) -> String {
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
    text += match (rule.evicted, followed.evicted) {
        (true, true) => "; deleted and archived",
        (true, false) => {
            "; deleted, not archived: these may hold objects of other services, or have something outside of the \
             cluster, until they are deleted"
        }
        (false, _) => "; deleted",
    };
    text
}

/// The rule as far as it may be followed. An archived object that may hold objects of other services, or have something
/// outside, is not purged: its deletion releases them, and cleans up.
pub(super) fn of_kind(kind: &Kind, rule: &Retention, has_outside: bool) -> Retention {
    let waiting = kind.references.iter().filter(|reference| reference.waits());
    let mut targets = waiting.flat_map(|reference| reference.targets);
    let holds_elsewhere = targets.any(|target| target.service.is_some());
    Retention {
        evicted: rule.evicted && !holds_elsewhere && !has_outside,
        ..*rule
    }
}

/// The rows that a rule covers, regardless of age.
pub(super) fn covered(rule: &Retention) -> Gone {
    Gone {
        deleted: true,
        evicted: rule.evicted,
        states: rule.state_column.zip((!rule.states.is_empty()).then_some(rule.states)),
        ..Gone::default()
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
        assert_eq!(describe(&RULE, &RULE), text);
        let bare = Retention {
            keep_last_per_namespace: None,
            states: &[],
            evicted: true,
            ..RULE
        };
        assert_eq!(describe(&bare, &bare), "keep 30 days; deleted and archived");
        let followed = Retention { evicted: false, ..bare };
        let text = describe(&bare, &followed);
        assert!(text.starts_with("keep 30 days; deleted, not archived: "), "{text}");
    }

    #[test]
    fn archived_rows_are_covered_only_where_the_rule_says_so() {
        assert!(!covered(&RULE).evicted && covered(&RULE).deleted);
        assert_eq!(covered(&RULE).states, Some(("state", RULE.states)));
        let stateless = Retention {
            states: &[],
            evicted: true,
            ..RULE
        };
        assert!(covered(&stateless).evicted);
        assert_eq!(covered(&stateless).states, None);
    }

    /// What they have outside would stay for ever.
    #[test]
    fn archived_objects_that_may_have_something_outside_are_not_purged() {
        let rule = Retention { evicted: true, ..RULE };
        assert_eq!(of_kind(&Kind::EMPTY, &rule, false), rule);
        assert_eq!(of_kind(&Kind::EMPTY, &rule, true), RULE);
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
        let narrowed = last.narrow(covered(&RULE));
        assert!(
            narrowed.before > Some(row("m", 7).gone_time),
            "its own moment is looked at"
        );
    }
}
