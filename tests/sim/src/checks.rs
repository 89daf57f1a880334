//! The rules that hold after every turn. Reads the cluster and SQL, never an ingester.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Life;
use kindex_runtime::settings::Settings;

use super::cluster::{Departure, SimCluster};
use super::database::{SimDatabase, SimRow, Transition};
use super::marked::{came_back_closed, what_a_user_deletes_is_not_archived};
use super::object::Revision;
use super::rows::{
    an_archived_row_has_its_references, no_row_goes_back, no_row_reopens_once_its_object_has_left,
    one_row_of_a_name_is_open,
};
use super::stored::{holds_lost_version, stored_revision};
use super::thing::{IMMUTABLE, OWNED};
use super::unsaved::{UnsavedEvents, has_the_row};

/// The settings and the earlier turns that the rules depend on.
#[derive(Debug, Default)]
pub struct Checks {
    /// Whether the kind is declared immutable.
    pub kind_immutable: bool,
    /// Whether objects are adopted.
    pub adopt_finalizers: bool,
    /// How long a soft delete waits. Zero from the moment a wall clock was wrong.
    pub deletion_delay: Duration,
    /// How long our finalizer stays on an object that finalizers of others hold.
    pub finalizer_wait: Duration,
    /// Whether only one ingester runs.
    pub alone: bool,
    /// Whether the cluster was restored and an ingester does not know it yet.
    pub unaware: bool,
    /// Whether the cluster was restored more than once.
    pub restored_again: bool,
    /// Whether the saved checkpoint is older than the restoration of the cluster.
    pub checkpoint_is_old: bool,
    /// How many objects others removed before they had a row.
    pub planted_losses: u64,
    /// Quarantine records that were committed after their process had died, so that no process knows of them.
    pub late_records: BTreeSet<Uid>,
    /// Events that must be in the history before a checkpoint passes them.
    pub unsaved_events: UnsavedEvents,
    /// The turn in which a row was marked deleted.
    closed_in: BTreeMap<Uid, u64>,
    /// Rows that were marked deleted and revived.
    reopened: BTreeSet<Uid>,
    checkpoint: Option<Checkpoint>,
}

impl Checks {
    /// The rules of a kind under these settings.
    pub fn of(kind: &Kind, settings: &Settings, processes: usize) -> Self {
        Self {
            alone: processes == 1,
            kind_immutable: kind.immutable,
            adopt_finalizers: settings.adopt_finalizers,
            deletion_delay: settings.deletion_delay,
            finalizer_wait: settings.finalizer_wait,
            ..Self::default()
        }
    }

    /// Checks everything that changed since the last call.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn after_turn(&mut self, cluster: &mut SimCluster, database: &mut SimDatabase) -> Result<(), String> {
        let transitions = std::mem::take(&mut database.transitions);
        for transition in &transitions {
            self.check_row(transition, cluster, database)?;
        }
        for departure in std::mem::take(&mut cluster.departures) {
            self.nothing_leaves_before_it_is_stored(&departure, cluster, database)?;
        }
        if !transitions.is_empty() || self.checkpoint != database.checkpoint {
            self.the_mark_is_removed_last(cluster, database)?;
            self.checkpoint = database.checkpoint;
            self.the_checkpoint_is_settled(cluster, database)?;
            self.the_history_is_complete(cluster, database)?;
        }
        Ok(())
    }

    fn check_row(
        &mut self,
        transition: &Transition,
        cluster: &SimCluster,
        database: &SimDatabase,
    ) -> Result<(), String> {
        let uid = &transition.uid;
        let row = &database.rows[uid];
        if transition.stored {
            self.row_text_is_from_cluster(row, cluster)?;
            has_the_row(row, database)?;
            self.what_is_in_use_is_not_closed(row, cluster)?;
        }
        an_archived_row_has_its_references(row, database)?;
        no_row_goes_back(transition, database)?;
        no_row_reopens_once_its_object_has_left(row, transition, cluster)?;
        let before = transition.before.map(|(_, life)| life);
        database.owned.owners_leave_last(uid, before, transition.after.1)?;
        // What has left the cluster was perhaps not there when its name was asked for.
        if !cluster.gone.contains_key(&*uid.0) {
            cluster.owned.owners_leave_last(uid, before, transition.after.1)?;
        }
        self.no_late_write_revives(transition, cluster)?;
        one_row_of_a_name_is_open(row, database)?;
        if transition.after.1 == Life::Deleted {
            let first = self.closed_in.insert(uid.clone(), cluster.turn).is_none();
            if first {
                self.archived_stays_archived(row, cluster, database)?;
                self.no_row_closes_early(row, cluster, database)
            } else {
                Ok(())
            }
        } else {
            if self.closed_in.remove(uid).is_some() {
                self.reopened.insert(uid.clone());
            }
            Ok(())
        }
    }

    /// The text of a row is one that the cluster sent, byte for byte. It is one that the cluster has lost only if an
    /// ingester wrote it that did not know of the restoration.
    fn row_text_is_from_cluster(&self, row: &SimRow, cluster: &SimCluster) -> Result<(), String> {
        let (uid, text) = (&row.object().metadata.uid, row.object().text());
        if stored_revision(row, cluster).is_none() {
            return Err(format!(
                "the row of {uid} holds a text that the cluster never sent: {text}"
            ));
        }
        if holds_lost_version(row, cluster) && !self.unaware {
            return Err(format!(
                "the row of {uid} takes a text that the cluster has lost: {text}"
            ));
        }
        Ok(())
    }

    /// A row whose text has references is not marked deleted as long as the object is there and has them.
    fn what_is_in_use_is_not_closed(&self, row: &SimRow, cluster: &SimCluster) -> Result<(), String> {
        let uid = &row.object().metadata.uid;
        let found = cluster.find_uid(&uid.0).filter(|object| object.is_in_use());
        let found = found.filter(|object| !came_back_closed(object, row, self.kind_immutable, cluster));
        let stored = stored_revision(row, cluster).filter(|stored| stored.is_in_use());
        if row.life() == Life::Deleted && found.is_some() && stored.is_some() && self.alone && !self.unaware {
            return Err(format!("the row of {uid} is marked deleted, but others use the object"));
        }
        Ok(())
    }

    /// A row is revived only if the cluster shows the uid alive.
    fn no_late_write_revives(&self, transition: &Transition, cluster: &SimCluster) -> Result<(), String> {
        let revived = matches!(transition.before, Some((_, Life::Deleted))) && transition.after.1 != Life::Deleted;
        let (Some(closed), Some(gone)) = (
            self.closed_in.get(&transition.uid),
            cluster.gone.get(&*transition.uid.0),
        ) else {
            return Ok(());
        };
        if revived && gone.turn < *closed {
            return Err(format!(
                "a row was revived whose object had left before it was closed: {transition:?}"
            ));
        }
        Ok(())
    }

    /// A soft delete waits for `deletionDelay`. Exceptions:
    /// - An ingester that does not know of a restoration may close a row that it saw leave before the restoration.
    /// - Of two ingesters, one that has read a closed row may close it again after the other has revived it.
    /// - Of two ingesters, one may have stored an object of the lost time before it knew of the restoration. That row
    ///   holds its name until the same ingester has rewound it.
    fn no_row_closes_early(&self, row: &SimRow, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
        let metadata = &row.object().metadata;
        let uid = &metadata.uid;
        let (Some(object), Some(since)) = (cluster.find_uid(&uid.0), cluster.leaving.get(&*uid.0)) else {
            return Ok(());
        };
        let lost_name = !self.alone
            && database.rows.values().any(|other| {
                let holder = &other.object().metadata;
                let newer = holder.resource_version > metadata.resource_version;
                newer && holder.name == metadata.name && holder.uid != *uid && holds_lost_version(other, cluster)
            });
        let waited = cluster.now.duration_since(*since);
        let read_closed = !self.alone && self.reopened.contains(uid);
        let excused = self.unaware || read_closed || lost_name;
        if !excused && Duration::try_from(waited).unwrap_or_default() < self.deletion_delay {
            return Err(format!("{} was closed after only {waited:#}", object.uid));
        }
        Ok(())
    }

    /// An archived object that no user deleted stays archived. Every version in which it was leaving is immutable, so
    /// only an ingester can have deleted it. Excepted are rows that a new object of the same name has closed.
    fn archived_stays_archived(
        &self,
        row: &SimRow,
        cluster: &SimCluster,
        database: &SimDatabase,
    ) -> Result<(), String> {
        let uid = &row.object().metadata.uid;
        let Some(revisions) = cluster.revisions.get(&*uid.0).filter(|_| !self.unaware) else {
            return Ok(());
        };
        let archiving = |revision: &&Arc<Revision>| self.kind_immutable || revision.is_annotated(IMMUTABLE);
        let mut leaving = revisions
            .iter()
            .filter(|revision| revision.deleted_at.is_some())
            .peekable();
        let archived = leaving.peek().is_some() && leaving.all(|revision| archiving(&revision));
        let replaced = database.rows.values().any(|other| {
            let (other, object) = (&other.object().metadata, &row.object().metadata);
            other.name == object.name && other.uid != object.uid && other.resource_version > object.resource_version
        });
        let excused = replaced || cluster.lost.contains_key(&*uid.0) || cluster.deleted_by_users.contains(&*uid.0);
        if archived && !excused {
            return Err(format!(
                "{uid} was archived and no user deleted it, but its row is marked deleted"
            ));
        }
        Ok(())
    }

    /// Our finalizer is removed last, or after `finalizerWait`.
    fn our_finalizer_goes_last(&self, object: &Revision, cluster: &SimCluster) -> Result<(), String> {
        let since = cluster.leaving.get(&object.uid).filter(|_| !self.unaware);
        let waited = since.map(|since| cluster.now.duration_since(*since));
        match waited {
            Some(waited) if Duration::try_from(waited).unwrap_or_default() < self.finalizer_wait => Err(format!(
                "{} was released after only {waited:#}, while others held it",
                object.uid
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// An ingester removes no object from etcd before SQL holds its final version.
    fn nothing_leaves_before_it_is_stored(
        &mut self,
        departure: &Departure,
        cluster: &SimCluster,
        database: &SimDatabase,
    ) -> Result<(), String> {
        let Departure {
            object,
            by_ingester,
            stays,
            references: _,
        } = departure;
        let row = database.rows.get(&Uid::from(object.uid.as_str()));
        if !by_ingester {
            self.planted_losses += u64::from(row.is_none());
            return Ok(());
        }
        if *stays {
            self.our_finalizer_goes_last(object, cluster)?;
        }
        if row.is_none_or(|row| !came_back_closed(object, row, self.kind_immutable, cluster)) {
            self.no_reference_is_lost(departure, database)?;
        }
        if !self.unaware {
            what_a_user_deletes_is_not_archived(departure, row, cluster)?;
        }
        match row {
            // Of two ingesters, one may take a deletion for an eviction, and the other not.
            Some(row) if row.life() == Life::Live && !stays => {
                Err(format!("an object left, but its row is live: {}", object.object.text()))
            }
            Some(row) if holds(row, object, cluster) => Ok(()),
            // Of two ingesters, one that does not know of the restoration may have stored an older text over it.
            Some(row) if !self.alone && holds_lost_version(row, cluster) => Ok(()),
            Some(row) => Err(format!(
                "an object left before SQL held it: {}, but the row holds {}",
                object.object.text(),
                row.object().text()
            )),
            None => Err(format!("an object left without a row: {}", object.object.text())),
        }
    }

    /// An ingester releases no object that is in use, but for one that it evicts: its references are in SQL then. It
    /// evicts none that owns others in the cluster.
    fn no_reference_is_lost(&self, departure: &Departure, database: &SimDatabase) -> Result<(), String> {
        let object = &departure.object;
        if departure.stays && object.is_in_use() && !self.unaware {
            return Err(format!("{} was released while others use it", object.uid));
        }
        if departure.references.iter().any(|name| name == OWNED) && !self.unaware {
            return Err(format!("{} left before what it owns", object.uid));
        }
        let held = database.references.get(&Uid::from(object.uid.as_str()));
        let is_held = |name: &String| held.is_some_and(|held| held.contains(name));
        match departure.references.iter().find(|name| !is_held(name)) {
            Some(name) if !self.unaware => Err(format!("{} lost its reference {name} when it left", object.uid)),
            Some(_) | None => Ok(()),
        }
    }

    /// The restore mark stays until no row above its version holds a text that the cluster has lost. An ingester that
    /// does not know of the restoration yet will save a mark of its own. The marks of two restorations from one backup
    /// are equal, so of two ingesters one may take the second for its own.
    fn the_mark_is_removed_last(&self, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
        let mark = |checkpoint: Option<Checkpoint>| checkpoint.and_then(Checkpoint::restored_to);
        let excused = self.unaware || (self.restored_again && !self.alone);
        let (Some(version), None, false) = (mark(self.checkpoint), mark(database.checkpoint), excused) else {
            return Ok(());
        };
        let beyond = |row: &&SimRow| row.version > version && holds_lost_version(row, cluster);
        match database.rows.values().find(beyond) {
            Some(row) => Err(format!(
                "the restore mark at {version} was removed, but a row holds what the cluster has lost: {}",
                row.object().text()
            )),
            None => Ok(()),
        }
    }

    /// The version of the saved checkpoint, unless it is a restore mark.
    fn position(&self) -> Option<ResourceVersion> {
        let saved = self.checkpoint.filter(|saved| saved.restored_to().is_none());
        saved.map(Checkpoint::version)
    }

    /// Everything before the saved checkpoint is settled: a restart would not see it again.
    fn the_checkpoint_is_settled(&self, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
        let trusted = self.alone && !self.checkpoint_is_old;
        let Some(position) = self.position().filter(|_| trusted) else {
            return Ok(());
        };
        for object in cluster.objects.values().filter(|object| object.version <= position.0) {
            if let Some(reason) = self.unsettled(object, cluster, database) {
                return Err(format!(
                    "{position} is saved, but {} is not settled: {reason}",
                    object.uid
                ));
            }
        }
        for (uid, gone) in cluster.gone.iter().filter(|(_, gone)| gone.version <= position.0) {
            let row = database.rows.get(&Uid::from(uid.as_str()));
            if row.is_some_and(|row| row.life() == Life::Live) {
                return Err(format!(
                    "{position} is saved and {uid} left at {}, but its row is live",
                    gone.version
                ));
            }
        }
        Ok(())
    }

    /// The history holds every event before the saved checkpoint: a restart would not receive it again. Of two
    /// ingesters, one may have received less than the other.
    fn the_history_is_complete(&mut self, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
        let trusted = self.alone && !self.checkpoint_is_old;
        match self.position().filter(|_| trusted) {
            Some(position) => self.unsaved_events.is_kept(position, cluster, database),
            None => Ok(()),
        }
    }

    /// Why an ingester is not finished with a present object; `None` if it is.
    pub fn unsettled(&self, object: &Revision, cluster: &SimCluster, database: &SimDatabase) -> Option<&'static str> {
        let uid = Uid::from(object.uid.as_str());
        let row = database.rows.get(&uid);
        // Of two ingesters that find a restored cluster, the second may rewind what the first stored.
        let version = |row: &SimRow| row.version.0 == object.version;
        let current = row.is_some_and(|row| version(row) && row.object().text() == object.object.text());
        let record = database.quarantine.get(&uid);
        // Of two ingesters, the one that is behind may record an older text last.
        let recorded = record.is_some_and(|(known, _)| !self.alone || known.text() == object.object.text());
        if object.is_poison() && recorded {
            return None;
        }
        let Some(row) = row else {
            return Some("it has no row");
        };
        match (object.deleted_at.is_some(), object.has_finalizer()) {
            (true, true) if object.is_in_use() && row.life() == Life::Live && current => None,
            (true, true) => Some("our finalizer holds it"),
            (true, false) => {
                let enough = match row.life() {
                    Life::Live => current,
                    // Our own delete and release change nothing that a user wrote.
                    Life::Archived | Life::Deleted => holds(row, object, cluster),
                };
                (!enough).then_some("its row holds another version")
            }
            (false, _) if object.is_final(self.kind_immutable) && !object.owns() => Some("it is final but not deleted"),
            (false, has_finalizer) => match row.life() {
                Life::Live if !current => Some("its row holds another version"),
                Life::Live if self.adopt_finalizers && !has_finalizer => Some("it lacks our finalizer"),
                Life::Live => None,
                Life::Archived | Life::Deleted => Some("its row is not live"),
            },
        }
    }
}

fn holds(row: &SimRow, object: &Revision, cluster: &SimCluster) -> bool {
    stored_revision(row, cluster).is_some_and(|stored| stored.content() == object.content())
}
