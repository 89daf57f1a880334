//! Who waits for whom: below an object its holders, below those theirs, down to what nothing holds. Built breadth first
//! over what [`FindHolders`] finds, within bounds. Knows neither the cluster nor SQL.

use std::collections::HashMap;

use jiff::Timestamp;
use kindex_model::deletion::PhaseCondition;
use serde::{Deserialize, Serialize};

use super::answer::State;

/// An object of the graph, with those that hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// `Network`; in lower case where it is of another service that has said nothing of it.
    pub kind: String,
    /// Its group.
    pub group: String,
    /// Absent for kinds of the whole cluster, and where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Absent where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The service that it is of; absent for this one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// How far it is.
    pub state: State,
    /// Since when: its creation, its archiving or its deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The phases that its deletion has entered, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseCondition>,
    /// Whether it has a reference on the object above it, which does not go before that is released.
    #[serde(default)]
    pub holds: bool,
    /// The declared fields by which it names the object above it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// All fields by which it holds others, where it is asked about by its own reference. A service of an older version
    /// does not say them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<NamingField>,
    /// Finalizers that are no references: what else keeps it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// The whole path where it is above itself, from it and back to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cycle: Vec<String>,
    /// Whether it is somewhere else in the tree with what holds it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
    /// What is not known of it or of its holders, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Those that hold or name it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Node>,
}

/// A declared field that names an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// The name of the reference in crds.toml.
    pub reference: String,
    /// `spec.network`.
    pub path: String,
    /// `cascade` or `block`.
    pub on_delete: String,
    /// Whether the named object owns the one with the field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owned: bool,
}

/// A declared field with the object that it names, which may be of another service and need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamingField {
    /// The field.
    #[serde(flatten)]
    pub field: Field,
    /// Group of the named object.
    pub group: String,
    /// Its kind: `Network`.
    pub kind: String,
    /// Absent for kinds of the whole cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What is found of the holders of an object.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Found {
    /// Each once, without holders of their own.
    pub(in super::super) holders: Vec<Node>,
    /// What could not be read.
    pub(in super::super) notes: Vec<String>,
}

/// Finds holders.
pub(in super::super) trait FindHolders: Sync {
    /// Those that hold or name an object.
    fn holders(&self, of: &Node) -> impl Future<Output = Found> + Send;
}

/// How much of a tree is shown.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Steps below the object; 1 is its holders alone.
    pub depth: usize,
    /// Objects in all.
    pub nodes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { depth: 16, nodes: 1000 }
    }
}

impl Node {
    /// `cluster/a`, with its namespace where it has one; its uid where its name is not known.
    pub fn label(&self) -> String {
        let kind = self.kind.to_ascii_lowercase();
        match (self.namespace.as_str(), self.name.as_str()) {
            (_, "") => format!("{kind}.{}/{}", self.group, self.uid),
            ("", name) => format!("{kind}/{name}"),
            (namespace, name) => format!("{kind}/{namespace}/{name}"),
        }
    }

    /// What keeps the tree's object in the end: those that nothing else holds, and those on a cycle.
    pub fn roots(&self) -> Vec<&Node> {
        let mut roots = Vec::new();
        self.add_roots(&mut roots);
        roots
    }

    /// The JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts are JSON")
    }

    fn add_roots<'a>(&'a self, roots: &mut Vec<&'a Self>) {
        if self.holders.is_empty() && !self.repeated {
            roots.push(self);
        }
        for holder in &self.holders {
            holder.add_roots(roots);
        }
    }

    fn identity(&self) -> (String, String, String) {
        (self.kind.to_ascii_lowercase(), self.group.clone(), self.uid.clone())
    }
}

/// A node on its way into the tree.
struct Growing {
    node: Node,
    parent: Option<usize>,
    depth: usize,
}

/// The tree below an object.
///
/// # Guarantees
/// Ends: an object that is above itself is shown with the path of the cycle, and one that is elsewhere without what is
/// below it. What could not be read is said where it is missing.
pub(in super::super) async fn grow(look: &impl FindHolders, root: Node, bounds: Bounds) -> Node {
    let mut known = HashMap::from([(root.identity(), 0)]);
    let mut all = vec![Growing {
        node: root,
        parent: None,
        depth: 0,
    }];
    let mut at = 0;
    while at < all.len() {
        let Growing { node, depth, .. } = &all[at];
        let depth = *depth;
        if !node.repeated && node.cycle.is_empty() && depth < bounds.depth {
            let Found { mut holders, notes } = look.holders(node).await;
            all[at].node.notes.extend(notes);
            holders.sort_by_key(|holder| (holder.kind.clone(), holder.namespace.clone(), holder.name.clone()));
            let room = bounds.nodes.saturating_sub(all.len());
            if holders.len() > room {
                all[at]
                    .node
                    .notes
                    .push(format!("{} more holders are not shown", holders.len() - room));
                holders.truncate(room);
            }
            for mut holder in holders {
                holder.cycle = cycle(&all, at, &holder);
                holder.repeated = holder.cycle.is_empty() && known.contains_key(&holder.identity());
                known.entry(holder.identity()).or_insert(all.len());
                all.push(Growing {
                    node: holder,
                    parent: Some(at),
                    depth: depth + 1,
                });
            }
        }
        if depth == bounds.depth && depth > 1 {
            all[at]
                .node
                .notes
                .push("what holds it is not shown: the tree ends here".to_owned());
        }
        at += 1;
    }
    assemble(all)
}

/// The path from an object down to itself, where it is on the way up from `parent`.
fn cycle(all: &[Growing], parent: usize, holder: &Node) -> Vec<String> {
    let identity = holder.identity();
    let mut path = vec![holder.label()];
    let mut at = Some(parent);
    while let Some(index) = at {
        path.push(all[index].node.label());
        if all[index].node.identity() == identity {
            path.reverse();
            return path;
        }
        at = all[index].parent;
    }
    Vec::new()
}

/// Puts every node below its parent, which comes before it.
fn assemble(mut all: Vec<Growing>) -> Node {
    loop {
        let Growing { mut node, parent, .. } = all.pop().expect("the root comes last and ends this");
        node.holders.reverse();
        match parent {
            Some(parent) => all[parent].node.holders.push(node),
            None => return node,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Who holds whom, by one letter each.
    struct Graph {
        holders: Vec<(&'static str, Vec<&'static str>)>,
        asked: AtomicUsize,
    }

    impl Graph {
        fn new(edges: &[(&'static str, &[&'static str])]) -> Self {
            let holders = edges.iter().map(|(of, holders)| (*of, holders.to_vec())).collect();
            Self {
                holders,
                asked: AtomicUsize::new(0),
            }
        }
    }

    impl FindHolders for Graph {
        async fn holders(&self, of: &Node) -> Found {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let mut known = self.holders.iter().filter(|(name, _)| *name == of.name);
            let holders = known
                .next()
                .map(|(_, holders)| holders.iter().map(|name| node(name)).collect());
            Found {
                holders: holders.unwrap_or_default(),
                notes: Vec::new(),
            }
        }
    }

    pub(in super::super) fn node(name: &str) -> Node {
        Node {
            kind: "Thing".to_owned(),
            group: "g".to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            service: String::new(),
            state: State::Live,
            since: None,
            phases: Vec::new(),
            holds: true,
            fields: Vec::new(),
            targets: Vec::new(),
            finalizers: Vec::new(),
            cycle: Vec::new(),
            repeated: false,
            notes: Vec::new(),
            holders: Vec::new(),
        }
    }

    /// `a(b c(d))`, with `*` after what is elsewhere and `!` after what is above itself.
    fn text(node: &Node) -> String {
        let below: Vec<String> = node.holders.iter().map(text).collect();
        let mark = match (node.repeated, node.cycle.is_empty()) {
            (true, _) => "*",
            (false, false) => "!",
            (false, true) => "",
        };
        let below = if below.is_empty() {
            String::new()
        } else {
            format!("({})", below.join(" "))
        };
        format!("{}{mark}{below}", node.name)
    }

    async fn grown(edges: &[(&'static str, &[&'static str])], bounds: Bounds) -> (Node, usize) {
        let graph = Graph::new(edges);
        let tree = grow(&graph, node("a"), bounds).await;
        (tree, graph.asked.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn holders_are_below_what_they_hold_down_to_what_nothing_holds() {
        let edges: &[(&str, &[&str])] = &[("a", &["c", "b"]), ("b", &["d"])];
        let (tree, _) = grown(edges, Bounds::default()).await;
        assert_eq!(text(&tree), "a(b(d) c)");
        let roots: Vec<&str> = tree.roots().iter().map(|node| node.name.as_str()).collect();
        assert_eq!(roots, ["d", "c"]);
        let (alone, _) = grown(&[], Bounds::default()).await;
        assert_eq!(alone.roots()[0].name, "a", "held by nothing but itself");
    }

    #[tokio::test]
    async fn a_cycle_is_shown_with_its_path_and_ends_the_tree() {
        let edges: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["c"]), ("c", &["b"])];
        let (tree, _) = grown(edges, Bounds::default()).await;
        assert_eq!(text(&tree), "a(b(c(b!)))");
        let again = &tree.holders[0].holders[0].holders[0];
        assert_eq!(again.cycle, ["thing/b", "thing/c", "thing/b"]);
        let (tree, _) = grown(&[("a", &["a"])], Bounds::default()).await;
        assert_eq!(tree.holders[0].cycle, ["thing/a", "thing/a"]);
    }

    #[tokio::test]
    async fn what_two_objects_wait_for_is_looked_up_once() {
        let edges: &[(&str, &[&str])] = &[("a", &["b", "c"]), ("b", &["d"]), ("c", &["d"]), ("d", &["e"])];
        let (tree, asked) = grown(edges, Bounds::default()).await;
        assert_eq!((text(&tree).as_str(), asked), ("a(b(d(e)) c(d*))", 5));
        assert_eq!(tree.roots().len(), 1);
    }

    #[tokio::test]
    async fn a_tree_is_as_deep_and_as_large_as_it_may_be() {
        let edges: &[(&str, &[&str])] = &[("a", &["b", "c", "d"]), ("b", &["e"])];
        let (tree, asked) = grown(edges, Bounds { depth: 1, nodes: 100 }).await;
        assert_eq!((text(&tree).as_str(), asked), ("a(b c d)", 1));
        let (tree, _) = grown(edges, Bounds { depth: 9, nodes: 3 }).await;
        assert_eq!(text(&tree), "a(b c)");
        assert_eq!(tree.notes, ["1 more holders are not shown"]);
        assert_eq!(tree.holders[0].notes, ["1 more holders are not shown"]);
    }
}
