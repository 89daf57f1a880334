//! Archived objects that are deleted, as tombstones: which of them wait for `kindex deletion`, and how they are shown.

use kindex_model::deletion::{Annotations, Phase, PhaseStart};
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::Object;
use kindex_query::Stored;
use kindex_store::StoreError;

use super::{Backends, ObjectKey, Refusal, refusal};

/// What `kindex deletion` does here.
#[derive(Default)]
pub(super) struct Graph {
    /// Whether it ends the deletions of tombstones.
    pub(super) is_there: bool,
    /// The kinds whose objects may have something outside, which it cleans up.
    pub(super) outside: Vec<&'static Kind>,
}

impl Backends {
    /// Whether the deletion of an archived object of a kind is left to `kindex deletion`: others may name it without a
    /// reference, it may hold objects of other services, which are told there, or it may have something outside.
    pub(super) fn needs_tombstone(&self, kind: &Kind) -> bool {
        let waiting = kind.references.iter().filter(|reference| reference.waits());
        let mut targets = waiting.flat_map(|reference| reference.targets);
        let is_same = |other: &&Kind| (other.group, other.name) == (kind.group, kind.name);
        let has_outside = self.graph.outside.iter().any(is_same);
        let holds_elsewhere = targets.any(|target| target.service.is_some());
        self.graph.is_there && kind.cluster && (may_be_named(&self.registry, kind) || holds_elsewhere || has_outside)
    }

    /// Records that an archived object is being deleted, so that lists and watches show it with its deletionTimestamp.
    /// Nothing where that is recorded, or somebody else changed it since: then `kindex deletion` records it.
    pub(super) async fn record_deletion(&self, key: &ObjectKey<'_>, found: &Stored) -> Result<Option<String>, Refusal> {
        let (store, kind, now) = (self.store()?, key.resource.kind, self.now());
        let annotations = Annotations::of(self.registry.platform.group);
        if annotations.is_recorded(&found.object.metadata) {
            return Ok(None);
        }
        let uid = &found.object.metadata.uid;
        let tombstones = store.tombstones(kind, std::slice::from_ref(uid)).await;
        let tombstones = tombstones.map_err(|error| refusal::of_store(key, error))?;
        let view = self.view(key.resource);
        // The deletion is done: one without a form in the own version is shown as it was.
        let (Some(tombstone), Ok(kept)) = (tombstones.first(), view.kept(&found.object)) else {
            return Ok(None);
        };
        let start = PhaseStart {
            phase: Phase::Deleting,
            since: now,
            reason: "Requested",
            message: "somebody asked for it".to_owned(),
        };
        let text = annotations.record(kept.text(), &start, tombstone.requested);
        let Some(object) = text.ok().and_then(|text| Object::parse_str(&text).ok()) else {
            return Ok(None);
        };
        match store.update_direct(kind, &object, now).await {
            Ok(written) => Ok(Some(view.text(&written)?.into_owned())),
            Err(StoreError::Direct { .. }) => Ok(None),
            Err(error) => Err(refusal::of_store(key, error)),
        }
    }
}

/// Whether a field of some object, in a cluster or only in SQL, may name objects of a kind so that their deletion waits
/// for it.
fn may_be_named(registry: &Registry, kind: &Kind) -> bool {
    let mut referrers = registry.referrers(kind);
    referrers.any(|(_, reference, _)| reference.waits())
}

#[cfg(test)]
mod tests {
    use kindex_model::reference::{Named, OnDelete, Reference, Target};

    use super::*;

    const GROUP: &str = "platform.example.com";
    const PROJECT: Reference = Reference {
        name: "project",
        targets: &[Target {
            service: None,
            group: GROUP,
            kind: "Project",
        }],
        kind_column: None,
        path: &["spec", "project"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    };
    static PROJECTS: Kind = Kind {
        name: "Project",
        group: GROUP,
        ..Kind::EMPTY
    };
    static TEAMS: Kind = Kind {
        name: "Team",
        group: GROUP,
        cluster: false,
        references: &[PROJECT],
        ..Kind::EMPTY
    };
    static NOTES: Kind = Kind {
        name: "Note",
        references: &[Reference {
            on_delete: OnDelete::Orphan,
            ..PROJECT
        }],
        ..TEAMS
    };

    static HELD: [&Kind; 2] = [&PROJECTS, &TEAMS];
    static NOTED: [&Kind; 2] = [&PROJECTS, &NOTES];

    /// As if holders that no cluster has did not count: what they hold would go at once.
    #[test]
    fn holders_of_sql_only_kinds_are_waited_for() {
        let of = |kinds: &'static [&'static Kind]| Registry {
            kinds,
            ..Registry::EMPTY
        };
        assert!(may_be_named(&of(&HELD), &PROJECTS));
        assert!(!may_be_named(&of(&HELD), &TEAMS));
        assert!(!may_be_named(&of(&NOTED), &PROJECTS), "an orphan stays");
    }
}
