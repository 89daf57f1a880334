//! The graph at rest after users have gone on: by the references that are there, by the fields of those that hold
//! without one, and with all that is deleted as far as it is.

use std::collections::{BTreeMap, BTreeSet};

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use super::{End, Location, Node, Oracle, Tie, tie_of};
use crate::simulation::world::{FIELDS, Field, Stored, World, fields};

/// An object, and where it is.
type Placed<'w> = (&'w Stored, Location);

impl Oracle {
    /// Reads what is there.
    pub(in super::super) fn now(world: &World) -> Self {
        let live = world
            .servers
            .objects
            .values()
            .map(|object| (object, place(world, object)));
        let rows = world.archives.rows.values().filter(|row| !row.deleted);
        let objects: Vec<Placed<'_>> = live.chain(rows.map(|row| (&row.object, Location::Archive))).collect();
        let nodes = objects.iter().map(|(object, place)| Node {
            begun: begun(world, object, *place),
            ..Node::new(object.key.to_string(), &object.key.kind.group, &object.uid, *place)
        });
        let mut oracle = Self {
            nodes: nodes.collect(),
            unplaced: BTreeSet::new(),
            late: BTreeSet::new(),
        };
        let at: BTreeMap<&str, usize> = objects.iter().map(|(object, _)| &*object.uid).zip(0..).collect();
        for (target, held) in objects.iter().enumerate() {
            let names = references_on(world, held);
            for name in names.iter().filter(|name| !at.contains_key(name.uid())) {
                let unknown = Node::new(name.to_string(), name.group(), name.uid(), Location::Unknown);
                oracle.nodes.push(unknown);
                oracle.tie(oracle.nodes.len() - 1, target, Tie::Blocks);
            }
            let holding: BTreeSet<&str> = names.iter().map(ReferenceName::uid).collect();
            for (holder, other) in objects.iter().enumerate().filter(|(holder, _)| *holder != target) {
                if holding.contains(&*other.0.uid) {
                    if !world.is_left(other.0, held.0) {
                        oracle.tie(holder, target, by_reference(world, other, held));
                    }
                } else if let Some(tie) = by_field(world, other, held) {
                    oracle.tie(holder, target, tie);
                    match (held.1, other.1) {
                        (Location::Archive, _) => false,
                        (_, Location::Archive) if world.judge.history.is_named_in_time(&other.0.uid, &held.0.uid) => {
                            false
                        }
                        (_, Location::Archive) => oracle.late.insert((holder, target)),
                        _ => oracle.unplaced.insert((holder, target)),
                    };
                }
            }
        }
        oracle
    }
}

fn place(world: &World, object: &Stored) -> Location {
    match object.terminating && !object.asked {
        true => Location::Leaving,
        false if world.services.is_sql_only(&object.key.kind) => Location::Sql,
        false => Location::Cluster,
    }
}

fn begun(world: &World, object: &Stored, place: Location) -> End {
    let is_deleted = match place {
        Location::Archive => world.tombstone(&object.uid).is_some(),
        Location::Cluster | Location::Leaving | Location::Sql | Location::Unknown => object.terminating && object.asked,
    };
    match object.phase {
        _ if !is_deleted => End::Untouched,
        Some(Phase::Draining | Phase::Finalizing) => End::Drains,
        None | Some(Phase::Deleting) => End::Held,
    }
}

/// The references on an object. Rows of what was deleted in the archive count for nothing, as far as its service can
/// release them.
fn references_on(world: &World, (object, place): &Placed<'_>) -> BTreeSet<ReferenceName> {
    let rows = world.archives.references.iter().filter(|(held, _)| *held == object.uid);
    let is_over = |name: &ReferenceName| world.archives.rows.get(name.uid()).is_some_and(|row| row.deleted);
    let can_go = |name: &ReferenceName| name.group() == object.key.kind.group || world.is_shown(object);
    let rows = rows
        .map(|(_, name)| name.clone())
        .filter(|name| !is_over(name) || !can_go(name));
    let finalizers = object.references().filter(|_| *place != Location::Archive);
    finalizers.chain(rows).collect()
}

/// The field by which a holder names a target.
fn naming(world: &World, holder: &Stored, target: &Stored) -> Option<&'static Field> {
    fields(&holder.key.kind.kind).find(|field| {
        let named = holder.named.get(field.name);
        named.is_some_and(|name| world.services.key(field.target, name) == target.key)
    })
}

/// What a reference comes to. In the cluster, one of a kind that is always owned counts as owned whatever the field
/// names. With a tombstone whose name another object has, nobody goes.
fn by_reference(world: &World, (holder, of_holder): &Placed<'_>, (target, place): &Placed<'_>) -> Tie {
    let takes = *place != Location::Archive || world.has_its_name(&target.key, &target.uid);
    match naming(world, holder, target) {
        Some(field) if takes => tie_of(field),
        Some(field) if field.owned => Tie::Lingers,
        None if *place != Location::Archive && *of_holder != Location::Archive && is_always_owned(holder, target) => {
            Tie::Lingers
        }
        Some(_) | None => Tie::Blocks,
    }
}

fn is_always_owned(holder: &Stored, target: &Stored) -> bool {
    let (holder, target) = (&*holder.key.kind.kind, &*target.key.kind.kind);
    let mut declared = FIELDS
        .iter()
        .filter(|field| field.holder == holder && field.target == target)
        .peekable();
    declared.peek().is_some() && declared.all(|field| field.owned)
}

/// What a field comes to without a reference, if anything: what is archived holds all that it names in its service. In
/// the cluster, only what is deleted with a target that is being deleted does, unless it stays with a former target.
fn by_field(world: &World, (holder, of_holder): &Placed<'_>, (target, place): &Placed<'_>) -> Option<Tie> {
    let is_own = holder.key.kind.group == target.key.kind.group;
    let field = naming(world, holder, target).filter(|_| is_own)?;
    let tie = tie_of(field);
    let may_go = || tie != Tie::Blocks && (holder.terminating || !world.has_former(holder));
    let holds = match (*place, *of_holder) {
        (Location::Archive, Location::Archive) => world.has_its_name(&target.key, &target.uid),
        (Location::Archive, _) => world.has_its_name(&target.key, &target.uid) && may_go(),
        (_, Location::Archive) => true,
        _ => target.terminating && target.asked && may_go(),
    };
    holds.then_some(tie)
}
