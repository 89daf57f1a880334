//! What a write does to the row it finds. Pure: the row is locked and read before,
//! so the version check is made here, once for all dialects, and tested here.

use jiff::Timestamp;
use kindex_model::object::Uid;
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};

use crate::cells::{FoundRow, group_ver};
use crate::row::{Arrival, RowWrite, Written};

/// What is left to do for one write.
#[derive(Debug)]
pub(crate) enum Plan<'a> {
    /// Nothing, and why.
    Nothing(Written),
    /// A new row.
    Insert(NewRow<'a>),
    /// New content for a row that is there.
    Update(NewRow<'a>),
    /// The same content in another state of life.
    Move {
        uid: &'a Uid,
        life: Life,
        revived: Option<&'a Version>,
    },
}

impl<'a> Plan<'a> {
    /// What a row gets that was archived and stays so.
    pub(crate) fn of_archived(&self, row: Option<&FoundRow>) -> Option<&'a Version> {
        match self {
            Self::Update(new) if new.delete_time.is_none() && new.evicted_time.is_some() => {
                row.filter(|row| row.life() == Life::Archived).map(|_| new.version)
            }
            Self::Nothing(_) | Self::Insert(_) | Self::Update(_) | Self::Move { .. } => None,
        }
    }
}

/// The content of a row.
#[derive(Debug)]
pub(crate) struct NewRow<'a> {
    pub(crate) version: &'a Version,
    /// Of the row that it replaces.
    pub(crate) arrival: Option<Arrival>,
    pub(crate) delete_time: Option<Timestamp>,
    pub(crate) evicted_time: Option<Timestamp>,
    /// Whether the stored labels are other ones.
    pub(crate) labels: bool,
    /// Whether the stored annotations are other ones.
    pub(crate) annotations: bool,
    /// Whether the row is back from deletion.
    pub(crate) revived: bool,
    /// Whether the versions of the object begin anew: the cluster's takes the place of one that SQL gave, or
    /// of another text under its own number, which is of a time that the cluster lost. The same object in another
    /// version of its kind has another text, and lost nothing.
    pub(crate) begins_anew: bool,
}

/// Decides one write to a kind whose own `group/version` is `own`.
pub(crate) fn plan<'a>(write: &'a RowWrite, row: Option<&FoundRow>, own: &str, now: Timestamp) -> Plan<'a> {
    match (write, row) {
        (RowWrite::Record { .. }, _) => Plan::Nothing(Written::Unchanged),
        (RowWrite::SoftDelete { .. }, None) => Plan::Nothing(Written::Unchanged),
        (RowWrite::SoftDelete { uid }, Some(row)) => match row.life() {
            Life::Deleted => Plan::Nothing(Written::Unchanged),
            Life::Live | Life::Archived => Plan::Move {
                uid,
                life: Life::Deleted,
                revived: None,
            },
        },
        (RowWrite::Store { version, life, .. }, None) => Plan::Insert(NewRow {
            version,
            arrival: None,
            delete_time: (*life == Life::Deleted).then_some(now),
            evicted_time: (*life == Life::Archived).then_some(now),
            labels: true,
            annotations: true,
            revived: false,
            begins_anew: false,
        }),
        (RowWrite::Store { version, life, revive }, Some(row)) => plan_store(version, *life, *revive, row, own, now),
    }
}

fn plan_store<'a>(
    version: &'a Version,
    life: Life,
    revive: Revive,
    row: &FoundRow,
    own: &str,
    now: Timestamp,
) -> Plan<'a> {
    let revived = row.life() == Life::Deleted && life != Life::Deleted;
    let offered = version.object.metadata.resource_version;
    let stale = offered < row.res_version.of_cluster();
    let offered_again = offered == row.res_version.of_cluster();
    let reopened = row.life() == Life::Archived && life == Life::Live && offered_again;
    if stale || ((revived || reopened) && !revive.is_from(row.life())) {
        return Plan::Nothing(Written::Superseded);
    }
    let numbered = row.res_version.pack() == offered;
    let same = row.hash == Some(version.hash) && numbered;
    if same || keeps_direct_change(row, version, life) {
        return if row.life() == life {
            Plan::Nothing(Written::Unchanged)
        } else {
            Plan::Move {
                uid: &version.object.metadata.uid,
                life,
                revived: revived.then_some(version),
            }
        };
    }
    let kept = |time: Option<Timestamp>| Some(time.unwrap_or(now));
    let (delete_time, evicted_time) = match life {
        Life::Live => (None, None),
        Life::Archived if revived => (None, Some(now)),
        Life::Archived => (None, kept(row.evicted_time)),
        Life::Deleted => (kept(row.delete_time), row.evicted_time),
    };
    Plan::Update(NewRow {
        version,
        arrival: Some(row.arrival),
        delete_time,
        evicted_time,
        labels: row.hash.map(|hash| hash.labels) != Some(version.hash.labels),
        annotations: row.hash.map(|hash| hash.annotations) != Some(version.hash.annotations),
        revived,
        begins_anew: begins_anew(version, row, own),
    })
}

/// Of a text that replaces another one: see [`NewRow::begins_anew`].
fn begins_anew(version: &Version, row: &FoundRow, own: &str) -> bool {
    let metadata = &version.object.metadata;
    let is_repeated = row.res_version.pack() == metadata.resource_version && row.group_ver == group_ver(metadata, own);
    row.res_version.is_direct() || (row.hash.is_some() && is_repeated)
}

/// Whether a row that was changed in SQL keeps what it holds: nothing that the cluster's object goes
/// through on the way out replaces it. A cluster in which the object lives on, or was changed before it was
/// asked to leave, is newer.
fn keeps_direct_change(row: &FoundRow, version: &Version, life: Life) -> bool {
    let metadata = &version.object.metadata;
    let is_same_version = metadata.resource_version == row.res_version.of_cluster();
    row.res_version.is_direct() && life != Life::Live && (is_same_version || metadata.deletion_timestamp.is_some())
}

/// The row of a direct change.
pub(crate) fn replacement<'a>(version: &'a Version, row: &FoundRow) -> NewRow<'a> {
    NewRow {
        version,
        arrival: Some(row.arrival),
        delete_time: None,
        evicted_time: row.evicted_time,
        labels: row.hash.map(|hash| hash.labels) != Some(version.hash.labels),
        annotations: row.hash.map(|hash| hash.annotations) != Some(version.hash.annotations),
        revived: false,
        begins_anew: false,
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::object::ResourceVersion;
    use kindex_model::projection::ContentHash;
    use kindex_model::row_version::RowVersion;

    use super::*;
    use kindex_model::object::Object;
    use std::sync::Arc;

    const OWN: &str = "test/v2";
    const LIVES: [Life; 3] = [Life::Live, Life::Archived, Life::Deleted];
    const REVIVES: [Revive; 4] = [
        Revive::Never,
        Revive::From(Life::Archived),
        Revive::From(Life::Deleted),
        Revive::FromAny,
    ];

    fn version(number: u64) -> Arc<Version> {
        let text = format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{number}"}}}}"#);
        Arc::new(Version {
            object: Object::parse_str(&text).expect("an object"),
            columns: Vec::new(),
            proto: None,
            hash: ContentHash {
                payload: [u8::try_from(number).expect("small"); 16],
                labels: [0; 8],
                annotations: [0; 8],
            },
            problems: Vec::new(),
        })
    }

    fn row(number: u64, life: Life) -> FoundRow {
        let then = Timestamp::UNIX_EPOCH;
        FoundRow {
            arrival: Arrival(1),
            uid: Uid::from("u"),
            namespace: String::new(),
            name: "a".to_owned(),
            res_version: RowVersion::Cluster(ResourceVersion(number)),
            hash: Some(version(number).hash),
            delete_time: (life == Life::Deleted).then_some(then),
            evicted_time: (life == Life::Archived).then_some(then),
            group_ver: OWN.to_owned(),
        }
    }

    /// Every pair of states, every order of versions, with each leave to revive.
    #[test]
    fn the_version_check_holds_in_every_case() {
        let now = Timestamp::from_second(1_000).expect("in range");
        for (found, stored) in LIVES.into_iter().flat_map(|a| LIVES.map(|b| (a, b))) {
            for (offered, revive) in [9, 10, 11].into_iter().flat_map(|n| REVIVES.map(|revive| (n, revive))) {
                let write = RowWrite::Store {
                    version: version(offered),
                    life: stored,
                    revive,
                };
                let case = format!("{found:?} at 10, {stored:?} at {offered}, revive {revive:?}");
                // A write that was confirmed for a deleted row brings back no archived one, and the other way round.
                let may_revive = revive == Revive::FromAny || revive == Revive::From(found);
                let revives = found == Life::Deleted && stored != Life::Deleted;
                let reopens = found == Life::Archived && stored == Life::Live && offered == 10;
                match plan(&write, Some(&row(10, found)), OWN, now) {
                    Plan::Nothing(Written::Superseded) => {
                        assert!(offered < 10 || ((revives || reopens) && !may_revive), "{case}");
                    }
                    Plan::Nothing(Written::Unchanged) => {
                        assert!(offered == 10 && found == stored, "{case}");
                    }
                    Plan::Move { life, revived, .. } => {
                        assert!(offered == 10 && life == stored && found != stored, "{case}");
                        assert!(may_revive || !reopens, "{case}");
                        assert_eq!(revived.is_some(), revives, "{case}");
                    }
                    Plan::Update(new) => {
                        assert!(offered > 10 && (!revives || may_revive), "{case}");
                        assert!(!new.labels && !new.annotations, "{case}");
                        assert_eq!(new.revived, revives, "{case}");
                        let deleted = new.delete_time.is_some();
                        assert_eq!(deleted, stored == Life::Deleted, "{case}");
                        let first = (found == stored).then_some(Timestamp::UNIX_EPOCH);
                        let wanted = first.or(Some(now));
                        assert!(!deleted || new.delete_time == wanted, "{case}");
                        let left = (found == Life::Archived).then_some(Timestamp::UNIX_EPOCH);
                        let left = if stored == Life::Archived {
                            left.or(Some(now))
                        } else {
                            left
                        };
                        let wanted = left.filter(|_| stored != Life::Live);
                        assert_eq!(new.evicted_time, wanted, "{case}");
                    }
                    unexpected => panic!("{case}: {unexpected:?}"),
                }
            }
        }
    }

    /// Every state of a row that was changed in SQL, against everything that a cluster can still say.
    #[test]
    fn what_was_changed_in_sql_alone_yields_to_a_living_object_and_to_nothing_that_leaves() {
        let now = Timestamp::from_second(1_000).expect("in range");
        let direct = RowVersion::Cluster(ResourceVersion(10)).next_direct().expect("small");
        for (found, stored) in [Life::Archived, Life::Deleted]
            .into_iter()
            .flat_map(|found| LIVES.map(|stored| (found, stored)))
        {
            for (offered, leaving) in [9, 10, 11].into_iter().flat_map(|n| [(n, false), (n, true)]) {
                let case = format!("{found:?} after 10, {stored:?} at {offered}, leaving {leaving}");
                let row = FoundRow {
                    res_version: direct,
                    ..row(99, found)
                };
                let version = if leaving {
                    leaving_version(offered)
                } else {
                    version(offered)
                };
                let write = RowWrite::Store {
                    version,
                    life: stored,
                    revive: Revive::FromAny,
                };
                let stays = stored != Life::Live && (offered == 10 || leaving);
                match plan(&write, Some(&row), OWN, now) {
                    Plan::Nothing(Written::Superseded) => assert!(offered < 10, "{case}"),
                    Plan::Nothing(Written::Unchanged) => assert!(stays && found == stored, "{case}"),
                    Plan::Move { life, .. } => assert!(stays && life == stored && found != stored, "{case}"),
                    Plan::Update(new) => assert!(!stays && offered >= 10 && new.begins_anew, "{case}"),
                    unexpected => panic!("{case}: {unexpected:?}"),
                }
            }
        }
    }

    fn leaving_version(number: u64) -> Arc<Version> {
        let text = format!(
            r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{number}",
            "deletionTimestamp":"2026-11-01T12:00:00Z"}}}}"#
        );
        Arc::new(Version {
            object: Object::parse_str(&text).expect("an object"),
            ..(*version(number)).clone()
        })
    }

    #[test]
    fn another_text_under_the_same_version_is_written_and_reported() {
        let begins_anew = |hash, group_ver: &str| {
            let write = RowWrite::Store {
                version: version(10),
                life: Life::Live,
                revive: Revive::Never,
            };
            let found = FoundRow {
                hash,
                group_ver: group_ver.to_owned(),
                ..row(10, Life::Live)
            };
            match plan(&write, Some(&found), OWN, Timestamp::UNIX_EPOCH) {
                Plan::Update(new) => new.begins_anew,
                other => panic!("{other:?}"),
            }
        };
        assert!(begins_anew(Some(version(11).hash), OWN));
        assert!(!begins_anew(None, OWN), "another program's row is no other time");
        let other = begins_anew(Some(version(11).hash), "test/v1");
        assert!(
            !other,
            "the same object in another version of its kind has lost nothing"
        );
    }

    #[test]
    fn a_row_without_a_hash_is_written_whole() {
        let write = RowWrite::Store {
            version: version(10),
            life: Life::Live,
            revive: Revive::Never,
        };
        let found = FoundRow {
            hash: None,
            ..row(10, Life::Live)
        };
        match plan(&write, Some(&found), OWN, Timestamp::UNIX_EPOCH) {
            Plan::Update(new) => assert!(new.labels && new.annotations),
            other => panic!("{other:?}"),
        }
    }
}
