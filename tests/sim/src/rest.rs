//! The rules that hold when all has come to rest: SQL equals the cluster, and nobody was
//! forgotten. Looks at the cluster and at SQL, never into an ingester.

use kindex_model::object::Uid;
use kindex_query::Life;

use super::checks::Checks;
use super::cluster::SimCluster;
use super::database::{SimDatabase, SimRow};
use super::memory::has_the_row;
use super::stored::stored_revision;
use super::thing::IMMUTABLE;

/// Every difference between the cluster and SQL that no rule excuses. What the database
/// refuses, and what other controllers hold, is excused; a user may end that.
///
/// # Errors
/// All of them.
pub fn at_rest(checks: &Checks, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
    let mut wrong = Vec::new();
    for object in cluster.objects.values() {
        if let Some(reason) = checks.unsettled(object, cluster, database) {
            wrong.push(format!("starves, for {reason}: {}", object.object.text()));
        }
    }
    for (uid, row) in &database.rows {
        wrong.extend(has_the_row(row, database).err());
        if row.life() == Life::Live && cluster.find_uid(&uid.0).is_none() {
            wrong.push(format!("the row of {uid} is live, the object is gone"));
        }
        if row.life() == Life::Evicted && !checks.kind_immutable && !left_as_immutable(row, cluster) {
            let text = row.object().text();
            wrong.push(format!("{uid} is evicted and was not immutable: {text}"));
        }
    }
    // Of two ingesters, the one that knows of the record may not be the one that stores.
    if checks.alone {
        wrong.extend(stale_records(checks, cluster, database));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// The mark may still be taken off an object that others' finalizers hold, once it goes.
fn left_as_immutable(row: &SimRow, cluster: &SimCluster) -> bool {
    let stored = stored_revision(row, cluster);
    stored.is_some_and(|stored| stored.says(IMMUTABLE) || stored.deleted_at.is_some())
}

/// Records of objects that are stored by now.
fn stale_records(checks: &Checks, cluster: &SimCluster, database: &SimDatabase) -> Vec<String> {
    let stored = |uid: &&Uid| {
        let cured = cluster.find_uid(&uid.0).is_some_and(|object| !object.is_poison());
        cured && database.rows.get(uid).is_some_and(|row| row.life() != Life::Deleted)
    };
    let known = |uid: &&Uid| !checks.late_records.contains(*uid);
    let stale = database.quarantine.keys().filter(stored).filter(known);
    stale
        .map(|uid| format!("{uid} is stored and still in quarantine"))
        .collect()
}
