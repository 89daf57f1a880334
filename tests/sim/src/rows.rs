//! The rules of rows that need no earlier turn: what they hold, and which changes no ingester makes to them. Reads the
//! cluster and SQL, never an ingester.

use std::collections::BTreeSet;

use kindex_query::Life;

use super::cluster::SimCluster;
use super::database::{SimDatabase, SimRow, Transition};
use super::thing::{FINALIZER, REFERENCES};

/// An archived row has the references that its text has, unless our finalizer went with them; a live one has none.
pub(crate) fn an_archived_row_has_its_references(row: &SimRow, database: &SimDatabase) -> Result<(), String> {
    let metadata = &row.object().metadata;
    let names = metadata
        .finalizers
        .iter()
        .filter(|name| REFERENCES.contains(&name.as_str()));
    let is_whole = metadata.deletion_timestamp.is_none() || metadata.finalizers.iter().any(|f| f == FINALIZER);
    let had: BTreeSet<String> = match row.life() {
        Life::Archived if is_whole => names.cloned().collect(),
        Life::Live => BTreeSet::new(),
        Life::Archived | Life::Deleted => return Ok(()),
    };
    let held = database.references.get(&metadata.uid).cloned().unwrap_or_default();
    if held != had {
        return Err(format!(
            "the row of {} has the references {held:?}, not {had:?}",
            metadata.uid
        ));
    }
    Ok(())
}

/// The version of a row only grows, except after the cluster was restored.
pub(crate) fn no_row_goes_back(transition: &Transition, database: &SimDatabase) -> Result<(), String> {
    let Some((before, _)) = transition.before else {
        return Ok(());
    };
    if transition.after.0 < before && !database.rewound.contains(&transition.uid) {
        return Err(format!("a row went back: {transition:?}"));
    }
    Ok(())
}

/// No row is live again in the version in which it was archived, once its object has left. Exceptions:
/// - A version in which the object is being deleted: of two ingesters, one may take that for an eviction, and the other
///   not.
/// - Another text of the same version, which a restoration brings.
pub(crate) fn no_row_reopens_once_its_object_has_left(
    row: &SimRow,
    transition: &Transition,
    cluster: &SimCluster,
) -> Result<(), String> {
    let (version, life) = transition.after;
    let is_reopened = transition.before == Some((version, Life::Archived)) && life == Life::Live;
    let is_excused = transition.stored || row.object().metadata.deletion_timestamp.is_some();
    if is_reopened && !is_excused && cluster.gone.contains_key(&*transition.uid.0) {
        return Err(format!(
            "a row is live again in the version in which it was archived, but its object has left: {transition:?}"
        ));
    }
    Ok(())
}

/// A recreated object is a new row, and the old one is closed.
pub(crate) fn one_row_of_a_name_is_open(row: &SimRow, database: &SimDatabase) -> Result<(), String> {
    let name = |row: &SimRow| row.object().metadata.name.clone();
    let wanted = name(row);
    let open = database.rows.values().filter(|row| row.life() != Life::Deleted);
    let open: Vec<&SimRow> = open.filter(|row| name(row) == wanted).collect();
    if open.len() > 1 {
        let uids: Vec<String> = open.iter().map(|row| row.object().metadata.uid.to_string()).collect();
        return Err(format!("rows of one name are open at once: {}", uids.join(", ")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kindex_model::projection::Version;
    use kindex_query::Revive;
    use kindex_store::RowWrite;

    use super::*;
    use crate::thing::THING;

    #[test]
    fn a_row_may_be_reopened_while_its_object_is_there_and_not_after_that() {
        let (mut cluster, mut database) = (SimCluster::default(), SimDatabase::default());
        cluster.create("a", 1, false);
        let object = cluster.get("a").expect("it was created");
        let uid = object.metadata.uid.clone();
        let version = Version::project(&THING, object);
        for life in [Life::Archived, Life::Live] {
            let write = RowWrite::Store {
                version: version.clone(),
                life,
                revive: Revive::FromAny,
            };
            let written = database.write(&[write], Timestamp::UNIX_EPOCH);
            written.expect("the database takes it");
        }
        let reopened = database.transitions.pop().expect("the row changed");
        let row = &database.rows[&uid];
        let check = |cluster: &SimCluster| no_row_reopens_once_its_object_has_left(row, &reopened, cluster);
        assert_eq!(check(&cluster), Ok(()));
        cluster.delete("a", Timestamp::UNIX_EPOCH, false);
        assert!(check(&cluster).is_err());
    }
}
