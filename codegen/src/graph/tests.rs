//! The searches on small graphs that are written as text, and the layout on many random ones.

use super::layout::{Layout, layout};
use super::{Edge, Graph, Node};
use crate::model::OnDelete;

/// A graph of lines such as `Cluster -> Network cascade`; `any` marks one of several kinds.
fn graph(text: &str) -> Graph {
    let mut graph = Graph::default();
    for (number, line) in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [holder, "->", target, effect, any @ ..] = words.as_slice() else {
            panic!("`{line}` is not an edge");
        };
        let (holder, target) = (kind(&mut graph, holder), kind(&mut graph, target));
        let on_delete = OnDelete::ALL.into_iter().find(|choice| choice.as_str() == *effect);
        graph.edges.push(Edge {
            part: 0,
            holder,
            target,
            kind: String::new(),
            reference: format!("r{number}"),
            written: String::new(),
            field: String::new(),
            column: None,
            kind_column: any.first().map(ToString::to_string),
            listed: false,
            owned: *effect == "owned",
            on_delete: on_delete.unwrap_or(OnDelete::Cascade),
        });
    }
    graph
}

fn kind(graph: &mut Graph, name: &str) -> usize {
    let known = graph.kinds.iter().position(|node| node.kind == name);
    known.unwrap_or_else(|| {
        graph.kinds.push(Node {
            service: None,
            group: "g".to_owned(),
            kind: name.to_owned(),
            declared: true,
        });
        graph.kinds.len() - 1
    })
}

/// `A -> B -> C`
fn shown(graph: &Graph, path: &[usize]) -> String {
    let mut text = graph.label(graph.edges[path[0]].holder);
    for edge in path {
        text.push_str(&format!(" -> {}", graph.label(graph.edges[*edge].target)));
    }
    text
}

fn cycles(text: &str) -> Vec<String> {
    let graph = graph(text);
    graph.cycles().iter().map(|cycle| shown(&graph, cycle)).collect()
}

/// The edge and, behind it, the path that makes it needless.
fn implied(text: &str) -> Vec<String> {
    let graph = graph(text);
    let implied = graph.implied();
    let implied = implied.iter().map(|implied| {
        format!(
            "{}: {}",
            graph.edges[implied.edge].reference,
            shown(&graph, &implied.path)
        )
    });
    implied.collect()
}

fn deadlocks(text: &str) -> Vec<String> {
    let graph = graph(text);
    graph
        .deadlocks()
        .iter()
        .map(|found| shown(&graph, &found.path))
        .collect()
}

const SEED: &str = "
    Cluster -> Network cascade
    Cluster -> ServerGroup cascade
    Network -> CloudIdentity cascade
    ServerGroup -> CloudIdentity cascade
    CloudIdentity -> Project cascade";

#[test]
fn a_kind_goes_after_all_that_refer_to_it() {
    let graph = graph(SEED);
    let steps = graph.steps();
    let steps: Vec<(String, usize)> = (0..5).map(|kind| (graph.label(kind), steps[kind])).collect();
    let expected = [
        ("Cluster", 1),
        ("Network", 2),
        ("ServerGroup", 2),
        ("CloudIdentity", 3),
        ("Project", 4),
    ];
    assert_eq!(steps, expected.map(|(kind, step)| (kind.to_owned(), step)));
}

#[test]
fn what_is_left_dangling_has_no_place_in_the_order() {
    assert_eq!(graph("A -> B orphan\nB -> A cascade").steps(), [2, 1]);
}

#[test]
fn a_diamond_is_no_cycle() {
    assert_eq!(cycles(SEED), [""; 0]);
}

#[test]
fn a_cycle_is_found_once_and_by_its_shortest_path() {
    assert_eq!(
        cycles("A -> B cascade\nB -> C block\nC -> A owned\nC -> B cascade"),
        ["A -> B -> C -> A"]
    );
    let shared = "A -> B block\nB -> A block\nB -> C block\nC -> A block";
    assert_eq!(cycles(shared), ["A -> B -> A", "C -> A -> B -> C"]);
    let two = "A -> B block\nB -> A block\nC -> D owned\nD -> C cascade";
    assert_eq!(cycles(two), ["A -> B -> A", "C -> D -> C"]);
}

#[test]
fn a_cycle_by_one_of_several_kinds_is_a_cycle() {
    assert_eq!(
        cycles("Note -> A cascade any\nNote -> B cascade any\nB -> Note block"),
        ["Note -> B -> Note"]
    );
}

#[test]
fn trees_and_dangling_names_wait_for_nothing() {
    assert_eq!(cycles("Folder -> Folder cascade"), [""; 0]);
    assert_eq!(cycles("A -> B cascade\nB -> A orphan"), [""; 0]);
}

#[test]
fn an_edge_follows_from_a_longer_path() {
    let more = format!("{SEED}\nNetwork -> Project cascade\nCluster -> Project block");
    let expected = [
        "r5: Network -> CloudIdentity -> Project",
        "r6: Cluster -> Network -> CloudIdentity -> Project",
    ];
    assert_eq!(implied(&more), expected);
    assert_eq!(implied(SEED), [""; 0]);
}

/// A path that only waits starts no deletion, and one without an owner owns nothing.
#[test]
fn an_edge_that_does_more_than_the_path_does_not_follow() {
    assert_eq!(implied("A -> B block\nB -> C block\nA -> C cascade"), [""; 0]);
    assert_eq!(implied("A -> B cascade\nB -> C cascade\nA -> C owned"), [""; 0]);
    assert_eq!(implied("A -> B orphan\nB -> C cascade\nA -> C cascade"), [""; 0]);
    assert_eq!(implied("A -> B owned\nB -> C owned\nA -> C cascade").len(), 1);
    assert_eq!(implied("A -> B cascade\nB -> C cascade\nA -> C orphan"), [""; 0]);
}

/// Of several kinds an object names one.
#[test]
fn one_of_several_kinds_neither_follows_nor_implies() {
    assert_eq!(implied("A -> B cascade any\nB -> C cascade\nA -> C cascade"), [""; 0]);
    assert_eq!(implied("A -> B cascade\nB -> C cascade\nA -> C cascade any"), [""; 0]);
}

#[test]
fn two_references_to_one_kind_are_two_objects() {
    assert_eq!(implied("A -> B cascade\nA -> B block"), [""; 0]);
}

#[test]
fn an_owner_that_waits_for_what_it_owns_is_found() {
    let path = "Cluster -> Network -> Project";
    let held = "Cluster -> Project owned\nCluster -> Network block\nNetwork -> Project cascade";
    assert_eq!(deadlocks(held), [path]);
    assert_eq!(
        deadlocks("Cluster -> Project owned\nCluster -> Project block"),
        ["Cluster -> Project"]
    );
}

#[test]
fn what_goes_by_another_way_holds_no_owner() {
    for goes in [
        "Cluster -> Project owned\nCluster -> Network cascade\nNetwork -> Project cascade",
        "Cluster -> Project owned\nCluster -> Network owned\nNetwork -> Project cascade",
        "Cluster -> Project owned\nCluster -> Project cascade",
        "Cluster -> Project owned\nCluster -> Network block\nNetwork -> Project owned",
        "Cluster -> Project owned\nCluster -> Network block\nNetwork -> Project orphan",
        "Folder -> Folder owned\nFolder -> Folder block",
    ] {
        assert_eq!(deadlocks(goes), [""; 0], "{goes}");
    }
}

/// A small generator of numbers: equal seeds, equal graphs.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).expect("small")).expect("small")
    }
}

fn random(seed: u64) -> Graph {
    let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let kinds = 2 + numbers.below(12);
    let mut lines = String::new();
    for _ in 0..numbers.below(3 * kinds) {
        let (a, b) = (numbers.below(kinds), numbers.below(kinds));
        let effect = ["cascade", "block", "owned", "orphan"][numbers.below(4)];
        // From the lower to the higher number, so that there is no cycle, but for what dangles.
        let (a, b) = if effect == "orphan" {
            (a, b)
        } else {
            (a.min(b), a.max(b))
        };
        lines.push_str(&format!("K{a} -> K{b} {effect}\n"));
    }
    graph(&lines)
}

fn overlap(page: &Layout, a: usize, b: usize) -> bool {
    let (a, b) = (page.kinds[a], page.kinds[b]);
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

#[test]
fn steps_respect_every_edge_that_waits() {
    for seed in 1..400 {
        let graph = random(seed);
        let steps = graph.steps();
        assert_eq!(graph.cycles(), Vec::<Vec<usize>>::new(), "seed {seed}");
        for edge in graph.edges.iter().filter(|edge| edge.waits() && !edge.is_loop()) {
            assert!(steps[edge.holder] < steps[edge.target], "seed {seed}");
        }
    }
}

#[test]
fn no_kind_covers_another_and_all_are_on_the_page() {
    for seed in 1..120 {
        let graph = random(seed);
        let page = layout(&graph);
        assert_eq!(page, layout(&graph), "seed {seed}: equal graphs, equal pictures");
        assert_eq!(page.lines.len(), graph.edges.len(), "seed {seed}");
        for a in 0..graph.kinds.len() {
            let place = page.kinds[a];
            assert!(place.width > 0 && place.x >= 0 && place.y >= 0, "seed {seed}");
            assert!(
                place.x + place.width <= page.width && place.y + place.height <= page.height,
                "seed {seed}"
            );
            assert!((0..a).all(|b| !overlap(&page, a, b)), "seed {seed}");
        }
    }
}

#[test]
fn an_edge_begins_at_its_holder_and_ends_at_its_target() {
    for seed in 1..120 {
        let graph = random(seed);
        let page = layout(&graph);
        for line in &page.lines {
            let edge = &graph.edges[line.edge];
            let touches = |kind: usize, point: Option<&(i32, i32)>| {
                let (place, (x, y)) = (page.kinds[kind], *point.expect("a line has points"));
                let is_beside = x == place.x || x == place.x + place.width;
                let is_above = edge.is_loop() && y == place.y && (place.x..place.x + place.width).contains(&x);
                (is_beside && (place.y..=place.y + place.height).contains(&y)) || is_above
            };
            assert!(touches(edge.holder, line.points.first()), "seed {seed}: {edge:?}");
            assert!(touches(edge.target, line.points.last()), "seed {seed}: {edge:?}");
        }
    }
}

#[test]
fn the_picture_says_in_words_what_it_shows() {
    let svg = graph(SEED).svg("The seed", Some("@generated"));
    assert!(svg.starts_with("<!-- @generated -->\n<svg "), "{svg}");
    assert!(svg.contains("CloudIdentity names Project (cascade)"), "{svg}");
    assert_eq!(svg.matches("class=\"own\"").count(), 5, "{svg}");
}

#[test]
fn graphviz_gets_every_kind_and_edge() {
    let mut graph = graph("Cluster -> Network block");
    graph.kinds[1].service = Some("region".to_owned());
    let dot = graph.dot();
    assert!(dot.contains("subgraph \"cluster_region\""), "{dot}");
    let edge = "\"Cluster\" -> \"region.Network\" [label=\"r0: block\", arrowhead=normaltee];";
    assert!(dot.contains(edge), "{dot}");
}
