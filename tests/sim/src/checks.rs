//! The rules that hold after every turn. Looks at the cluster and at SQL, never into an
//! ingester.

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
use super::memory::{UnsavedEvents, has_the_row};
use super::object::Revision;
use super::stored::{holds_lost_version, stored_revision};
use super::thing::IMMUTABLE;

/// What the rules depend on, and what they have to remember.
#[derive(Debug, Default)]
pub struct Checks {
    /// Whether the kind is declared immutable.
    pub kind_immutable: bool,
    /// Whether objects are given our finalizer.
    pub adopt_finalizers: bool,
    /// How long a soft delete waits; zero once a wall clock was wrong.
    pub deletion_delay: Duration,
    /// How long our finalizer stays on an object that others hold.
    pub finalizer_wait: Duration,
    /// Whether there is one ingester.
    pub alone: bool,
    /// The cluster came back from a backup, and not every ingester knows.
    pub unaware: bool,
    /// Whether the cluster came back from a backup more than once.
    pub restored_again: bool,
    /// The saved position is one of a cluster that is no more.
    pub position_is_old: bool,
    /// Objects that left by another hand before SQL had a row of them.
    pub planted_losses: u64,
    /// Records that were committed after their process had died: no process knows of them.
    pub late_records: BTreeSet<Uid>,
    /// What has to be in the history before a position passes it.
    pub unsaved_events: UnsavedEvents,
    /// The turn in which a row was marked deleted.
    closed_in: BTreeMap<Uid, u64>,
    /// Rows that were marked deleted and came back.
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

    /// What has happened since the last look.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn after_turn(&mut self, cluster: &mut SimCluster, database: &mut SimDatabase) -> Result<(), String> {
        let transitions = std::mem::take(&mut database.transitions);
        for transition in &transitions {
            self.look_at_row(transition, cluster, database)?;
        }
        for departure in std::mem::take(&mut cluster.departures) {
            self.nothing_leaves_unstored(&departure, cluster, database)?;
        }
        if !transitions.is_empty() || self.checkpoint != database.checkpoint {
            self.a_mark_goes_last(cluster, database)?;
            self.checkpoint = database.checkpoint;
            self.the_position_is_settled(cluster, database)?;
            self.the_past_is_kept(cluster, database)?;
        }
        Ok(())
    }

    fn look_at_row(
        &mut self,
        transition: &Transition,
        cluster: &SimCluster,
        database: &SimDatabase,
    ) -> Result<(), String> {
        let uid = &transition.uid;
        let row = &database.rows[uid];
        if transition.stored {
            self.the_cluster_said_that(row, cluster)?;
            has_the_row(row, database)?;
        }
        no_row_goes_back(transition, database)?;
        self.no_late_write_revives(transition, cluster)?;
        one_row_of_a_name_is_open(row, database)?;
        if transition.after.1 == Life::Deleted {
            let first = self.closed_in.insert(uid.clone(), cluster.turn).is_none();
            if first {
                self.somebody_deleted(row, cluster, database)?;
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

    /// A row holds what the cluster said, to the byte; and what a restoration made unsaid only where
    /// an ingester wrote it that did not know.
    fn the_cluster_said_that(&self, row: &SimRow, cluster: &SimCluster) -> Result<(), String> {
        let (uid, text) = (&row.object().metadata.uid, row.object().text());
        if stored_revision(row, cluster).is_none() {
            return Err(format!("the row of {uid} holds what the cluster never said: {text}"));
        }
        if holds_lost_version(row, cluster) && !self.unaware {
            return Err(format!("the row of {uid} takes what the cluster has lost: {text}"));
        }
        Ok(())
    }

    /// Only the cluster showing the uid alive revives a row.
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

    /// A soft delete waits for `deletionDelay`, but where an ingester writes that does not know yet that
    /// the cluster is another one: what it has seen go, or seen renamed, may be back and leaving. Of
    /// two ingesters, one that has read a closed row, which has nothing to wait for, may close it again
    /// after the other has brought it back; and one may have written, before it knew, a row of the time that the
    /// cluster lost, which holds its name until the same ingester has rewound it.
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
            return Err(format!("{} was closed after {waited:#} already", object.uid));
        }
        Ok(())
    }

    /// An archived object that nobody deleted stays archived: every version in which it was leaving says that it is
    /// immutable, so that only we can have deleted it. Of two ingesters, one does not know what the other asked for,
    /// and a new object of the name closes the row of the older one.
    fn somebody_deleted(&self, row: &SimRow, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
        let uid = &row.object().metadata.uid;
        let Some(revisions) = cluster.revisions.get(&*uid.0).filter(|_| !self.unaware) else {
            return Ok(());
        };
        let archiving = |revision: &&Arc<Revision>| self.kind_immutable || revision.says(IMMUTABLE);
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
                "{uid} was archived, nobody deleted it, and its row says deleted"
            ));
        }
        Ok(())
    }

    /// Our finalizer goes last, or after so long.
    fn ours_goes_last(&self, object: &Revision, cluster: &SimCluster) -> Result<(), String> {
        let since = cluster.leaving.get(&object.uid).filter(|_| !self.unaware);
        let waited = since.map(|since| cluster.now.duration_since(*since));
        match waited {
            Some(waited) if Duration::try_from(waited).unwrap_or_default() < self.finalizer_wait => Err(format!(
                "{} was released after {waited:#} already, and others held it",
                object.uid
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Nothing leaves etcd by our hand before SQL holds its final version.
    fn nothing_leaves_unstored(
        &mut self,
        departure: &Departure,
        cluster: &SimCluster,
        database: &SimDatabase,
    ) -> Result<(), String> {
        let Departure {
            object,
            by_ingester,
            stays,
        } = departure;
        let row = database.rows.get(&Uid::from(object.uid.as_str()));
        if !by_ingester {
            self.planted_losses += u64::from(row.is_none());
            return Ok(());
        }
        if *stays {
            self.ours_goes_last(object, cluster)?;
        }
        match row {
            // Of two ingesters, one may hold a deletion for our eviction, and the other not.
            Some(row) if row.life() == Life::Live && !stays => {
                Err(format!("an object left and its row is live: {}", object.object.text()))
            }
            Some(row) if holds(row, object, cluster) => Ok(()),
            // Of two ingesters, one that does not know yet may store over it what the cluster once said.
            Some(row) if !self.alone && holds_lost_version(row, cluster) => Ok(()),
            Some(row) => Err(format!(
                "an object left before SQL held it: {}, and the row says {}",
                object.object.text(),
                row.object().text()
            )),
            None => Err(format!("an object left and has no row: {}", object.object.text())),
        }
    }

    /// The mark of a restored cluster stays until no row beyond its version holds what the cluster has lost; but where
    /// an ingester does not know yet that the cluster is another one, it has a mark of its own to save. The marks of
    /// two restorations from one backup are equal: of two ingesters one may take that of the second for its own.
    fn a_mark_goes_last(&self, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
        let mark = |checkpoint: Option<Checkpoint>| checkpoint.and_then(Checkpoint::mark);
        let excused = self.unaware || (self.restored_again && !self.alone);
        let (Some(version), None, false) = (mark(self.checkpoint), mark(database.checkpoint), excused) else {
            return Ok(());
        };
        let beyond = |row: &&SimRow| row.version > version && holds_lost_version(row, cluster);
        match database.rows.values().find(beyond) {
            Some(row) => Err(format!(
                "the mark of a cluster that was restored at {version} went, and a row holds what it has lost: {}",
                row.object().text()
            )),
            None => Ok(()),
        }
    }

    /// The saved position, where it is none of a restored cluster.
    fn position(&self) -> Option<ResourceVersion> {
        let saved = self.checkpoint.filter(|saved| saved.mark().is_none());
        saved.map(Checkpoint::version)
    }

    /// What a start from the saved position would not see again is settled.
    fn the_position_is_settled(&self, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
        let trusted = self.alone && !self.position_is_old;
        let Some(position) = self.position().filter(|_| trusted) else {
            return Ok(());
        };
        for object in cluster.objects.values().filter(|object| object.version <= position.0) {
            if let Some(reason) = self.unsettled(object, cluster, database) {
                return Err(format!(
                    "{position} is saved and {} is not settled: {reason}",
                    object.uid
                ));
            }
        }
        for (uid, gone) in cluster.gone.iter().filter(|(_, gone)| gone.version <= position.0) {
            let row = database.rows.get(&Uid::from(uid.as_str()));
            if row.is_some_and(|row| row.life() == Life::Live) {
                return Err(format!(
                    "{position} is saved, {uid} left at {} and its row is live",
                    gone.version
                ));
            }
        }
        Ok(())
    }

    /// What a start from the saved position would not be told again is in the history. Of two
    /// ingesters, one may have seen less than the other.
    fn the_past_is_kept(&mut self, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
        let trusted = self.alone && !self.position_is_old;
        match self.position().filter(|_| trusted) {
            Some(position) => self.unsaved_events.is_kept(position, cluster, database),
            None => Ok(()),
        }
    }

    /// What an ingester still has to do for a present object, if anything.
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
        match (object.deleted_at.is_some(), object.guarded()) {
            (true, true) => Some("our finalizer holds it"),
            (true, false) => {
                let enough = match row.life() {
                    Life::Live => current,
                    // Our own delete and release add nothing that a user wrote.
                    Life::Evicted | Life::Deleted => holds(row, object, cluster),
                };
                (!enough).then_some("its row holds another version")
            }
            (false, _) if object.is_final(self.kind_immutable) => Some("it has to leave and is not deleted"),
            (false, guarded) => match row.life() {
                Life::Live if !current => Some("its row holds another version"),
                Life::Live if self.adopt_finalizers && !guarded => Some("it lacks our finalizer"),
                Life::Live => None,
                Life::Evicted | Life::Deleted => Some("its row is not live"),
            },
        }
    }
}

fn holds(row: &SimRow, object: &Revision, cluster: &SimCluster) -> bool {
    stored_revision(row, cluster).is_some_and(|stored| stored.content() == object.content())
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

/// A recreated object is a new row, and the old one is closed.
fn one_row_of_a_name_is_open(row: &SimRow, database: &SimDatabase) -> Result<(), String> {
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
