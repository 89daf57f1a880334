//! Where the kinds and edges of a graph stand on a page: in columns by their step of a deletion, in each column in the
//! order with the fewest crossings that a fixed number of sweeps finds, after Sugiyama. Whole numbers only, so that
//! equal graphs have equal pictures on every machine.

use super::Graph;

/// Room between the columns, in which edges turn.
const COLUMN_GAP: i32 = 104;
/// Room around everything.
pub(super) const MARGIN: i32 = 28;
/// Above the columns: what they are.
const HEAD: i32 = 84;
/// Height of a kind, and of one with the name of its service.
const HEIGHT: i32 = 34;
const HEIGHT_OF_SERVICE: i32 = 50;
/// Room that an edge takes where it passes a column.
const LANE: i32 = 10;
const KIND_GAP: i32 = 20;
const SWEEPS: usize = 24;

/// A box, from its upper left corner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rectangle {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
}

/// An edge from its holder to its target: points that it passes, horizontally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) edge: usize,
    pub(super) points: Vec<(i32, i32)>,
}

/// The whole page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// Of each kind.
    pub(super) kinds: Vec<Rectangle>,
    pub(super) lines: Vec<Line>,
    /// Left side of each column, in the order of steps.
    pub(super) columns: Vec<i32>,
    /// Where the kinds begin that have no references, if there are any.
    pub(super) alone: Option<i32>,
}

/// A kind, or an edge where it passes a column.
struct Vertex {
    column: usize,
    kind: Option<usize>,
    height: i32,
    /// Its middle.
    y: i32,
}

/// An edge as a chain of vertices from the left to the right.
struct Chain {
    edge: usize,
    vertices: Vec<usize>,
    /// Whether the holder is at the right end.
    reversed: bool,
}

/// Lays out the graph.
pub(super) fn layout(graph: &Graph) -> Layout {
    let steps = graph.steps();
    let is_linked = |kind: usize| {
        graph
            .edges
            .iter()
            .any(|edge| edge.holder == kind || edge.target == kind)
    };
    let mut vertices: Vec<Vertex> = Vec::new();
    for (kind, step) in steps.iter().enumerate() {
        let height = height(graph, kind);
        vertices.push(Vertex {
            column: step - 1,
            kind: Some(kind),
            height,
            y: 0,
        });
    }
    let chains = chains(graph, &mut vertices);
    let count = (0..steps.len())
        .filter(|kind| is_linked(*kind))
        .map(|kind| steps[kind])
        .max();
    let mut columns: Vec<Vec<usize>> = vec![Vec::new(); count.unwrap_or(0)];
    for (at, vertex) in vertices.iter().enumerate() {
        if vertex.kind.is_none_or(is_linked) {
            columns[vertex.column].push(at);
        }
    }
    order(&mut columns, &vertices, &chains);
    align(&columns, &mut vertices, &chains);
    place(graph, &columns, &vertices, &chains, is_linked)
}

pub(super) fn width(graph: &Graph, kind: usize) -> i32 {
    let node = &graph.kinds[kind];
    let letters = node.service.as_ref().map_or(0, String::len).max(node.kind.len());
    i32::try_from(letters).unwrap_or(i32::MAX / 16) * 9 + 28
}

fn height(graph: &Graph, kind: usize) -> i32 {
    match graph.kinds[kind].service {
        Some(_) => HEIGHT_OF_SERVICE,
        None => HEIGHT,
    }
}

/// The edges between columns; a vertex is added where one passes a column.
fn chains(graph: &Graph, vertices: &mut Vec<Vertex>) -> Vec<Chain> {
    let mut chains = Vec::new();
    for (at, edge) in graph.edges.iter().enumerate() {
        let (from, to) = (vertices[edge.holder].column, vertices[edge.target].column);
        let (left, right) = if from < to {
            (edge.holder, edge.target)
        } else {
            (edge.target, edge.holder)
        };
        let mut chain = vec![left];
        for column in from.min(to) + 1..from.max(to) {
            vertices.push(Vertex {
                column,
                kind: None,
                height: LANE,
                y: 0,
            });
            chain.push(vertices.len() - 1);
        }
        chain.push(right);
        if from != to {
            chains.push(Chain {
                edge: at,
                vertices: chain,
                reversed: from > to,
            });
        }
    }
    chains
}

/// Sorts each column by the places of the neighbors, to and fro, and keeps the order with the fewest crossings.
fn order(columns: &mut Vec<Vec<usize>>, vertices: &[Vertex], chains: &[Chain]) {
    let mut best = columns.clone();
    let mut fewest = crossings(&best, vertices.len(), chains);
    for sweep in 0..SWEEPS {
        let forward = sweep % 2 == 0;
        let count = columns.len();
        for step in 1..count {
            let column = if forward { step } else { count - 1 - step };
            let places = places(columns, vertices.len());
            let mean = |vertex: &usize| {
                let near = neighbors(*vertex, chains, forward);
                let sum: i64 = near.iter().map(|other| places[*other] * 1000).sum();
                let count = i64::try_from(near.len()).unwrap_or(1);
                if near.is_empty() {
                    places[*vertex] * 1000
                } else {
                    sum / count
                }
            };
            let mut sorted = columns[column].clone();
            sorted.sort_by_key(mean);
            columns[column] = sorted;
        }
        let crossed = crossings(columns, vertices.len(), chains);
        if crossed < fewest {
            fewest = crossed;
            best.clone_from(columns);
        }
    }
    *columns = best;
}

/// Of each vertex the place in its column.
fn places(columns: &[Vec<usize>], vertices: usize) -> Vec<i64> {
    let mut places = vec![0; vertices];
    for column in columns {
        for (place, vertex) in (0..).zip(column) {
            places[*vertex] = place;
        }
    }
    places
}

/// The vertices that a vertex is linked with in the column before it, or after it.
fn neighbors(vertex: usize, chains: &[Chain], before: bool) -> Vec<usize> {
    let pairs = chains.iter().flat_map(|chain| chain.vertices.windows(2));
    let near = pairs.filter_map(|pair| match before {
        true if pair[1] == vertex => Some(pair[0]),
        false if pair[0] == vertex => Some(pair[1]),
        true | false => None,
    });
    near.collect()
}

fn crossings(columns: &[Vec<usize>], vertices: usize, chains: &[Chain]) -> usize {
    let places = places(columns, vertices);
    let mut column_of = vec![0; vertices];
    for (at, column) in columns.iter().enumerate() {
        for vertex in column {
            column_of[*vertex] = at;
        }
    }
    let pairs = chains.iter().flat_map(|chain| chain.vertices.windows(2));
    let segments: Vec<(usize, i64, i64)> = pairs
        .map(|pair| (column_of[pair[0]], places[pair[0]], places[pair[1]]))
        .collect();
    let crosses = |a: &(usize, i64, i64), b: &(usize, i64, i64)| a.0 == b.0 && (a.1 - b.1) * (a.2 - b.2) < 0;
    let all = segments.iter().enumerate();
    all.map(|(at, a)| segments[at + 1..].iter().filter(|b| crosses(a, b)).count())
        .sum()
}

/// Moves vertices toward the middle of their neighbors, as far as their column lets them.
fn align(columns: &[Vec<usize>], vertices: &mut [Vertex], chains: &[Chain]) {
    for column in columns {
        let mut y = 0;
        for (at, vertex) in column.iter().enumerate() {
            y += if at == 0 {
                0
            } else {
                apart(&vertices[column[at - 1]], &vertices[*vertex])
            };
            vertices[*vertex].y = y;
        }
    }
    for sweep in 0..SWEEPS {
        let numbers: Vec<usize> = if sweep % 2 == 0 {
            (0..columns.len()).collect()
        } else {
            (0..columns.len()).rev().collect()
        };
        for column in numbers.into_iter().map(|number| &columns[number]) {
            let wanted: Vec<i32> = column.iter().map(|vertex| middle(*vertex, vertices, chains)).collect();
            let (mut down, mut up) = (wanted.clone(), wanted);
            for at in 1..column.len() {
                let apart = apart(&vertices[column[at - 1]], &vertices[column[at]]);
                down[at] = down[at].max(down[at - 1] + apart);
            }
            for at in (1..column.len()).rev() {
                let apart = apart(&vertices[column[at - 1]], &vertices[column[at]]);
                up[at - 1] = up[at - 1].min(up[at] - apart);
            }
            // Between two orders that leave room enough, every mean does so as well.
            for (vertex, (down, up)) in column.iter().zip(down.into_iter().zip(up)) {
                vertices[*vertex].y = i32::midpoint(down, up);
            }
        }
    }
}

/// From the middle of one to that of the next.
fn apart(above: &Vertex, below: &Vertex) -> i32 {
    let gap = if above.kind.is_some() || below.kind.is_some() {
        KIND_GAP
    } else {
        0
    };
    (above.height + below.height) / 2 + gap + 1
}

fn middle(vertex: usize, vertices: &[Vertex], chains: &[Chain]) -> i32 {
    let mut near = neighbors(vertex, chains, true);
    near.extend(neighbors(vertex, chains, false));
    let sum: i32 = near.iter().map(|other| vertices[*other].y).sum();
    match i32::try_from(near.len()) {
        Ok(count) if count > 0 => sum / count,
        Ok(_) | Err(_) => vertices[vertex].y,
    }
}

fn place(
    graph: &Graph,
    columns: &[Vec<usize>],
    vertices: &[Vertex],
    chains: &[Chain],
    is_linked: impl Fn(usize) -> bool,
) -> Layout {
    let mut page = Layout {
        kinds: vec![Rectangle::default(); graph.kinds.len()],
        ..Layout::default()
    };
    let tops = columns
        .iter()
        .flatten()
        .map(|vertex| vertices[*vertex].y - vertices[*vertex].height / 2);
    let shift = MARGIN + HEAD - tops.min().unwrap_or(0);
    let (mut x, mut bottom) = (MARGIN, MARGIN + HEAD);
    let mut widths = Vec::new();
    for column in columns {
        let kinds = column.iter().filter_map(|vertex| vertices[*vertex].kind);
        let wide = kinds.map(|kind| width(graph, kind)).max().unwrap_or(0);
        for vertex in column.iter().map(|vertex| &vertices[*vertex]) {
            let place = Rectangle {
                x,
                y: vertex.y + shift - vertex.height / 2,
                width: wide,
                height: vertex.height,
            };
            bottom = bottom.max(place.y + place.height);
            if let Some(kind) = vertex.kind {
                page.kinds[kind] = place;
            }
        }
        page.columns.push(x);
        widths.push(wide);
        x += wide + COLUMN_GAP;
    }
    page.lines = lines(graph, &page, &widths, vertices, chains, shift);
    page.width = (x - COLUMN_GAP).max(0) + MARGIN;
    let alone: Vec<usize> = (0..graph.kinds.len()).filter(|kind| !is_linked(*kind)).collect();
    page.height = below(graph, &mut page, &alone, bottom);
    page
}

/// Puts the kinds without references in rows below the others; the lower end of all.
fn below(graph: &Graph, page: &mut Layout, alone: &[usize], bottom: i32) -> i32 {
    if alone.is_empty() {
        return bottom + MARGIN;
    }
    page.width = page.width.max(720);
    let start = bottom + 2 * MARGIN;
    page.alone = Some(start);
    let (mut x, mut y) = (MARGIN, start + 16);
    for kind in alone {
        let width = width(graph, *kind);
        if x + width > page.width - MARGIN && x > MARGIN {
            (x, y) = (MARGIN, y + HEIGHT_OF_SERVICE + KIND_GAP);
        }
        page.kinds[*kind] = Rectangle {
            x,
            y,
            width,
            height: height(graph, *kind),
        };
        x += width + KIND_GAP;
    }
    y + HEIGHT_OF_SERVICE + MARGIN
}

fn lines(graph: &Graph, page: &Layout, widths: &[i32], vertices: &[Vertex], chains: &[Chain], shift: i32) -> Vec<Line> {
    let mut lines = Vec::new();
    for (edge, declared) in graph.edges.iter().enumerate() {
        let (holder, target) = (page.kinds[declared.holder], page.kinds[declared.target]);
        let Some(chain) = chains.iter().find(|chain| chain.edge == edge) else {
            lines.push(Line {
                edge,
                points: if declared.is_loop() {
                    around(holder)
                } else {
                    beside(holder, target)
                },
            });
            continue;
        };
        let (first, last) = (chain.vertices[0], chain.vertices[chain.vertices.len() - 1]);
        let inner = &chain.vertices[1..chain.vertices.len() - 1];
        let (left, right) = if chain.reversed {
            (target, holder)
        } else {
            (holder, target)
        };
        let mut points = vec![(left.x + left.width, port(first, edge, false, vertices, chains) + shift)];
        for vertex in inner.iter().map(|vertex| &vertices[*vertex]) {
            let x = page.columns[vertex.column];
            points.extend([(x, vertex.y + shift), (x + widths[vertex.column], vertex.y + shift)]);
        }
        points.push((right.x, port(last, edge, true, vertices, chains) + shift));
        if chain.reversed {
            points.reverse();
        }
        lines.push(Line { edge, points });
    }
    lines
}

/// From a kind to itself, over its upper right corner.
fn around(kind: Rectangle) -> Vec<(i32, i32)> {
    let right = kind.x + kind.width;
    vec![(right - 30, kind.y), (right - 10, kind.y)]
}

/// From a kind to one of the same column, on their right side.
fn beside(holder: Rectangle, target: Rectangle) -> Vec<(i32, i32)> {
    let right = |place: Rectangle| (place.x + place.width, place.y + place.height / 2);
    vec![right(holder), right(target)]
}

/// Where on the left or right side of a kind an edge ends: those of a side in the order of where they lead.
fn port(kind: usize, edge: usize, left: bool, vertices: &[Vertex], chains: &[Chain]) -> i32 {
    let mut ends: Vec<(i32, usize)> = chains
        .iter()
        .filter_map(|chain| {
            let (first, last) = (chain.vertices[0], chain.vertices[chain.vertices.len() - 1]);
            let (own, next) = match left {
                true => (last, chain.vertices[chain.vertices.len() - 2]),
                false => (first, chain.vertices[1]),
            };
            (own == kind).then(|| (vertices[next].y, chain.edge))
        })
        .collect();
    ends.sort_unstable();
    let Vertex { height, y, .. } = vertices[kind];
    let count = i32::try_from(ends.len()).unwrap_or(1);
    let place = ends.iter().position(|(_, other)| *other == edge);
    let place = place.and_then(|place| i32::try_from(place).ok()).unwrap_or(0);
    let spread = ((height - 10) / count.max(1)).min(9);
    y + (2 * place - count + 1) * spread / 2
}
