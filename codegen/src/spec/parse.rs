//! From the text of `crds.toml` to a [`Spec`]. Sorts of values are checked on the way through the grammar; meaning is
//! left to `lower`.

use toml::de::DeTable;

use super::entries::{each, listed};
use super::fields::inline_fields;
use super::table::{Reader, Table};
use super::versions::versions;
use super::{
    AllowSpec, ColumnSpec, KindSpec, PlatformSpec, QuerySpec, ReferenceSpec, RetentionSpec, ServiceKindSpec,
    ServiceSpec, Spec,
};
use crate::diag::{Collector, messages};
use crate::grammar::{ALLOW, COLUMN, FILE, KIND, PLATFORM, QUERY, REFERENCE, RETENTION, SERVICE, SERVICE_KIND};
use crate::source::{Sources, Span, Text};

/// Reads the declaration. Syntax errors are reported and what is legible around them is still read.
pub fn parse(sources: &Sources, found: &mut Collector) -> Spec {
    let file = sources.crds();
    let source = sources.text(file);
    let (document, errors) = DeTable::parse_recoverable(source);
    for error in errors {
        let end = source.len();
        let span = error.span().unwrap_or(end..end);
        found.push(messages::toml_syntax(error.message(), Span::new(file, span)));
    }
    let mut reader = Reader { file, source, found };
    let top = reader.open(&FILE, Span::new(file, 0..0), document.get_ref());
    let platform = top.value("platform").and_then(|value| {
        let table = value.get_ref().as_table()?;
        let span = key_place(&reader, document.get_ref(), "platform");
        Some(platform(&mut reader, span, table))
    });
    let mut kinds = Vec::new();
    each(&mut reader, &top, "kinds", &KIND, None, |reader, name, table| {
        kinds.push(kind(reader, name, table));
    });
    let mut services = Vec::new();
    each(&mut reader, &top, "services", &SERVICE, None, |reader, name, table| {
        services.push(service(reader, name, &table));
    });
    let mut queries = Vec::new();
    each(&mut reader, &top, "queries", &QUERY, None, |reader, name, table| {
        queries.push(query(reader, name, &table));
    });
    Spec {
        platform,
        kinds,
        services,
        queries,
    }
}

fn key_place(reader: &Reader<'_>, table: &DeTable<'_>, key: &str) -> Span {
    let start = Span::new(reader.file, 0..0);
    let found = table.iter().find(|(name, _)| name.get_ref() == key);
    found.map_or(start, |(name, _)| reader.span(name))
}

fn platform(reader: &mut Reader<'_>, span: Span, table: &DeTable<'_>) -> PlatformSpec {
    let table = reader.open(&PLATFORM, span, table);
    PlatformSpec {
        group: table.text("group", reader),
        version: table.text("version", reader),
        finalizer: table.text("finalizer", reader),
        deleting: table.text("deleting", reader),
        immutable: table.text("immutable", reader),
        restored_from: table.text("restored_from", reader),
        conversion_data: table.text("conversion_data", reader),
        database: table.text("database", reader),
    }
}

fn kind(reader: &mut Reader<'_>, name: Text, table: Table<'_, '_>) -> KindSpec {
    let mut columns = Vec::new();
    each(
        reader,
        &table,
        "columns",
        &COLUMN,
        Some("path"),
        |reader, name, table| {
            columns.push(column(reader, name, &table));
        },
    );
    let mut references = Vec::new();
    each(reader, &table, "references", &REFERENCE, None, |reader, name, table| {
        references.push(reference(reader, name, &table));
    });
    let versions = versions(reader, &table);
    shape_is_given_once(reader, &name, &table);
    let allow = allow(reader, &table);
    let retention = table.value("retention").and_then(|value| {
        let span = reader.span(value);
        Some(retention(reader, span, value.get_ref().as_table()?))
    });
    KindSpec {
        doc: table.text("doc", reader),
        message: table.text("message", reader),
        crd: table.text("crd", reader),
        group: table.text("group", reader),
        version: table.text("version", reader),
        plural: table.text("plural", reader),
        short_names: table.texts("short_names", reader),
        categories: table.texts("categories", reader),
        scope: table.text("scope", reader),
        cluster: table.flag("cluster", reader),
        immutable: table.flag("immutable", reader),
        history: table.flag("history", reader).is_some_and(|flag| flag.value),
        events: table.flag("events", reader).is_some_and(|flag| flag.value),
        storage: table.text("storage", reader),
        versions,
        retention,
        fields: table.table("fields").map(|fields| inline_fields(reader, &name, fields)),
        columns,
        references,
        allow,
        name,
    }
}

fn retention(reader: &mut Reader<'_>, span: Span, table: &DeTable<'_>) -> RetentionSpec {
    let table = reader.open(&RETENTION, span, table);
    RetentionSpec {
        span,
        keep_days: table.count("keep_days", reader),
        keep_last_per_namespace: table.count("keep_last_per_namespace", reader),
        states: table.spanned_texts("states", reader),
        state_column: table.text("state_column", reader),
        evicted: table.flag("evicted", reader),
    }
}

fn shape_is_given_once(reader: &mut Reader<'_>, kind: &Text, table: &Table<'_, '_>) {
    let given: Vec<&str> = ["message", "fields", "crd"]
        .into_iter()
        .filter(|key| table.has(key))
        .collect();
    if given.len() != 1 {
        reader.found.push(messages::shape_not_once(kind, &given));
    }
}

fn column(reader: &Reader<'_>, name: Text, table: &Table<'_, '_>) -> ColumnSpec {
    ColumnSpec {
        name,
        path: table.text("path", reader),
        was: table.text("was", reader),
        key: table.flag("key", reader),
        sql: table.text("sql", reader),
        doc: table.text("doc", reader),
        printer: table.text("printer", reader),
        wide: table.flag("wide", reader),
    }
}

fn reference(reader: &Reader<'_>, name: Text, table: &Table<'_, '_>) -> ReferenceSpec {
    ReferenceSpec {
        name,
        kind: table.text("kind", reader),
        kind_column: table.text("kind_column", reader),
        kinds: table.spanned_texts("kinds", reader),
        column: table.text("column", reader),
        path: table.text("path", reader),
        owned: table.flag("owned", reader),
        on_delete: table.text("on_delete", reader),
    }
}

fn service(reader: &mut Reader<'_>, name: Text, table: &Table<'_, '_>) -> ServiceSpec {
    let kinds = listed(reader, table, "kinds", &SERVICE_KIND, "kind");
    let kinds = kinds.iter().filter_map(|kind| {
        Some(ServiceKindSpec {
            name: kind.text("kind", reader)?,
            plural: kind.text("plural", reader),
        })
    });
    let kinds = kinds.collect();
    ServiceSpec {
        name,
        group: table.text("group", reader),
        kinds,
        cluster_scoped: table.texts("cluster_scoped", reader),
        refers_to: table.texts("refers_to", reader),
        address: table.text("address", reader),
        ca_file: table.text("ca_file", reader),
        token_file: table.text("token_file", reader),
    }
}

fn allow(reader: &mut Reader<'_>, table: &Table<'_, '_>) -> Vec<AllowSpec> {
    let mut allowed = Vec::new();
    each(reader, table, "allow", &ALLOW, Some("reason"), |reader, code, table| {
        let reason = table.text("reason", reader);
        allowed.push(AllowSpec { code, reason });
    });
    allowed
}

fn query(reader: &mut Reader<'_>, name: Text, table: &Table<'_, '_>) -> QuerySpec {
    QuerySpec {
        allow: allow(reader, table),
        name,
        doc: table.text("doc", reader),
        kind: table.text("kind", reader),
        condition: table.text("where", reader),
        order_by: table.text("order_by", reader),
        limit: table.count("limit", reader),
    }
}
