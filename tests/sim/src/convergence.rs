//! The rules that hold after convergence: SQL equals the cluster, and no object waits for anything. Reads the cluster
//! and SQL, never an ingester.

use kindex_model::object::Uid;
use kindex_query::Life;

use super::checks::Checks;
use super::cluster::SimCluster;
use super::database::{SimDatabase, SimRow};
use super::stored::stored_revision;
use super::thing::IMMUTABLE;
use super::unsaved::has_the_row;

/// Fails with every difference between the cluster and SQL, except for objects that the database rejects or that
/// finalizers of others hold.
///
/// # Errors
/// All of them.
pub fn check_convergence(checks: &Checks, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
    let mut wrong = Vec::new();
    for object in cluster.objects.values() {
        if let Some(reason) = checks.unsettled(object, cluster, database) {
            wrong.push(format!("never settled, because {reason}: {}", object.object.text()));
        }
    }
    for (uid, row) in &database.rows {
        wrong.extend(has_the_row(row, database).err());
        if row.life() == Life::Live && cluster.find_uid(&uid.0).is_none() {
            wrong.push(format!("the row of {uid} is live, but the object is gone"));
        }
        if row.life() == Life::Archived && !checks.kind_immutable && !left_as_immutable(row, cluster) {
            let text = row.object().text();
            wrong.push(format!("{uid} is archived, but was not immutable: {text}"));
        }
    }
    // Of two ingesters, the one that stores the object may not know of the record.
    if checks.alone {
        wrong.extend(stale_records(checks, cluster, database));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// Whether the object was immutable when it left. The annotation may be removed while finalizers of others hold it.
fn left_as_immutable(row: &SimRow, cluster: &SimCluster) -> bool {
    let stored = stored_revision(row, cluster);
    stored.is_some_and(|stored| stored.is_annotated(IMMUTABLE) || stored.deleted_at.is_some())
}

/// Quarantine records of objects that have been stored since.
fn stale_records(checks: &Checks, cluster: &SimCluster, database: &SimDatabase) -> Vec<String> {
    let stored = |uid: &&Uid| {
        let cured = cluster.find_uid(&uid.0).is_some_and(|object| !object.is_poison());
        cured && database.rows.get(uid).is_some_and(|row| row.life() != Life::Deleted)
    };
    let known = |uid: &&Uid| !checks.late_records.contains(*uid);
    let stale = database.quarantine.keys().filter(stored).filter(known);
    stale
        .map(|uid| format!("{uid} is stored, but still in quarantine"))
        .collect()
}
