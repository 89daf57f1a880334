//! What follows from the edges together: an order of deletion, cycles, owned kinds whose owner waits for them, and
//! edges that follow from others. Every search is breadth-first over at most a few hundred kinds, and takes the first
//! of equally short paths, so that equal graphs give equal answers.

use std::collections::{BTreeSet, VecDeque};

use super::{Edge, Graph};
use crate::model::OnDelete;

/// A kind that only its owner would delete, but not before the kind is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// The edge from the kind to its owner.
    pub owned: usize,
    /// The edges by which the owner waits for it, from the kind to the owner.
    pub path: Vec<usize>,
}

/// An edge without which the order of deletion is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Implied {
    /// The edge.
    pub edge: usize,
    /// The edges that it follows from, from its holder to its target.
    pub path: Vec<usize>,
}

impl Graph {
    /// For each kind its step of a deletion, from 1: objects of a kind go after those of all kinds of lower steps that
    /// refer to them. Kinds of one step go in any order.
    ///
    /// # Assumptions
    /// There is no cycle. With one, steps are bounded and mean nothing.
    pub fn steps(&self) -> Vec<usize> {
        let mut steps = vec![1; self.kinds.len()];
        for _ in 0..self.kinds.len() {
            for edge in self.edges.iter().filter(|edge| edge.waits() && !edge.is_loop()) {
                steps[edge.target] = steps[edge.target].max(steps[edge.holder] + 1);
            }
        }
        steps
    }

    /// Kinds that wait for each other's deletion: the shortest way back to each kind that is in no cycle before. So
    /// every such kind is in one of them, and one edge too many makes few.
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let mut found: Vec<Vec<usize>> = Vec::new();
        let mut covered = vec![false; self.kinds.len()];
        for kind in 0..self.kinds.len() {
            if covered[kind] {
                continue;
            }
            if let Some(cycle) = self.walk(kind, kind, |_, edge| edge.waits() && !edge.is_loop()) {
                for edge in &cycle {
                    covered[self.edges[*edge].holder] = true;
                }
                found.push(cycle);
            }
        }
        found
    }

    /// Owned kinds that hold their owner: it would delete them only after they are gone.
    ///
    /// An owner deletes what it owns once nothing else refers to it. A kind that refers to it, be it through others,
    /// therefore has to go by other means: by a cascade that begins with the owner's deletion.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        let owned = self
            .edges
            .iter()
            .enumerate()
            .filter(|(_, edge)| edge.owned && !edge.is_loop());
        let deadlock = |(owned, edge): (usize, &Edge)| {
            // The last edge makes the owner wait before it deletes anything.
            let waits = |_, next: &Edge| next.waits() && !next.is_loop() && (next.target != edge.target || !next.owned);
            let path = self.walk(edge.holder, edge.target, waits)?;
            let goes = self.deleted_with(edge.target).contains(&edge.holder);
            (!goes).then_some(Deadlock { owned, path })
        };
        owned.filter_map(deadlock).collect()
    }

    /// The kinds whose objects go without anyone's help before the owner deletes what it owns itself.
    fn deleted_with(&self, owner: usize) -> BTreeSet<usize> {
        let mut deleted = BTreeSet::from([owner]);
        loop {
            let goes = |edge: &&Edge| {
                let cascades = edge.on_delete == OnDelete::Cascade && !(edge.owned && edge.target == owner);
                cascades && deleted.contains(&edge.target)
            };
            let more: Vec<usize> = self.edges.iter().filter(goes).map(|edge| edge.holder).collect();
            let before = deleted.len();
            deleted.extend(more);
            if deleted.len() == before {
                return deleted;
            }
        }
    }

    /// Edges that follow from others: the target would be deleted after the holder, and together with it, without all
    /// of them as well. A reference to one of several kinds neither follows from others nor do others follow from it.
    pub fn implied(&self) -> Vec<Implied> {
        let all = 0..self.edges.len();
        let follows: BTreeSet<usize> = all
            .filter(|edge| self.other_way(*edge, &BTreeSet::new()).is_some())
            .collect();
        let implied = follows.iter().filter_map(|edge| {
            let path = self.other_way(*edge, &follows)?;
            Some(Implied { edge: *edge, path })
        });
        implied.collect()
    }

    /// The way from the holder of an edge to its target that does what the edge does, without some others.
    fn other_way(&self, edge: usize, without: &BTreeSet<usize>) -> Option<Vec<usize>> {
        let sure = |edge: &Edge| edge.waits() && !edge.is_loop() && edge.kind_column.is_none();
        let edge = Some(&self.edges[edge]).filter(|edge| sure(edge))?;
        let as_strong = |next: &Edge| match edge.on_delete {
            OnDelete::Cascade if edge.owned => next.owned,
            OnDelete::Cascade => next.on_delete == OnDelete::Cascade,
            OnDelete::Block | OnDelete::Orphan => true,
        };
        let is_parallel = |next: &Edge| (next.holder, next.target) == (edge.holder, edge.target);
        self.walk(edge.holder, edge.target, |at, next| {
            sure(next) && as_strong(next) && !is_parallel(next) && !without.contains(&at)
        })
    }

    /// The shortest way over one edge or more.
    fn walk(&self, from: usize, to: usize, takes: impl Fn(usize, &Edge) -> bool) -> Option<Vec<usize>> {
        let mut came_by: Vec<Option<usize>> = vec![None; self.kinds.len()];
        let mut next = VecDeque::from([from]);
        while let Some(kind) = next.pop_front() {
            let edges = self.edges.iter().enumerate();
            for (at, edge) in edges.filter(|(at, edge)| edge.holder == kind && takes(*at, edge)) {
                if came_by[edge.target].is_some() {
                    continue;
                }
                came_by[edge.target] = Some(at);
                if edge.target == to {
                    return Some(self.way_back(from, to, &came_by));
                }
                next.push_back(edge.target);
            }
        }
        None
    }

    fn way_back(&self, from: usize, to: usize, came_by: &[Option<usize>]) -> Vec<usize> {
        let mut path = Vec::new();
        let mut kind = to;
        while let Some(edge) = came_by[kind] {
            path.push(edge);
            kind = self.edges[edge].holder;
            if kind == from {
                break;
            }
        }
        path.reverse();
        path
    }
}
