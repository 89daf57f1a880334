//! Follows a JSON path through messages. What is wrong is pointed at by segment.

use std::ops::Range;

use super::messages::Messages;
use super::types;
use crate::diag::{Collector, messages as errors};
use crate::model::{Cardinality, Field, FieldType, Message, Path, Segment};
use crate::source::Text;

/// The parts of an object that a path may start with.
const PARTS: [&str; 3] = ["metadata", "spec", "status"];

/// A path that leads to a field.
pub(super) struct Resolved<'m> {
    pub(super) path: Path,
    /// The last field on the path.
    pub(super) field: &'m Field,
}

/// Follows `text` from `root`; reports the first segment that leads nowhere.
pub(super) fn resolve<'m>(
    text: &Text,
    root: &'m Message,
    messages: &'m Messages,
    found: &mut Collector,
) -> Option<Resolved<'m>> {
    let segments = segments(text, found)?;
    let mut message = root;
    let mut path = Vec::new();
    let last = segments.len() - 1;
    for (at, range) in segments.into_iter().enumerate() {
        let name = &text.value[range.clone()];
        let field = message
            .field_by_json_name(name)
            .filter(|_| at > 0 || PARTS.contains(&name));
        let Some(field) = field else {
            let parent = text.value[..range.start].trim_end_matches('.');
            found.push(unknown_segment(text, range, parent, message));
            return None;
        };
        path.push(Segment {
            json: field.json_name.clone(),
            proto: field.name.clone(),
        });
        if at == last {
            let path = Path { segments: path };
            return Some(Resolved { path, field });
        }
        message = next_message(text, range, field, messages, found)?;
    }
    None
}

/// The byte range of each segment.
fn segments(text: &Text, found: &mut Collector) -> Option<Vec<Range<usize>>> {
    let mut segments = Vec::new();
    let mut start = 0;
    for segment in text.value.split('.') {
        let range = start..start + segment.len();
        start = range.end + 1;
        let is_name = !segment.is_empty()
            && segment
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !is_name {
            found.push(errors::bad_path(text, range));
            return None;
        }
        segments.push(range);
    }
    Some(segments)
}

fn unknown_segment(text: &Text, range: Range<usize>, parent: &str, message: &Message) -> crate::diag::Diagnostic {
    if parent.is_empty() {
        return errors::unknown_part_of_object(text, range, &PARTS);
    }
    let name = &text.value[range.clone()];
    // A path in proto names is the most likely error of all, and has exactly one answer.
    let by_proto_name = message.fields.iter().find(|field| field.name == name);
    let candidates: Vec<&str> = message.fields.iter().map(|field| field.json_name.as_str()).collect();
    let meant = by_proto_name.map(|field| field.json_name.as_str());
    errors::unknown_field(text, range, parent, &candidates, meant)
}

fn next_message<'m>(
    text: &Text,
    range: Range<usize>,
    field: &Field,
    messages: &'m Messages,
    found: &mut Collector,
) -> Option<&'m Message> {
    match field.cardinality {
        Cardinality::Repeated => found.push(errors::path_through(text, range, "a list")),
        Cardinality::Map(_) => found.push(errors::path_through(text, range, "a map")),
        Cardinality::Single | Cardinality::Optional => {
            if let FieldType::Message(name) = &field.ty {
                return messages.get(name);
            }
            let what = types::word(&field.ty);
            found.push(errors::path_through(text, range, &what));
        }
    }
    None
}
