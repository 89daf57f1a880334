//! The graph as a picture: what goes first stands at the left. Colors follow the reader's light or dark theme, and no
//! meaning is in a color alone.

use super::layout::{Layout, Line, MARGIN, Rectangle, layout};
use super::{Edge, Graph};
use crate::model::OnDelete;

const STYLE: &str = "\
    text { font: 14px system-ui, \"Segoe UI\", Helvetica, Arial, sans-serif; fill: #1b1f24 }
    .title { font-size: 17px; font-weight: 600 }
    .kind { font-weight: 600; text-anchor: middle }
    .small { font-size: 12px; fill: #57606a }
    .middle { text-anchor: middle }
    .page { fill: #f6f8fa }
    .own { fill: #dbe9ff; stroke: #2f6fd0 }
    .other { fill: #ffffff; stroke: #8c959f; stroke-dasharray: 4 3 }
    .line { fill: none; stroke-width: 1.6 }
    .cascade { stroke: #2f6fd0 }
    .owned { stroke: #2f6fd0; stroke-width: 3 }
    .block { stroke: #b25c00 }
    .orphan { stroke: #8c959f; stroke-dasharray: 2 4 }
    .choice { stroke-width: 0.9 }
    .head { fill: #2f6fd0 }
    .bar { stroke: #b25c00; stroke-width: 2; fill: none }
    .open { stroke: #8c959f; stroke-width: 1.5; fill: none }
    .name { font-size: 12px; fill: #57606a; stroke: #f6f8fa; stroke-width: 4; paint-order: stroke; \
    stroke-linejoin: round }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6e9ec }
      .small, .name { fill: #b1bac4 }
      .name { stroke: #1f2328 }
      .page { fill: #1f2328 }
      .own { fill: #1d3a66; stroke: #79b0ff }
      .other { fill: #2d333b; stroke: #8b949e }
      .cascade, .owned { stroke: #79b0ff }
      .block, .bar { stroke: #ffb266 }
      .head { fill: #79b0ff }
    }
";

const MARKERS: &str = r#"    <marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
      <path class="head" d="M0 0 10 5 0 10z"/>
    </marker>
    <marker id="diamond" viewBox="0 0 16 10" refX="15" refY="5" markerWidth="16" markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">
      <path class="head" d="M0 5 8 0 16 5 8 10z"/>
    </marker>
    <marker id="bar" viewBox="0 0 10 12" refX="8" refY="6" markerWidth="10" markerHeight="12" markerUnits="userSpaceOnUse" orient="auto">
      <path class="bar" d="M0 6H8M7 0V12"/>
    </marker>
    <marker id="open" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
      <path class="open" d="M1 1 9 5 1 9"/>
    </marker>
"#;

/// Edges of a graph with more of them are not written on.
const NAMED_EDGES_MAX: usize = 16;

/// The sorts of edges, as the legend explains them: their class and end, and what they mean.
const LEGEND: [(&str, &str, &str); 5] = [
    ("cascade", "head", "cascade: goes first, with the target"),
    ("owned", "diamond", "owned: goes first, by the target"),
    ("block", "bar", "block: has to go first"),
    ("orphan", "open", "orphan: stays"),
    ("cascade choice", "head", "thin: one of several kinds"),
];
/// Room for an entry of the legend, of which two stand above each other.
const LEGEND_WIDTH: i32 = 300;
const LEGEND_HEIGHT: i32 = 24;

impl Graph {
    /// The whole graph. `title` is what readers and screen readers are told that it is; `mark` is put before it as a
    /// comment.
    pub fn svg(&self, title: &str, mark: Option<&str>) -> String {
        let mut page = layout(self);
        page.width = page.width.max(MARGIN + 3 * LEGEND_WIDTH - 50);
        let (width, height) = (page.width, page.height + 2 * LEGEND_HEIGHT + MARGIN);
        let mark = mark.map_or_else(String::new, |mark| format!("<!-- {mark} -->\n"));
        let mut text = format!(
            "{mark}<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
             \x20 <title id=\"title\">{title}</title>\n  <desc id=\"desc\">{}</desc>\n\
             \x20 <style>\n{STYLE}  </style>\n  <defs>\n{MARKERS}  </defs>\n\
             \x20 <rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n\
             \x20 <text x=\"{MARGIN}\" y=\"36\" class=\"title\">{title}</text>\n",
            self.described(),
        );
        self.heads(&page, &mut text);
        for line in &page.lines {
            self.line(line, &mut text);
        }
        if self.edges.len() <= NAMED_EDGES_MAX {
            for line in &page.lines {
                let edge = &self.edges[line.edge];
                let (x, y) = label_place(&line.points, edge.is_loop());
                text.push_str(&format!(
                    "  <text x=\"{x}\" y=\"{y}\" class=\"name middle\">{}</text>\n",
                    edge.reference
                ));
            }
        }
        for (kind, place) in page.kinds.iter().enumerate() {
            self.kind(kind, *place, &mut text);
        }
        legend(page.height + 22, &mut text);
        text.push_str("</svg>\n");
        text
    }

    /// The edges in words, for who does not see the picture.
    fn described(&self) -> String {
        let edges = self.edges.iter().map(|edge| {
            let (holder, target) = (self.label(edge.holder), self.label(edge.target));
            format!("{holder} names {target} ({})", edge.effect())
        });
        let edges: Vec<String> = edges.collect();
        if edges.is_empty() {
            return "No kind refers to another.".to_owned();
        }
        format!("{}.", edges.join("; "))
    }

    fn heads(&self, page: &Layout, text: &mut String) {
        for (at, x) in page.columns.iter().enumerate() {
            let words = match at {
                0 => "deleted first".to_owned(),
                _ => format!("step {}", at + 1),
            };
            text.push_str(&format!("  <text x=\"{x}\" y=\"72\" class=\"small\">{words}</text>\n"));
        }
        if let Some(y) = page.alone {
            let words = "no references";
            text.push_str(&format!(
                "  <text x=\"{MARGIN}\" y=\"{y}\" class=\"small\">{words}</text>\n"
            ));
        }
    }

    fn line(&self, line: &Line, text: &mut String) {
        let edge = &self.edges[line.edge];
        let (class, marker) = looks(edge.owned, edge.on_delete);
        let choice = if edge.kind_column.is_some() { " choice" } else { "" };
        text.push_str(&format!(
            "  <path class=\"line {class}{choice}\" marker-end=\"url(#{marker})\" d=\"{}\"><title>{}</title></path>\n",
            curve(&line.points, edge.is_loop()),
            self.sentence(edge)
        ));
    }

    fn sentence(&self, edge: &Edge) -> String {
        let (holder, target) = (self.label(edge.holder), self.label(edge.target));
        let choice = if edge.kind_column.is_some() {
            " may name"
        } else {
            " names"
        };
        format!("{holder}: {}{choice} {target} ({})", edge.field, edge.effect())
    }

    fn kind(&self, kind: usize, place: Rectangle, text: &mut String) {
        let node = &self.kinds[kind];
        let Rectangle { x, y, width, height } = place;
        let (class, middle) = (if node.service.is_some() { "other" } else { "own" }, x + width / 2);
        text.push_str(&format!(
            "  <rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\">\
             <title>{}, {}</title></rect>\n",
            node.kind, node.group
        ));
        if let Some(service) = &node.service {
            text.push_str(&format!(
                "  <text x=\"{middle}\" y=\"{}\" class=\"small middle\">{service}</text>\n",
                y + 19
            ));
        }
        text.push_str(&format!(
            "  <text x=\"{middle}\" y=\"{}\" class=\"kind\">{}</text>\n",
            y + height - 12,
            node.kind
        ));
    }
}

/// Class of the line and its end.
const fn looks(owned: bool, on_delete: OnDelete) -> (&'static str, &'static str) {
    match on_delete {
        OnDelete::Cascade if owned => ("owned", "diamond"),
        OnDelete::Cascade => ("cascade", "head"),
        OnDelete::Block => ("block", "bar"),
        OnDelete::Orphan => ("orphan", "open"),
    }
}

/// Horizontal where it leaves and where it arrives.
fn curve(points: &[(i32, i32)], is_loop: bool) -> String {
    let (x, y) = points[0];
    let mut path = format!("M{x} {y}");
    for pair in points.windows(2) {
        let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
        if is_loop {
            let above = y1 - 26;
            path.push_str(&format!("C{x1} {above} {x2} {above} {x2} {y2}"));
        } else if x1 == x2 {
            let out = x1 + 56;
            path.push_str(&format!("C{out} {y1} {out} {y2} {x2} {y2}"));
        } else if y1 == y2 {
            path.push_str(&format!("H{x2}"));
        } else {
            let middle = i32::midpoint(x1, x2);
            path.push_str(&format!("C{middle} {y1} {middle} {y2} {x2} {y2}"));
        }
    }
    path
}

/// In the middle of the last turn before the target.
fn label_place(points: &[(i32, i32)], is_loop: bool) -> (i32, i32) {
    let (first, last) = (points[points.len() - 2], points[points.len() - 1]);
    if is_loop {
        return (i32::midpoint(first.0, last.0), first.1 - 24);
    }
    if first.0 == last.0 {
        return (first.0 + 44, i32::midpoint(first.1, last.1) + 4);
    }
    (i32::midpoint(first.0, last.0), i32::midpoint(first.1, last.1) - 5)
}

fn legend(y: i32, text: &mut String) {
    for (at, (class, marker, means)) in (0..).zip(LEGEND) {
        let (x, y) = (MARGIN + at / 2 * LEGEND_WIDTH, y + at % 2 * LEGEND_HEIGHT);
        let end = x + 36;
        text.push_str(&format!(
            "  <path class=\"line {class}\" marker-end=\"url(#{marker})\" d=\"M{x} {y}H{end}\"/>\n\
             \x20 <text x=\"{}\" y=\"{}\" class=\"small\">{means}</text>\n",
            end + 8,
            y + 4
        ));
    }
}
