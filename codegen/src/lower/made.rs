//! Messages that no person wrote as `.proto`: from inline fields and from CRD manifests. They are printed as a
//! `.proto` file, with numbers from the lock, and then go the way of all others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::draft::Draft;
use super::manifest::Manifest;
use super::protos::{META_PROTO, Protos};
use super::shape::{MadeEnum, MadeField, MadeKind, MadeMessage, camel_case};
use super::{inline, manifest};
use crate::artifact::HEADER;
use crate::diag::{Collector, messages};
use crate::lock::Lock;
use crate::model::{ApiVersion, KindName, MessageName, snake_case};
use crate::source::Text;
use crate::spec::FieldsSpec;

/// What was made: a file and a root message per kind and version.
#[derive(Default)]
pub(super) struct Made {
    versions: BTreeMap<(KindName, ApiVersion), (MessageName, String)>,
    texts: BTreeMap<String, String>,
}

impl Made {
    /// The message that is the whole object in a version.
    pub(super) fn root(&self, kind: &KindName, version: &ApiVersion) -> Option<&MessageName> {
        let key = (kind.clone(), version.clone());
        self.versions.get(&key).map(|(root, _)| root)
    }

    /// The import path of the file of a kind's own version.
    pub(super) fn import_path(&self, draft: &Draft<'_>) -> Option<&str> {
        let key = (draft.name.clone(), draft.version.clone());
        self.versions.get(&key).map(|(_, path)| path.as_str())
    }

    /// The files by import path.
    pub(super) fn into_texts(self) -> BTreeMap<String, String> {
        self.texts
    }
}

/// A shape that no person wrote as `.proto`, and where it is declared.
struct DerivedShape<'a> {
    draft: &'a Draft<'a>,
    version: &'a ApiVersion,
    declared: &'a Text,
    shape: ShapeSource<'a>,
}

enum ShapeSource<'a> {
    Fields(&'a FieldsSpec),
    Manifest(&'a Manifest),
}

/// The shapes of a kind that are to be made: of its own version first.
fn derived_shapes<'a>(draft: &'a Draft<'a>) -> Vec<DerivedShape<'a>> {
    let own = match (&draft.spec.fields, &draft.manifest) {
        (Some(fields), _) => Some(ShapeSource::Fields(fields)),
        (None, Some(manifest)) => Some(ShapeSource::Manifest(manifest)),
        (None, None) => None,
    };
    let own = own.map(|shape| (&draft.version, &draft.spec.name, shape));
    let others = draft.versions.iter().filter_map(|(version, spec)| {
        let fields = spec.fields.as_ref()?;
        Some((version, &spec.name, ShapeSource::Fields(fields)))
    });
    own.into_iter()
        .chain(others)
        .map(|(version, declared, shape)| DerivedShape {
            draft,
            version,
            declared,
            shape,
        })
        .collect()
}

/// Makes the messages of every kind that has none in `proto/`.
pub(super) fn make(drafts: &[Draft<'_>], protos: &mut Protos, lock: &mut Lock, found: &mut Collector) -> Made {
    let mut made = Made::default();
    let derived: Vec<DerivedShape<'_>> = drafts.iter().flat_map(derived_shapes).collect();
    if derived.is_empty() {
        return made;
    }
    let index = protos.index();
    let mut names: BTreeSet<String> = index.names().map(str::to_owned).collect();
    for shape in &derived {
        let DerivedShape { draft, declared, .. } = shape;
        let package = package(draft, shape.version);
        let kind = match shape.shape {
            ShapeSource::Fields(fields) => inline::make(draft.name.as_str(), &package, fields, &index, found),
            ShapeSource::Manifest(manifest) => Some(manifest::make(manifest, &draft.name, &package, declared.span)),
        };
        let Some(kind) = kind else { continue };
        let import_path = format!(
            "{}/{}.proto",
            package.replace('.', "/"),
            snake_case(draft.name.as_str())
        );
        let taken = ["", "List", "Spec", "Status"]
            .map(|suffix| format!("{package}.{}{suffix}", draft.name))
            .into_iter()
            .find(|name| !names.insert(name.clone()));
        if let Some(name) = taken {
            found.push(messages::made_message_exists(declared, &name));
            continue;
        }
        if protos.contains(&import_path) {
            found.push(messages::made_file_exists(declared, &import_path));
            continue;
        }
        let text = print(draft, &package, &kind, lock, found);
        match protos.add(&import_path, &text) {
            Ok(()) => {
                let root = MessageName::parse(&format!("{package}.{}", draft.name));
                let root = root.expect("package and kind are valid names");
                let key = (draft.name.clone(), shape.version.clone());
                made.versions.insert(key, (root, import_path.clone()));
                made.texts.insert(import_path, text);
            }
            // After other errors this one only follows from them.
            Err(error) if found.is_empty() => {
                found.push(messages::made_proto_error(declared, &error));
            }
            Err(_) => {}
        }
    }
    made
}

/// `michelangelo.api` and `v2` to `michelangelo.api.v2`; protobuf names know no dashes and start with a letter.
fn package(draft: &Draft<'_>, version: &ApiVersion) -> String {
    let group = draft.group.as_str().replace('-', "_");
    let segments = group.split('.').map(|segment| {
        if segment.starts_with(|c: char| c.is_ascii_digit()) {
            format!("_{segment}")
        } else {
            segment.to_owned()
        }
    });
    let segments: Vec<String> = segments.chain([version.to_string()]).collect();
    segments.join(".")
}

fn print(draft: &Draft<'_>, package: &str, kind: &MadeKind, lock: &mut Lock, found: &mut Collector) -> String {
    let name = &draft.name;
    let mut printer = Printer {
        text: String::new(),
        lock,
        found,
    };
    printer.line(0, &format!("// {HEADER}"));
    printer.line(0, "syntax = \"proto3\";\n");
    printer.line(0, &format!("package {package};\n"));
    let mut imports = kind.imports.clone();
    imports.insert(META_PROTO.to_owned());
    for import in imports {
        printer.line(0, &format!("import \"{import}\";"));
    }
    printer.message(0, package, &kind.spec);
    if let Some(status) = &kind.status {
        printer.message(0, package, status);
    }
    let doc = draft.spec.doc.as_ref().map(|doc| doc.value.as_str());
    printer.root(name.as_str(), doc.unwrap_or_default(), kind.status.is_some());
    printer.text
}

struct Printer<'a> {
    text: String,
    lock: &'a mut Lock,
    found: &'a mut Collector,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, line: &str) {
        let indent = "  ".repeat(depth);
        writeln!(self.text, "{indent}{line}").expect("writing to a String cannot fail");
    }

    fn doc(&mut self, depth: usize, doc: &str) {
        for line in doc.trim().lines() {
            self.line(depth, format!("// {}", line.trim()).trim_end());
        }
    }

    fn message(&mut self, depth: usize, scope: &str, message: &MadeMessage) {
        let full_name = format!("{scope}.{}", message.name);
        self.text.push('\n');
        self.doc(depth, &message.doc);
        self.line(depth, &format!("message {} {{", message.name));
        let live: BTreeSet<&str> = message.fields.iter().map(|field| field.name.as_str()).collect();
        let retired = self.lock.retired_tags(&full_name, &live);
        let retired = retired.into_iter().map(|(number, name)| (number.to_string(), name));
        self.reserved(depth + 1, retired.collect());
        for field in &message.fields {
            self.field(depth + 1, &full_name, field);
        }
        for nested in &message.enums {
            self.enumeration(depth + 1, &full_name, nested);
        }
        for nested in &message.messages {
            self.message(depth + 1, &full_name, nested);
        }
        self.line(depth, "}");
    }

    fn field(&mut self, depth: usize, message: &str, field: &MadeField) {
        let number = match self.lock.assign_tag(message, &field.name, &field.ty) {
            Ok(number) => number,
            Err(conflict) => {
                let (number, locked) = (conflict.number, &conflict.locked_type);
                let (name, span) = (&field.json_name, field.span);
                let error = messages::tag_type_changed(name, &field.ty, span, number, locked, conflict.span);
                self.found.push(error);
                conflict.number
            }
        };
        let option = if camel_case(&field.name) == field.json_name {
            String::new()
        } else {
            format!(" [json_name = \"{}\"]", field.json_name)
        };
        self.doc(depth, &field.doc);
        self.line(depth, &format!("{} {} = {number}{option};", field.ty, field.name));
    }

    fn enumeration(&mut self, depth: usize, message: &str, declared: &MadeEnum) {
        let full_name = format!("{message}.{}", declared.name);
        let mut values: Vec<(i32, &str)> = declared
            .values
            .iter()
            .map(|value| (self.lock.assign_value(&full_name, value), value.as_str()))
            .collect();
        values.sort_unstable();
        let live: BTreeSet<&str> = declared.values.iter().map(String::as_str).collect();
        let retired = self.lock.retired_values(&full_name, &live);
        if let Some((0, first)) = retired.first() {
            self.found.push(messages::first_value_removed(first, declared.span));
        }
        self.text.push('\n');
        self.line(depth, &format!("enum {} {{", declared.name));
        let retired = retired.into_iter().map(|(number, name)| (number.to_string(), name));
        self.reserved(depth + 1, retired.collect());
        for (number, value) in values {
            self.line(depth + 1, &format!("{value} = {number};"));
        }
        self.line(depth, "}");
    }

    fn reserved(&mut self, depth: usize, retired: Vec<(String, String)>) {
        for (number, name) in retired {
            self.line(depth, &format!("reserved {number}; // {name}"));
        }
    }

    /// The whole object and its list, with the numbers that all kinds share.
    fn root(&mut self, kind: &str, doc: &str, has_status: bool) {
        const META: &str = ".k8s.io.apimachinery.pkg.apis.meta.v1";
        self.text.push('\n');
        self.doc(0, doc);
        self.line(0, &format!("message {kind} {{"));
        self.line(1, &format!("{META}.TypeMeta type_meta = 1;"));
        self.line(1, &format!("{META}.ObjectMeta metadata = 2;"));
        self.line(1, &format!("{kind}Spec spec = 3;"));
        if has_status {
            self.line(1, &format!("{kind}Status status = 4;"));
        }
        self.line(0, "}\n");
        self.line(0, &format!("// A list of {kind} objects."));
        self.line(0, &format!("message {kind}List {{"));
        self.line(1, &format!("{META}.TypeMeta type_meta = 1;"));
        self.line(1, &format!("{META}.ListMeta metadata = 2;"));
        self.line(1, &format!("repeated {kind} items = 3;"));
        self.line(0, "}");
    }
}
