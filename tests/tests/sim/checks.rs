//! What must hold after every turn, and what must hold when all has come to rest.

use kindex_runtime::object::{Object, Uid};
use kindex_runtime::store::Life;
use serde_json::Value;

use super::cluster::{Departure, SimCluster, SimObject, is_doomed};
use super::database::{SimDatabase, SimRow, Transition};
use super::{FINALIZER, IMMUTABLE, POISON_VALUE};

/// # Errors
/// The first rule that is broken.
pub fn after_turn(cluster: &mut SimCluster, database: &mut SimDatabase) -> Result<(), String> {
    for departure in std::mem::take(&mut cluster.departures) {
        nothing_leaves_unstored(&departure, database)?;
    }
    for transition in std::mem::take(&mut database.transitions) {
        no_row_goes_back(&transition, database)?;
    }
    Ok(())
}

/// # Errors
/// Every difference between the cluster and SQL.
pub fn at_rest(processes: usize, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
    let mut wrong = Vec::new();
    for object in cluster.objects.values() {
        if is_doomed(object) {
            wrong.push(format!("starves: {object:?}"));
        }
        match database.rows.get(&Uid::from(object.uid.as_str())) {
            Some(row) if row.life == Life::Live && row.object.text() == object.to_object().text() => {}
            found => wrong.push(format!("{object:?} is alive, its row: {found:?}")),
        }
    }
    for (uid, row) in &database.rows {
        if row.life == Life::Live && cluster.find_uid(uid).is_none() {
            wrong.push(format!("the row of {uid} is live, the object is gone"));
        }
        if row.life == Life::Evicted && !left_as_immutable(&row.object) {
            let text = row.object.text();
            wrong.push(format!("{uid} is evicted and was not immutable: {text}"));
        }
    }
    // Of two processes, the one that knows of the record may not be the one that stores.
    let records = (processes == 1).then_some(&database.quarantine);
    for uid in records.into_iter().flat_map(|records| records.keys()) {
        let stored = database.rows.get(uid).filter(|row| row.life == Life::Live);
        if stored.is_some_and(|row| !row.object.text().contains(super::POISON)) {
            wrong.push(format!("{uid} is stored and still in quarantine"));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// The mark may still be taken off an object that others' finalizers hold, once it goes.
fn left_as_immutable(object: &Object) -> bool {
    let metadata = &object.metadata;
    let marked = metadata.annotations.get(IMMUTABLE).is_some_and(|v| v == "true");
    marked || metadata.deletion_timestamp.is_some()
}

/// Nothing leaves etcd by our hand before SQL holds its final version.
fn nothing_leaves_unstored(departure: &Departure, database: &SimDatabase) -> Result<(), String> {
    let Departure { object, by_ingester } = departure;
    if !by_ingester {
        return Ok(());
    }
    let row = database.rows.get(&Uid::from(object.uid.as_str()));
    match row {
        Some(row) if row.life == Life::Live => Err(format!("{} left and its row is live", object.uid)),
        Some(row) if holds(row, object) => Ok(()),
        found => Err(format!("{object:?} left before SQL held it: {found:?}")),
    }
}

fn holds(row: &SimRow, object: &SimObject) -> bool {
    let metadata = &row.object.metadata;
    let json: Value = serde_json::from_str(row.object.text()).expect("rows hold JSON");
    let value = json["spec"]["value"].as_u64().expect("a number");
    (value, &metadata.labels, &metadata.annotations) == object.content()
}

/// Versions of a row only grow, but where the cluster was restored and won.
fn no_row_goes_back(transition: &Transition, database: &SimDatabase) -> Result<(), String> {
    let Some((before, _)) = transition.before else {
        return Ok(());
    };
    if transition.after.0 < before && !database.rewound.contains(&transition.uid) {
        return Err(format!("a row went back: {transition:?}"));
    }
    Ok(())
}

#[test]
fn the_checks_see_an_object_that_left_unstored() {
    let mut cluster = SimCluster::default();
    let mut database = SimDatabase::default();
    cluster.create("a", POISON_VALUE, true);
    let now = jiff::Timestamp::UNIX_EPOCH;
    cluster.delete("a", now, false);
    cluster.update("a", true, |object| object.finalizers.retain(|f| f != FINALIZER));
    let verdict = after_turn(&mut cluster, &mut database);
    assert!(verdict.is_err_and(|wrong| wrong.contains("left before SQL held it")));
}
