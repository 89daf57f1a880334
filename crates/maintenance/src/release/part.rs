//! What becomes of one guarded object, decided on what SQL says of it. Pure.

use kindex_model::head::Head;
use kindex_model::projection::ContentHash;
use kindex_query::Life;
use kindex_store::RowState;

/// What is done with one guarded object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// SQL holds this version, or says that the object left: it is released.
    Release,
    /// It is being deleted: its final version is stored as deleted, then it is released.
    Close,
    /// SQL lacks this version.
    Store,
}

/// Decides one object that holds the finalizer. `hash` is that of its text.
pub(super) fn part(head: &Head, hash: ContentHash, row: Option<&RowState>) -> Part {
    let Some(row) = row else {
        return missing(head);
    };
    let evicting = row.life == Life::Evicted && head.immutable;
    if row.life == Life::Deleted && row.cluster_version() < head.version && head.deletion_timestamp.is_some() {
        return Part::Close;
    }
    if row.life == Life::Deleted || evicting || row.cluster_version() > head.version {
        return Part::Release;
    }
    let held = row.cluster_version() == head.version && row.hash == Some(hash);
    if held && head.deletion_timestamp.is_none() {
        Part::Release
    } else {
        missing(head)
    }
}

fn missing(head: &Head) -> Part {
    match head.deletion_timestamp {
        Some(_) => Part::Close,
        None => Part::Store,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kindex_model::object::{ResourceVersion, Uid};

    fn hash(byte: u8) -> ContentHash {
        ContentHash::from_bytes(&[byte; 32]).expect("32 bytes")
    }

    fn row(version: u64, life: Life, hashed: u8) -> RowState {
        RowState {
            arrival: kindex_store::Arrival(1),
            uid: Uid::from("u"),
            namespace: String::new(),
            name: "a".to_owned(),
            res_version: ResourceVersion(version),
            hash: Some(hash(hashed)),
            life,
        }
    }

    fn head(version: u64) -> Head {
        Head {
            version: ResourceVersion(version),
            deletion_timestamp: None,
            guarded: true,
            held: false,
            deleting: false,
            immutable: false,
        }
    }

    #[test]
    fn only_what_sql_holds_is_released_at_once() {
        let live = |version, hashed| part(&head(5), hash(1), Some(&row(version, Life::Live, hashed)));
        assert_eq!(part(&head(5), hash(1), None), Part::Store);
        assert_eq!(live(4, 1), Part::Store);
        assert_eq!(live(5, 2), Part::Store, "the same version with another text");
        assert_eq!(live(5, 1), Part::Release);
        assert_eq!(live(6, 2), Part::Release, "the list is late");
    }

    #[test]
    fn an_object_that_somebody_deleted_is_closed_first() {
        let leaving = Head {
            deletion_timestamp: Some(Timestamp::UNIX_EPOCH),
            ..head(5)
        };
        assert_eq!(part(&leaving, hash(1), None), Part::Close);
        let at = |life| part(&leaving, hash(1), Some(&row(5, life, 1)));
        assert_eq!(at(Life::Live), Part::Close);
        assert_eq!(at(Life::Deleted), Part::Release);
        let behind = part(&leaving, hash(1), Some(&row(4, Life::Deleted, 2)));
        assert_eq!(behind, Part::Close, "others have written since");
        assert_eq!(at(Life::Evicted), Part::Close, "somebody deleted what was taken back");
    }

    #[test]
    fn an_eviction_under_way_stays_one() {
        let immutable = Head {
            immutable: true,
            deletion_timestamp: Some(Timestamp::UNIX_EPOCH),
            ..head(6)
        };
        let evicted = row(5, Life::Evicted, 1);
        assert_eq!(part(&immutable, hash(2), Some(&evicted)), Part::Release);
    }
}
