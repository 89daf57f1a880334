//! Kinds, once their messages are known: columns, keys, references, headings, all put together.

use std::collections::BTreeMap;

use super::columns::{self, Printer};
use super::draft::Draft;
use super::made::Made;
use super::messages::{Enums, Messages};
use super::{keys, references, retention, sql_only, storage_version, versions};
use crate::diag::{Collector, messages as errors};
use crate::dialect::products_naming_keys_among_tables;
use crate::model::{
    Cardinality, FieldType, HistoryColumn, Kind, Message, MessageName, PrinterColumn, PrinterType, QualifiedName as _,
    Scope, Service, Shape, SideTable, SubresourceStatus, Version,
};
use crate::source::{Span, Text};
use crate::spec::ColumnSpec;

/// What is known before kinds are lowered.
pub(super) struct Known<'a> {
    pub(super) made: &'a Made,
    pub(super) messages: &'a Messages,
    pub(super) enums: &'a Enums,
    /// Where it is false a message may be missing because its file did not compile, which was reported.
    pub(super) complete: bool,
    pub(super) services: Vec<Service>,
}

/// Lowers every kind whose message is known.
pub(super) fn lower(drafts: &[Draft<'_>], known: Known<'_>, found: &mut Collector) -> Vec<Kind> {
    let context = Context {
        targets: references::Known {
            kinds: drafts.iter().map(|draft| draft.name.clone()).collect(),
            services: known.services,
        },
        made: known.made,
        messages: known.messages,
        enums: known.enums,
        complete: known.complete,
    };
    let mut objects = sql_objects(drafts);
    let mut kinds = Vec::new();
    for draft in drafts {
        if let Some(kind) = kind(draft, &context, found) {
            refuse_taken(&kind, draft, &mut objects, found);
            kinds.push(kind);
        }
    }
    kinds
}

/// What all kinds are checked against.
struct Context<'a> {
    targets: references::Known,
    made: &'a Made,
    messages: &'a Messages,
    enums: &'a Enums,
    complete: bool,
}

/// The message that is the whole object.
fn root<'m>(draft: &Draft<'_>, context: &Context<'m>, found: &mut Collector) -> Option<&'m Message> {
    let messages = context.messages;
    match &draft.spec.message {
        Some(text) => named(text, context, found),
        None => messages.get(context.made.root(&draft.name, &draft.version)?),
    }
}

/// The message of that name.
fn named<'m>(text: &Text, context: &Context<'m>, found: &mut Collector) -> Option<&'m Message> {
    let messages = context.messages;
    let name = MessageName::parse(&text.value)
        .map_err(|error| found.push(errors::bad_name(text, error)))
        .ok()?;
    let message = messages.get(&name);
    if message.is_none() && context.complete {
        let candidates = messages
            .values()
            .filter(|message| message.field_by_json_name("spec").is_some())
            .map(|message| message.name.full());
        found.push(errors::unknown_message(text, candidates));
    }
    message
}

/// The messages of `spec` and `status`.
struct Parts {
    spec: MessageName,
    status: SubresourceStatus,
}

/// `text` is what names the message.
fn parts(text: &Text, root: &Message, found: &mut Collector) -> Option<Parts> {
    let part = |name: &str| -> Option<&MessageName> {
        let field = root.field_by_json_name(name)?;
        match (&field.ty, field.cardinality) {
            (FieldType::Message(name), Cardinality::Single | Cardinality::Optional) => Some(name),
            _ => None,
        }
    };
    for required in ["metadata", "spec"] {
        if part(required).is_none() {
            found.push(errors::message_without_part(text, root.name.full(), required));
        }
    }
    part("metadata")?;
    Some(Parts {
        spec: part("spec")?.clone(),
        status: match part("status") {
            Some(message) => SubresourceStatus::Present(message.clone()),
            None => SubresourceStatus::Absent,
        },
    })
}

/// Tables and keys by name: there are engines that keep both in one list.
type SqlObjects = BTreeMap<String, Span>;

fn sql_objects(drafts: &[Draft<'_>]) -> SqlObjects {
    let mut objects = SqlObjects::new();
    for draft in drafts {
        let span = draft.spec.name.span;
        objects.entry(draft.table.to_string()).or_insert(span);
        for side in SideTable::ALL {
            let name = format!("{}_{}", draft.table, side.suffix());
            objects.entry(name).or_insert(span);
        }
        if draft.spec.history {
            let name = format!("{}_{}", draft.table, HistoryColumn::SUFFIX);
            objects.entry(format!("{name}_seen_time")).or_insert(span);
            objects.entry(name).or_insert(span);
        }
    }
    objects
}

fn kind(draft: &Draft<'_>, context: &Context<'_>, found: &mut Collector) -> Option<Kind> {
    let spec = draft.spec;
    let root = root(draft, context, found);
    let text = spec.message.as_ref().unwrap_or(&spec.name);
    let parts = root.and_then(|root| parts(text, root, found));
    let whole = root.filter(|_| parts.is_some());
    let columns = columns::lower(spec, &draft.table, whole, context.messages, found);
    let (root, parts) = (root?, parts?);
    let retention = spec.retention.as_ref();
    let retention = retention.and_then(|rule| retention::lower(rule, &columns.columns, context.enums, found));
    let holding = references::Holding {
        spec,
        name: &draft.name,
        columns: &columns.columns,
        root: whole,
        messages: context.messages,
    };
    let references = references::lower(&holding, &context.targets, found);
    let mut keys = keys::base(&draft.table);
    keys.extend(columns.keys);
    sql_only::check(spec, found);
    let names = draft.names.clone();
    let versions = versions(draft, root, &columns.printers, context, found);
    let printers = columns.printers.into_iter().map(|printer| printer.column);
    Some(Kind {
        name: draft.name.clone(),
        doc: doc(draft, root),
        group: draft.group.clone(),
        version: draft.version.clone(),
        storage: versions::storage(draft, found),
        versions,
        plural: names.plural,
        singular: names.singular,
        list_kind: format!("{}List", draft.name),
        short_names: names.short_names,
        categories: names.categories,
        scope: scope(draft),
        cluster: sql_only::has_cluster(spec),
        immutable: spec.immutable.is_some_and(|flag| flag.value),
        history: spec.history,
        events: spec.events,
        retention,
        module: draft.module.clone(),
        table: draft.table.clone(),
        shape: shape(draft, context.made),
        root: root.name.clone(),
        spec: parts.spec,
        status: parts.status,
        columns: columns.columns,
        keys,
        references,
        printer_columns: printer_columns(draft, printers),
        storage_version_hash: storage_version::hash(&draft.group, &draft.version, &draft.name),
    })
}

/// The other versions, of which each is as the kind's own where it says nothing else.
fn versions(
    draft: &Draft<'_>,
    own: &Message,
    printers: &[Printer],
    context: &Context<'_>,
    found: &mut Collector,
) -> Vec<Version> {
    let mut versions = Vec::new();
    for (name, spec) in &draft.versions {
        let root = match (&spec.message, &spec.fields) {
            (Some(text), _) => named(text, context, found),
            (None, Some(_)) => context
                .made
                .root(&draft.name, name)
                .and_then(|root| context.messages.get(root)),
            (None, None) => Some(own),
        };
        let Some(root) = root else { continue };
        let text = spec.message.as_ref().unwrap_or(&spec.name);
        let Some(parts) = parts(text, root, found) else {
            continue;
        };
        let shapes = versions::Shapes {
            here: root,
            own,
            messages: context.messages,
            enums: context.enums,
        };
        let mut version = Version {
            storage_version_hash: storage_version::hash(&draft.group, name, &draft.name),
            name: name.clone(),
            served: spec.served.is_none_or(|served| served.value),
            deprecated: spec.deprecated.as_ref().map(|text| text.value.clone()),
            root: root.name.clone(),
            spec: parts.spec,
            status: parts.status,
            printer_columns: Vec::new(),
            map: versions::map(spec, &draft.version, &shapes, found),
        };
        let shown = |printer: &Printer| version.here(&printer.path).map(|path| printer.at(&path));
        version.printer_columns = printer_columns(draft, printers.iter().filter_map(shown));
        versions.push(version);
    }
    versions
}

fn refuse_taken(kind: &Kind, draft: &Draft<'_>, objects: &mut SqlObjects, found: &mut Collector) {
    let spec = draft.spec;
    // Of two kinds with one table, which was reported, every key has a double.
    if objects.get(kind.table.as_str()) != Some(&spec.name.span) {
        return;
    }
    for key in &kind.keys {
        let named_for = |column: &&ColumnSpec| {
            let suffix = key.name.as_str().strip_prefix(kind.table.as_str());
            suffix.is_some_and(|suffix| suffix[1..] == column.name.value)
        };
        let span = spec.columns.iter().find(named_for);
        let span = span.map_or(spec.name.span, |column| column.name.span);
        if let Some(first) = objects.insert(key.name.to_string(), span) {
            let products = products_naming_keys_among_tables();
            found.push(errors::duplicate_sql_name(key.name.as_str(), &products, span, first));
        }
    }
}

fn scope(draft: &Draft<'_>) -> Scope {
    match (&draft.manifest, &draft.spec.scope) {
        (Some(manifest), _) => manifest.scope,
        (None, Some(text)) if text.value == Scope::Cluster.as_str() => Scope::Cluster,
        (None, _) => Scope::Namespaced,
    }
}

fn shape(draft: &Draft<'_>, made: &Made) -> Shape {
    let proto = made.import_path(draft).map(str::to_owned);
    match (&draft.spec.crd, proto) {
        (Some(manifest), Some(proto)) => Shape::Crd {
            manifest: manifest.value.clone(),
            proto,
        },
        (None, Some(proto)) => Shape::Inline(proto),
        (_, None) => Shape::Message,
    }
}

fn doc(draft: &Draft<'_>, root: &Message) -> String {
    let declared = draft.spec.doc.as_ref().map(|doc| doc.value.trim());
    match declared {
        Some(doc) if !doc.is_empty() => doc.to_owned(),
        _ if !root.doc.is_empty() => root.doc.clone(),
        _ => format!("Objects of kind {}.", draft.name),
    }
}

/// What `kubectl get` shows: what an existing CRD says, or the columns with a heading and the age, which kubectl shows
/// for every built-in kind, and for custom ones only if they say so.
fn printer_columns(draft: &Draft<'_>, declared: impl Iterator<Item = PrinterColumn>) -> Vec<PrinterColumn> {
    if let Some(manifest) = &draft.manifest {
        return manifest.printer_columns.clone();
    }
    let age = PrinterColumn {
        name: "Age".to_owned(),
        ty: PrinterType::Date,
        format: String::new(),
        doc: String::new(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".to_owned(),
    };
    declared.chain([age]).collect()
}
