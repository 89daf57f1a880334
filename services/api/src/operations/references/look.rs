//! What is known of holders, for the tree: from the references on an object, from the declared fields that name it, and
//! from the services that others are of.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kindex_model::deletion::{Annotations, PhaseCondition};
use kindex_model::head::Head;
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Object;
use kindex_model::reference::Reference;
use kindex_model::reference_name::ReferenceName;
use kindex_query::{Life, Stored};

use super::answer::State;
use super::naming::{TargetKey, by_fields, field, names, select, targets};
use super::object::references_among;
use super::peers::Peers;
use super::question::Question;
use super::tree::{Bounds, FindHolders, Found, NamingField, Node};
use crate::operations::cluster::Call;
use crate::operations::rights::Rights;
use crate::operations::{Backends, Caller, ObjectKey, Operations, Refusal, Storage, refusal};

/// Objects of a kind that are read in search of a field that has no column.
const SCANNED_MAX: usize = 10_000;

/// What looks up one object and its holders, for a question.
pub(super) struct HolderLookup<'a> {
    backends: &'a Backends,
    peers: &'a Peers,
    rights: &'a Rights,
    caller: &'a Caller,
    /// Whether other services are asked about their objects.
    asks_peers: bool,
    question: &'a Question,
    /// The references on the objects that were found, by uid.
    references: Mutex<HashMap<String, Vec<ReferenceName>>>,
    /// What other services have said of the holders below an object of theirs.
    of_peers: Mutex<HashMap<String, Found>>,
}

impl<'a> HolderLookup<'a> {
    pub(super) fn new(operations: &'a Operations, caller: &'a Caller, bounds: Bounds, question: &'a Question) -> Self {
        Self {
            backends: &operations.backends,
            peers: &operations.peers,
            rights: &operations.rights,
            caller,
            // A service that asks about one step is itself at work on a whole tree.
            asks_peers: bounds.depth > 1,
            question,
            references: Mutex::default(),
            of_peers: Mutex::default(),
        }
    }

    /// The object of that name: as the cluster has it, else as it is archived.
    pub(super) async fn root(&self, key: &ObjectKey<'_>) -> Result<Option<Node>, Refusal> {
        let kind = key.resource.kind;
        let resource = kind.into();
        let own = ObjectKey { resource, ..*key };
        let call = Call::get(own.path(), Vec::new());
        let upstream = self.backends.upstream_of(kind)?;
        let found = upstream.call(&self.caller.on_behalf(), call).await;
        match found {
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.text);
                let object = Object::parse_str(&text).map_err(|error| Refusal::unreachable(&error))?;
                Ok(Some(self.live(kind, &object).await))
            }
            Err(refusal) if refusal.is_of_absent_object() => {
                let archived = self.backends.find_archived(key).await?;
                let Some(stored) = archived else { return Ok(None) };
                Ok(Some(self.stored(kind, &stored).await))
            }
            Err(refusal) => Err(refusal),
        }
    }

    async fn live(&self, kind: &'static Kind, object: &Object) -> Node {
        let head = Head::of(object, kind, &self.backends.registry.platform);
        let state = if head.is_leaving() {
            State::Deleting
        } else {
            State::Live
        };
        let since = head.deletion_timestamp.or(object.metadata.creation_timestamp);
        let mut references = references_among(&object.metadata.finalizers);
        let stored = self.backends.stored_references(kind, &object.metadata.uid.0).await;
        let (stored, notes) = match stored {
            Ok(stored) => (stored, Vec::new()),
            Err(refusal) => (Vec::new(), vec![format!("its archived holders: {}", refusal.message)]),
        };
        let known = references.clone();
        references.extend(stored.into_iter().filter(|name| !known.contains(name)));
        self.note(&object.metadata.uid.0, references);
        let platform = &self.backends.registry.platform;
        Node {
            finalizers: others(&object.metadata.finalizers, platform, state),
            phases: self.phases(object, state),
            notes,
            ..node(kind, object, state, since)
        }
    }

    pub(super) async fn stored(&self, kind: &'static Kind, stored: &Stored) -> Node {
        let object = &stored.object;
        match stored.life {
            Life::Live => self.live(kind, object).await,
            Life::Deleted => node(kind, object, State::Deleted, stored.delete_time),
            Life::Archived => match self.backends.with_references(kind, stored).await {
                Ok(archived) => {
                    self.note(&object.metadata.uid.0, archived.references);
                    Node {
                        phases: self.phases(object, archived.state),
                        ..node(kind, object, archived.state, archived.since)
                    }
                }
                Err(refusal) => Node {
                    notes: vec![format!("its references: {}", refusal.message)],
                    ..node(kind, object, State::Archived, stored.evicted_time)
                },
            },
        }
    }

    /// The phases that its deletion has entered, if it is being deleted.
    fn phases(&self, object: &Object, state: State) -> Vec<PhaseCondition> {
        let annotations = Annotations::of(self.backends.registry.platform.group);
        match state {
            State::Deleting => annotations.phases_in(&object.metadata.annotations),
            State::Live | State::Archived | State::Deleted | State::Unknown => Vec::new(),
        }
    }

    /// The fields by which a stored object holds others. What is gone holds nothing.
    pub(super) fn targets(&self, kind: &'static Kind, stored: &Stored) -> Vec<NamingField> {
        if stored.life == Life::Deleted {
            return Vec::new();
        }
        let text = self.backends.view(kind.into()).past(&stored.object);
        targets(&self.backends.registry, kind, &text)
    }

    /// Keeps in mind which references an object has.
    fn note(&self, uid: &str, references: Vec<ReferenceName>) {
        let mut known = self.references.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(uid.to_owned(), references);
    }

    /// Those on an object that was found.
    fn references_of(&self, uid: &str) -> Vec<ReferenceName> {
        let known = self.references.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(uid).cloned().unwrap_or_default()
    }

    /// The holder of a reference, with the fields by which it holds others.
    async fn holder(&self, reference: &ReferenceName) -> Node {
        let backends = self.backends;
        let Some(kind) = backends.kind_of(reference) else {
            return self.foreign(reference).await;
        };
        let none = || unknown(kind.name, kind.group, reference.uid(), State::Unknown);
        let noted = |note: String| Node {
            notes: vec![note],
            ..none()
        };
        let stored = match backends.stored_holder(kind, reference).await {
            Ok(Some(stored)) => stored,
            Ok(None) => return none(),
            Err(refusal) => return noted(refusal.to_string()),
        };
        let namespace = &stored.object.metadata.namespace;
        match self.rights.may_read(self.caller, kind, namespace).await {
            true => Node {
                targets: self.targets(kind, &stored),
                ..self.stored(kind, &stored).await
            },
            false => noted("you may not read it".to_owned()),
        }
    }

    /// One of another service.
    pub(super) async fn foreign(&self, reference: &ReferenceName) -> Node {
        let peers = self.peers;
        let unknown = Node {
            service: peers.name_of(reference.group()),
            ..unknown(reference.kind(), reference.group(), reference.uid(), State::Unknown)
        };
        if !self.asks_peers {
            return unknown;
        }
        let asked = peers.ask(reference);
        match self.question.ask(reference.group(), &unknown.service, asked).await {
            Ok(mut said) => {
                let holders = std::mem::take(&mut said.holders);
                let notes = std::mem::take(&mut said.notes);
                let mut of_peers = self.of_peers.lock().unwrap_or_else(PoisonError::into_inner);
                of_peers.insert(said.uid.clone(), Found { holders, notes });
                Node {
                    service: unknown.service,
                    holds: false,
                    fields: Vec::new(),
                    ..said
                }
            }
            Err(why) => Node {
                notes: vec![why],
                ..unknown
            },
        }
    }

    /// What another service has said of the holders of its object, each looked up where it is.
    async fn holders_by_peer(&self, of: &Node) -> Found {
        let said = self
            .of_peers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&of.uid);
        let Some(Found { holders, notes }) = said else {
            return Found::default();
        };
        let mut found = Found {
            holders: Vec::new(),
            notes,
        };
        for said in holders {
            let name = ReferenceName::new(&said.kind, &said.group, &said.uid);
            let holder = match name {
                // Its own objects, too, since it has told of one step alone.
                Ok(reference) => self.holder(&reference).await,
                Err(_) => said.clone(),
            };
            let holder = match holder.name.is_empty() {
                true => Node {
                    service: self.service_of(&said.group),
                    notes: holder.notes,
                    ..said.clone()
                },
                false => by_fields(holder, of),
            };
            found.holders.push(Node {
                holds: said.holds,
                // Of its own objects, the service knows itself by which fields they name this one.
                fields: match said.fields.is_empty() {
                    true => holder.fields,
                    false => said.fields,
                },
                ..holder
            });
        }
        found
    }

    /// The service of the kinds of a group; nothing for ours.
    fn service_of(&self, group: &str) -> String {
        match self.backends.kinds_of_group(group) {
            true => String::new(),
            false => self.peers.name_of(group),
        }
    }

    /// Adds the objects that name one by a declared field.
    async fn add_naming(&self, kind: &'static Kind, of: &Node, found: &mut Found) {
        let referrers: Vec<_> = self.backends.registry.referrers(kind).collect();
        for (holder, reference, target) in referrers {
            if target.service.is_some() || !reference.waits() {
                continue;
            }
            let key = TargetKey {
                kind,
                namespace: &of.namespace,
                name: &of.name,
            };
            let naming = match self.naming(holder, reference, key).await {
                Ok((naming, None)) => naming,
                Ok((naming, Some(note))) => {
                    found.notes.push(note);
                    naming
                }
                Err(refusal) => {
                    found
                        .notes
                        .push(format!("{} that name it: {}", holder.plural, refusal.message));
                    continue;
                }
            };
            let mut hidden = 0;
            for stored in naming {
                let namespace = &stored.object.metadata.namespace;
                if !self.rights.may_read(self.caller, holder, namespace).await {
                    hidden += 1;
                    continue;
                }
                let node = self.stored(holder, &stored).await;
                add_field(&mut found.holders, node, reference);
            }
            if hidden > 0 {
                found
                    .notes
                    .push(format!("{hidden} {} that you may not read name it", holder.plural));
            }
        }
    }

    /// The rows of a kind that name an object, and a word where not all were read.
    async fn naming(
        &self,
        holder: &'static Kind,
        reference: &Reference,
        key: TargetKey<'_>,
    ) -> Result<(Vec<Stored>, Option<String>), Refusal> {
        let Storage::On { store, .. } = &self.backends.storage else {
            return Ok((Vec::new(), None));
        };
        let select = select(holder, reference, key);
        let view = self.backends.view(holder.into());
        let (mut found, mut read, mut token) = (Vec::new(), 0, None);
        loop {
            let page = store.select(&select, token.as_deref()).await;
            let page = page.map_err(|error| refusal::of_query(&error))?;
            read += page.items.len();
            found.extend(
                page.items
                    .into_iter()
                    .filter(|stored| names(reference, &view.past(&stored.object), key)),
            );
            token = page.continue_token;
            if token.is_none() {
                return Ok((found, None));
            }
            if read >= SCANNED_MAX {
                let note = format!(
                    "of the {} only {read} were searched for those that name it",
                    holder.plural
                );
                return Ok((found, Some(note)));
            }
        }
    }
}

impl FindHolders for HolderLookup<'_> {
    async fn holders(&self, of: &Node) -> Found {
        if !of.service.is_empty() {
            return self.holders_by_peer(of).await;
        }
        let mut kinds = self.backends.registry.kinds.iter().copied();
        let Some(kind) = kinds.find(|kind| kind.group == of.group && kind.name == of.kind) else {
            return Found::default();
        };
        if of.name.is_empty() || of.state == State::Deleted {
            return Found::default();
        }
        let mut found = Found::default();
        for reference in self.references_of(&of.uid) {
            let holder = self.holder(&reference).await;
            found.holders.push(Node {
                holds: true,
                ..by_fields(holder, of)
            });
        }
        self.add_naming(kind, of, &mut found).await;
        found
    }
}

/// Notes that an object names another one by a field; it may hold it as well.
fn add_field(holders: &mut Vec<Node>, node: Node, reference: &Reference) {
    let known = holders
        .iter_mut()
        .find(|known| known.uid == node.uid && known.kind == node.kind);
    match known {
        // The references on the object may have led to it already.
        Some(known) if known.fields.contains(&field(reference)) => {}
        Some(known) => known.fields.push(field(reference)),
        None => holders.push(Node {
            fields: vec![field(reference)],
            ..node
        }),
    }
}

/// Finalizers that name no holder. Ours is one where it keeps what is deleted.
fn others(finalizers: &[String], platform: &Platform, state: State) -> Vec<String> {
    let is_other = |finalizer: &&String| {
        if *finalizer == platform.finalizer {
            return state == State::Deleting;
        }
        ReferenceName::of_finalizer(finalizer).is_none()
    };
    match state {
        State::Live | State::Deleting => finalizers.iter().filter(is_other).cloned().collect(),
        State::Archived | State::Deleted | State::Unknown => Vec::new(),
    }
}

/// An object of ours.
fn node(kind: &Kind, object: &Object, state: State, since: Option<Timestamp>) -> Node {
    let metadata = &object.metadata;
    Node {
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        since,
        ..unknown(kind.name, kind.group, &metadata.uid.0, state)
    }
}

/// An object of which only this is known.
fn unknown(kind: &str, group: &str, uid: &str, state: State) -> Node {
    Node {
        kind: kind.to_owned(),
        group: group.to_owned(),
        namespace: String::new(),
        name: String::new(),
        uid: uid.to_owned(),
        service: String::new(),
        state,
        since: None,
        phases: Vec::new(),
        holds: false,
        fields: Vec::new(),
        targets: Vec::new(),
        finalizers: Vec::new(),
        cycle: Vec::new(),
        repeated: false,
        notes: Vec::new(),
        holders: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::objects::tests::PLATFORM;

    #[test]
    fn finalizers_of_controllers_are_told_from_references() {
        let one = "run.g/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
        let finalizers = ["g/Ingester", "foregroundDeletion", one].map(str::to_owned);
        let shown = |state| others(&finalizers, &PLATFORM, state);
        assert_eq!(shown(State::Live), ["foregroundDeletion"]);
        assert_eq!(shown(State::Deleting), ["g/Ingester", "foregroundDeletion"]);
        assert!(shown(State::Archived).is_empty(), "it has left the cluster");
    }
}
