//! `[kinds.<Kind>.versions]`: other versions of a kind as written, and what maps them to the kind's own.

use super::entries::each;
use super::fields::inline_fields;
use super::table::{Reader, Table};
use super::{MappingSpec, VersionSpec};
use crate::diag::messages;
use crate::grammar::{MAPPING, VERSION};
use crate::source::Text;

/// The versions of the kind whose table this is.
pub(super) fn versions(reader: &mut Reader<'_>, kind: &Table<'_, '_>) -> Vec<VersionSpec> {
    let mut versions = Vec::new();
    each(reader, kind, "versions", &VERSION, None, |reader, name, table| {
        versions.push(version(reader, name, &table));
    });
    versions
}

fn version(reader: &mut Reader<'_>, name: Text, table: &Table<'_, '_>) -> VersionSpec {
    let mut map = Vec::new();
    each(reader, table, "map", &MAPPING, Some("from"), |reader, own, table| {
        map.push(mapping(reader, own, &table));
    });
    if table.has("message") && table.has("fields") {
        reader.found.push(messages::version_shape_twice(&name));
    }
    VersionSpec {
        message: table.text("message", reader),
        fields: table.table("fields").map(|fields| inline_fields(reader, &name, fields)),
        served: table.flag("served", reader),
        deprecated: table.text("deprecated", reader),
        map,
        name,
    }
}

fn mapping(reader: &Reader<'_>, own: Text, table: &Table<'_, '_>) -> MappingSpec {
    MappingSpec {
        own,
        from: table.text("from", reader),
        default: table.scalar("default", reader),
        constant: table.scalar("constant", reader),
        function: table.text("function", reader),
        back: table.text("back", reader),
    }
}
