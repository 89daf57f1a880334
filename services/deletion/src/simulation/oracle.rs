//! What has to become of a graph some of whose objects are deleted, by reachability over their fields alone. Nothing of
//! how controllers decide is used here: only where objects are, whom their fields name, and the rules of the book.

use std::collections::{BTreeMap, BTreeSet};

use kindex_model::deletion::Phase;
use kindex_model::reference::OnDelete;

use super::world::{Field, Stored, World, fields};
use crate::object::Key;

mod now;

/// Where an object is when the deletions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Cluster,
    Archive,
    /// On its way to the archive, and others keep it in the cluster: until it is archived, it goes with nobody.
    Leaving,
    /// Of an SQL-only kind of the graph: by the rules, it goes as what is in the cluster does.
    Sql,
    /// Of a kind that the graph does not know: it holds others by the API, and nothing else is known of it.
    Unknown,
}

/// What becomes of a holder whose target is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// It is deleted with its target.
    Cascades,
    /// It is deleted with its target once nobody else holds that.
    IsOwned,
    /// It stays.
    Blocks,
    /// It stays, and the target waits for it as for what it owns.
    Lingers,
}

impl Tie {
    fn is_owned(self) -> bool {
        matches!(self, Self::IsOwned | Self::Lingers)
    }
}

/// What a field comes to.
fn tie_of(field: &Field) -> Tie {
    match field.on_delete {
        _ if field.owned => Tie::IsOwned,
        OnDelete::Cascade => Tie::Cascades,
        OnDelete::Block | OnDelete::Orphan => Tie::Blocks,
    }
}

#[derive(Debug)]
struct Node {
    name: String,
    /// The group of its service.
    group: String,
    uid: String,
    place: Location,
    /// How far it is already.
    begun: End,
    /// Those that hold it.
    holders: Vec<(usize, Tie)>,
    /// Those that it holds.
    targets: Vec<(usize, Tie)>,
}

impl Node {
    fn new(name: String, group: &str, uid: &str, place: Location) -> Self {
        Self {
            name,
            group: group.to_owned(),
            uid: uid.to_owned(),
            place,
            begun: End::Untouched,
            holders: Vec::new(),
            targets: Vec::new(),
        }
    }
}

/// How far an object is in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// Nothing has happened to it.
    Untouched,
    /// It is deleted, and others hold it that it does not own.
    Held,
    /// It is deleted, and waits for what it owns.
    Drains,
    /// There is no such object any more.
    Gone,
}

/// How many objects came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) archived: usize,
    /// Those of SQL-only kinds that are deleted.
    pub(super) sql_only: usize,
    pub(super) untouched: usize,
    pub(super) waiting: usize,
    pub(super) gone: usize,
    /// Those of which two ends are right.
    pub(super) open: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.archived += other.archived;
        self.sql_only += other.sql_only;
        self.untouched += other.untouched;
        self.waiting += other.waiting;
        self.gone += other.gone;
        self.open += other.open;
    }

    fn count(&mut self, node: &Node, end: End, is_open: bool) {
        self.archived += usize::from(node.place == Location::Archive);
        self.sql_only += usize::from(node.place == Location::Sql && end != End::Untouched);
        self.open += usize::from(is_open);
        match end {
            End::Untouched => self.untouched += 1,
            End::Held | End::Drains => self.waiting += 1,
            End::Gone => self.gone += 1,
        }
    }
}

/// The graph as it is when the deletions begin.
#[derive(Debug)]
pub(super) struct Oracle {
    nodes: Vec<Node>,
    /// Holders and targets without a reference between them: of two that are deleted, one may not wait for the other.
    unplaced: BTreeSet<(usize, usize)>,
    /// Archived holders that began to name a target while it was being deleted: it may have asked the archive before.
    late: BTreeSet<(usize, usize)>,
}

impl Oracle {
    /// Reads the whole graph, all of whose references have been placed. No two objects have one name.
    pub(super) fn of(world: &World) -> Self {
        let live = world.servers.objects.values().map(|object| {
            let place = match world.services.is_sql_only(&object.key.kind) {
                true => Location::Sql,
                false => Location::Cluster,
            };
            (object, place)
        });
        let rows = world.archives.rows.values().filter(|row| !row.deleted);
        let archived = rows.map(|row| (&row.object, Location::Archive));
        let objects: Vec<(&Stored, Location)> = live.chain(archived).collect();
        let nodes = objects.iter();
        let nodes =
            nodes.map(|(object, place)| Node::new(object.key.to_string(), &object.key.kind.group, &object.uid, *place));
        let mut oracle = Self {
            nodes: nodes.collect(),
            unplaced: BTreeSet::new(),
            late: BTreeSet::new(),
        };
        let at: BTreeMap<&Key, usize> = objects.iter().map(|(object, _)| &object.key).zip(0..).collect();
        for (holder, (object, _)) in objects.iter().enumerate() {
            for field in fields(&object.key.kind.kind) {
                let named = object.named.get(field.name);
                let target = named.and_then(|name| at.get(&world.services.key(field.target, name)));
                // What names itself holds nothing.
                if let Some(target) = target.filter(|target| **target != holder) {
                    oracle.tie(holder, *target, tie_of(field));
                }
            }
        }
        oracle.add_unknown(world);
        oracle
    }

    fn add_unknown(&mut self, world: &World) {
        for (uid, (name, held)) in &world.api_holders {
            let Some(target) = self.nodes.iter().position(|node| node.uid == *held) else {
                continue;
            };
            self.nodes
                .push(Node::new(name.to_string(), name.group(), uid, Location::Unknown));
            self.tie(self.nodes.len() - 1, target, Tie::Blocks);
        }
    }

    fn tie(&mut self, holder: usize, target: usize, tie: Tie) {
        self.nodes[holder].targets.push((target, tie));
        self.nodes[target].holders.push((holder, tie));
    }

    /// How far each object is at last, once these were deleted by users: the least that follows from it. What is
    /// archived and owned may go `early`, or in its turn. Where it may, nobody waits without a reference for what is
    /// deleted too, or for what came late, and that is deleted with it.
    fn ends(&self, deleted: &BTreeSet<String>, early: bool) -> Vec<End> {
        let nodes = self.nodes.iter();
        let begin = nodes.map(|node| match (deleted.contains(&node.uid), node.place) {
            (false, _) => node.begun,
            (true, Location::Unknown) => End::Gone,
            (true, Location::Cluster | Location::Archive | Location::Leaving | Location::Sql) => {
                node.begun.max(End::Held)
            }
        });
        let mut ends: Vec<End> = begin.collect();
        loop {
            let next: Vec<End> = (0..ends.len()).map(|at| self.end(at, &ends, early)).collect();
            if next == ends {
                return ends;
            }
            ends = next;
        }
    }

    /// How far one is, with all others as far as they are.
    fn end(&self, at: usize, ends: &[End], early: bool) -> End {
        let node = &self.nodes[at];
        let mut targets = node.targets.iter();
        let mut is_taken = || targets.any(|(target, tie)| self.takes(at, *target, *tie, ends, early));
        let end = match ends[at] {
            End::Untouched if node.place == Location::Unknown || !is_taken() => End::Untouched,
            _ if node.place == Location::Unknown => End::Gone,
            _ if !self.all_gone(at, ends, early, |_, tie| !tie.is_owned()) => End::Held,
            _ if !self.all_gone(at, ends, early, |_, _| true) => End::Drains,
            _ => End::Gone,
        };
        // Who comes late holds nothing back.
        end.max(node.begun)
    }

    fn all_gone(&self, at: usize, ends: &[End], early: bool, which: impl Fn(&Node, Tie) -> bool) -> bool {
        let is_left_out = |holder: usize| {
            let may_be = self.nodes[holder].begun != End::Untouched && self.unplaced.contains(&(holder, at));
            early && (may_be || self.late.contains(&(holder, at)))
        };
        let holders = self.nodes[at].holders.iter();
        let mut holders = holders.filter(|(holder, tie)| which(&self.nodes[*holder], *tie));
        holders.all(|(holder, _)| ends[*holder] == End::Gone || is_left_out(*holder))
    }

    /// Whether a holder is deleted with what it names. Out of the archive of its service, nobody goes with a live
    /// object before those have gone whose references are on the object itself and hold it in the same way. Of two
    /// controllers, one may be ahead of that with what is owned: it was about to ask the archive when the other one
    /// recorded the phase.
    fn takes(&self, holder: usize, target: usize, tie: Tie, ends: &[End], early: bool) -> bool {
        let (place, of_target) = (self.nodes[holder].place, self.nodes[target].place);
        let is_elsewhere = |node: &Node| node.group != self.nodes[target].group;
        let is_turn = |owned: bool| {
            let is_on_it = |node: &Node| node.place != Location::Archive || is_elsewhere(node);
            let before = |node: &Node, tie: Tie| is_on_it(node) && tie.is_owned() == owned;
            let is_first = is_on_it(&self.nodes[holder]) || of_target == Location::Archive;
            is_first || self.all_gone(target, ends, early, before)
        };
        match tie {
            Tie::Blocks | Tie::Lingers => false,
            Tie::Cascades | Tie::IsOwned if place == Location::Leaving => false,
            Tie::Cascades | Tie::IsOwned if !early && self.late.contains(&(holder, target)) => false,
            Tie::Cascades => ends[target] >= End::Held && is_turn(false),
            Tie::IsOwned => ends[target] >= End::Drains && (early || is_turn(true)),
        }
    }

    /// Compares what must have become of all objects with what has.
    pub(super) fn judge(&self, deleted: &BTreeSet<String>, world: &World) -> Result<Tally, String> {
        let (least, most) = (self.ends(deleted, false), self.ends(deleted, true));
        let live = world.servers.objects.values().map(|object| (&*object.uid, object));
        let live: BTreeMap<&str, &Stored> = live.collect();
        let mut tally = Tally::default();
        for ((node, least), most) in self.nodes.iter().zip(least).zip(most) {
            if node.place == Location::Unknown {
                continue;
            }
            let found = found(node, &live, world).map_err(|what| format!("{} {what}", node.name))?;
            if found < least || found > most {
                return Err(format!("{} is {found:?}, and not {least:?}", node.name));
            }
            tally.count(node, found, least != most);
        }
        self.in_order(world)?;
        Ok(tally)
    }

    /// Whether the deletion of each one was through after those of all that held it. One that had begun before may have
    /// been named since.
    fn in_order(&self, world: &World) -> Result<(), String> {
        let ended = |node: &&Node| node.begun == End::Untouched && world.judge.ends.contains_key(&node.uid);
        for node in self.nodes.iter().filter(ended) {
            for holder in node.holders.iter().map(|(holder, _)| &self.nodes[*holder]) {
                let after = world
                    .judge
                    .ends
                    .get(&holder.uid)
                    .is_none_or(|end| *end > world.judge.ends[&node.uid]);
                if holder.place != Location::Unknown && after {
                    return Err(format!("{} was through before {}", node.name, holder.name));
                }
            }
        }
        Ok(())
    }
}

/// How far an object is, or what nothing may rest in.
fn found(node: &Node, live: &BTreeMap<&str, &Stored>, world: &World) -> Result<End, String> {
    let archived = world.archives.rows.get(&node.uid).filter(|row| !row.deleted);
    let (object, is_deleted, is_touched) = match (node.place, live.get(&*node.uid), archived) {
        (Location::Cluster | Location::Sql, Some(object), None) => {
            let is_touched = object.terminating || object.requested || object.asked;
            (*object, object.terminating && object.asked, is_touched)
        }
        (Location::Leaving, Some(object), None) => (*object, false, object.requested || object.asked),
        (Location::Archive, None, Some(row)) => (&row.object, row.tombstone, row.tombstone),
        (_, None, None) => return Ok(End::Gone),
        _ => return Err("is not where it was".to_owned()),
    };
    match object.phase {
        None if !is_touched => Ok(End::Untouched),
        Some(Phase::Deleting) if is_deleted => Ok(End::Held),
        Some(Phase::Draining) if is_deleted => Ok(End::Drains),
        // What went on that far was named again since, and waits for that.
        Some(Phase::Finalizing) if is_deleted && node.begun == End::Drains => Ok(End::Drains),
        phase => Err(format!("rests in {phase:?}")),
    }
}
