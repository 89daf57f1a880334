//! What to write for one listed object. Pure; stricter than the ingester, for a list is
//! older than a watch and no effect follows: whatever may be under way is left to it.

use kindex_model::head::Head;
use kindex_model::projection::ContentHash;
use kindex_query::Life;
use kindex_store::RowState;

/// What becomes of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It is stored as live.
    Store,
    /// Its row says the same.
    Unchanged,
    /// Its row holds a newer version.
    Newer,
    /// Its row says that it left, or it is leaving: who moves it has to know both sides.
    Leave,
}

/// Decides one object. `hash` is that of the listed text.
pub(super) fn plan(head: &Head, hash: ContentHash, row: Option<&RowState>) -> Plan {
    let Some(row) = row else { return Plan::Store };
    match row.life {
        // Somebody took it back after it was stored for the last time.
        Life::Evicted if !head.is_leaving() && !head.immutable && head.version >= row.cluster_version() => Plan::Store,
        Life::Evicted | Life::Deleted => Plan::Leave,
        Life::Live if row.res_version > head.version => Plan::Newer,
        Life::Live if row.res_version == head.version && row.hash == Some(hash) => Plan::Unchanged,
        Life::Live => Plan::Store,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kindex_model::object::{ResourceVersion, Uid};

    fn hash(byte: u8) -> ContentHash {
        ContentHash::from_bytes(&[byte; 32]).expect("32 bytes")
    }

    fn row(version: u64, life: Life, hashed: Option<u8>) -> RowState {
        RowState {
            arrival: kindex_store::Arrival(1),
            uid: Uid::from("u"),
            namespace: String::new(),
            name: "a".to_owned(),
            res_version: ResourceVersion(version),
            hash: hashed.map(hash),
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
    fn only_what_differs_is_stored() {
        let live = |version, hashed| plan(&head(5), hash(1), Some(&row(version, Life::Live, hashed)));
        assert_eq!(plan(&head(5), hash(1), None), Plan::Store);
        assert_eq!(live(4, Some(0)), Plan::Store);
        assert_eq!(live(5, Some(1)), Plan::Unchanged);
        assert_eq!(live(5, Some(2)), Plan::Store, "the same version with another text");
        assert_eq!(live(5, None), Plan::Store, "a row of another program");
        assert_eq!(live(6, Some(2)), Plan::Newer);
    }

    /// A row that is made live while its object is being evicted would be closed as deleted.
    #[test]
    fn an_eviction_under_way_is_left_alone() {
        let immutable = Head {
            immutable: true,
            ..head(5)
        };
        let evicted = row(5, Life::Evicted, Some(1));
        assert_eq!(plan(&immutable, hash(1), Some(&evicted)), Plan::Leave);
        assert_eq!(plan(&head(6), hash(1), Some(&evicted)), Plan::Store, "taken back");
        assert_eq!(plan(&head(4), hash(1), Some(&evicted)), Plan::Leave, "the list is late");
    }

    #[test]
    fn a_deleted_row_is_revived_by_nobody_but_the_ingester() {
        for version in [4, 5, 6] {
            let deleted = row(5, Life::Deleted, Some(1));
            assert_eq!(plan(&head(version), hash(1), Some(&deleted)), Plan::Leave);
        }
    }
}
