//! Where every message and enum lives in Rust: the module of a kind, a shared module, or `wire` for the types that
//! are written by hand. Knows nothing of how types are printed.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::FileDescriptorProto;

use super::{by_hand, ident};
use crate::model::{EnumName, FieldType, Kind, Message, MessageName, Model, QualifiedName};

/// A file of Rust types, below `generated/src/types/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Location {
    /// `pipeline_run`, or `shared::user`.
    pub(crate) module: String,
    /// Part of a kind's module; a shared module has none.
    pub(crate) part: Option<Part>,
}

/// The files of a kind's module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// The enums that several messages may use.
    Enums,
    /// The spec and what only it is made of.
    Spec,
    /// The status and what it is made of beyond the spec's messages.
    Status,
    /// What the kind's file declares besides.
    Other,
}

impl Part {
    /// Name of the file's module.
    pub(crate) const fn module(self) -> &'static str {
        match self {
            Self::Enums => "enums",
            Self::Spec => "spec",
            Self::Status => "status",
            Self::Other => "other",
        }
    }
}

/// Where everything lives.
#[derive(Debug)]
pub(crate) struct Placement {
    /// Rust paths of messages and enums with hand-written types, by full name.
    by_hand: BTreeMap<String, String>,
    /// Locations of top-level messages and enums, by full name.
    locations: BTreeMap<String, Location>,
}

impl Placement {
    /// Finds a location for every message and enum of the model.
    pub(crate) fn new(model: &Model) -> Self {
        let mut placement = Self {
            by_hand: by_hand::paths(),
            locations: BTreeMap::new(),
        };
        let roots: Vec<String> = model
            .kinds
            .iter()
            .flat_map(whole_objects)
            .flat_map(|object| [object.root.full().to_owned(), list_name(object.root)])
            .collect();
        for root in roots {
            placement.by_hand.insert(root, String::new());
        }
        for kind in &model.kinds {
            placement.place(model, kind.spec.full(), kind, Part::Spec);
            if let Some(status) = kind.status.message() {
                placement.place(model, status.full(), kind, Part::Status);
            }
        }
        for kind in &model.kinds {
            placement.place_kind(model, kind);
        }
        let modules = shared_modules(&model.descriptors.file);
        let owners = owners(model);
        for file in &model.descriptors.file {
            placement.place_rest(model, file, owners.get(file.name()).copied(), &modules);
        }
        for object in model.kinds.iter().flat_map(whole_objects) {
            placement.fill_in_root(&object);
        }
        placement
    }

    /// Whole objects and their lists are one generic type, which only now can be named.
    fn fill_in_root(&mut self, object: &WholeObject<'_>) {
        let spec = self.rust_path(object.spec.full());
        let status = object.status.map_or_else(
            || "crate::wire::NoStatus".to_owned(),
            |status| self.rust_path(status.full()),
        );
        let root = format!("crate::wire::Root<{spec}, {status}>");
        let list = format!("crate::wire::List<{root}>");
        self.by_hand.insert(object.root.full().to_owned(), root);
        self.by_hand.insert(list_name(object.root), list);
    }

    /// The location of a top-level message or enum; `None` for hand-written ones.
    pub(crate) fn location(&self, full_name: &str) -> Option<&Location> {
        self.locations.get(full_name)
    }

    /// The path of a hand-written type.
    pub(crate) fn by_hand(&self, full_name: &str) -> Option<&str> {
        self.by_hand.get(full_name).map(String::as_str)
    }

    /// The whole Rust path of a message or enum, nested ones included.
    ///
    /// # Panics
    /// If the name is not of this model.
    pub(crate) fn rust_path(&self, full_name: &str) -> String {
        if let Some(path) = self.by_hand.get(full_name) {
            return path.clone();
        }
        let (top, nested) = self.split(full_name).expect("every message of the model has a home");
        let module = &self.locations[top].module;
        format!("crate::types::{module}::{}", nested_path(top, nested))
    }

    /// The path of a message or enum as seen from the module of its own file.
    ///
    /// # Panics
    /// If the name is hand-written or not of this model.
    pub(crate) fn local_path(&self, full_name: &str) -> String {
        let (top, nested) = self.split(full_name).expect("every message of the model has a home");
        nested_path(top, nested)
    }

    /// How many modules deep prost-build puts a message: one for each message that it is nested in.
    pub(crate) fn nesting(&self, full_name: &str) -> usize {
        match self.split(full_name) {
            Some((_, "")) | None => 0,
            Some((_, nested)) => nested.split('.').count(),
        }
    }

    /// The top-level name that `full_name` is or is nested in, and the rest.
    pub(crate) fn split<'a>(&self, full_name: &'a str) -> Option<(&'a str, &'a str)> {
        let ends = full_name.match_indices('.').map(|(at, _)| at);
        let found = ends
            .chain([full_name.len()])
            .find(|end| self.locations.contains_key(&full_name[..*end]))?;
        Some((&full_name[..found], full_name[found..].trim_start_matches('.')))
    }

    /// What its spec and status reach in the kind's own file. The first kind to reach a message keeps it.
    fn place_kind(&mut self, model: &Model, kind: &Kind) {
        let file = &model.message(&kind.root).file;
        let starts = [(Part::Spec, Some(&kind.spec)), (Part::Status, kind.status.message())];
        for (part, start) in starts {
            let mut reached = Reached::default();
            reached.walk(model, start.into_iter());
            for message in &reached.messages {
                if model.message(message).file == *file {
                    self.place(model, message.full(), kind, part);
                }
            }
            for name in &reached.enums {
                if model.enumeration(name).file == *file {
                    self.place(model, name.full(), kind, Part::Enums);
                }
            }
        }
    }

    fn place(&mut self, model: &Model, name: &str, kind: &Kind, part: Part) {
        let is_nested = name.rsplit_once('.').is_some_and(|(outer, _)| is_message(model, outer));
        if !is_nested && !self.by_hand.contains_key(name) {
            let module = kind.module.clone();
            let part = Some(part);
            self.locations
                .entry(name.to_owned())
                .or_insert(Location { module, part });
        }
    }

    fn place_rest(
        &mut self,
        model: &Model,
        file: &FileDescriptorProto,
        owner: Option<&Kind>,
        shared: &BTreeMap<String, String>,
    ) {
        if !has_types(file) {
            return;
        }
        let messages = file.message_type.iter().map(|message| message.name());
        let enums = file.enum_type.iter().map(|message| message.name());
        for (name, part) in messages
            .map(|name| (name, Part::Other))
            .chain(enums.map(|name| (name, Part::Enums)))
        {
            let name = qualified(file.package(), name);
            match owner {
                Some(kind) => self.place(model, &name, kind, part),
                None if self.by_hand.contains_key(&name) => {}
                None => {
                    let module = shared[file.name()].clone();
                    let location = Location { module, part: None };
                    self.locations.entry(name).or_insert(location);
                }
            }
        }
    }
}

/// The first kind of each file that declares one.
fn owners(model: &Model) -> BTreeMap<&str, &Kind> {
    let declared = model.kinds.iter().rev();
    declared
        .map(|kind| (model.message(&kind.root).file.as_str(), kind))
        .collect()
}

/// `model_spec::PredictionResult` for a message nested in the top-level `ModelSpec`.
fn nested_path(top: &str, nested: &str) -> String {
    let top = top.rsplit('.').next().unwrap_or(top);
    if nested.is_empty() {
        return ident::ty(top);
    }
    let names: Vec<&str> = std::iter::once(top).chain(nested.split('.')).collect();
    let (last, outer) = names.split_last().expect("at least the top-level name");
    let mut path: Vec<String> = outer.iter().map(|name| ident::field(name)).collect();
    path.push(ident::ty(last));
    path.join("::")
}

/// Whether Rust types are printed for a file: the types of Google's files are written by hand or not needed.
pub(crate) fn has_types(file: &FileDescriptorProto) -> bool {
    file.package() != "google.protobuf"
}

/// Full names of the top-level messages and enums of a file.
pub(crate) fn declared(file: &FileDescriptorProto) -> impl Iterator<Item = String> {
    let messages = file.message_type.iter().map(|message| message.name());
    let enums = file.enum_type.iter().map(|enumeration| enumeration.name());
    messages.chain(enums).map(|name| qualified(file.package(), name))
}

/// A full name from a package, which may be empty, and a name in it.
pub(crate) fn qualified(package: &str, name: &str) -> String {
    match package {
        "" => name.to_owned(),
        _ => format!("{package}.{name}"),
    }
}

fn is_message(model: &Model, name: &str) -> bool {
    MessageName::parse(name).is_ok_and(|name| model.messages.contains_key(&name))
}

fn list_name(root: &MessageName) -> String {
    format!("{root}List")
}

/// The messages of a kind's objects in one version.
#[derive(Clone, Copy)]
pub(crate) struct WholeObject<'a> {
    root: &'a MessageName,
    pub(crate) spec: &'a MessageName,
    pub(crate) status: Option<&'a MessageName>,
}

/// In every version, the kind's own first.
pub(crate) fn whole_objects(kind: &Kind) -> impl Iterator<Item = WholeObject<'_>> {
    let own = WholeObject {
        root: &kind.root,
        spec: &kind.spec,
        status: kind.status.message(),
    };
    let others = kind.versions.iter().map(|version| WholeObject {
        root: &version.root,
        spec: &version.spec,
        status: version.status.message(),
    });
    std::iter::once(own).chain(others)
}

/// One module per file that belongs to no kind, named after the file. Kubernetes calls every file `generated.proto`,
/// and other names may meet too: those are named after the end of their package.
fn shared_modules(files: &[FileDescriptorProto]) -> BTreeMap<String, String> {
    let stem = |file: &FileDescriptorProto| {
        let name = file.name().rsplit('/').next().unwrap_or_default();
        ident::field(name.trim_end_matches(".proto"))
    };
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for file in files {
        *count.entry(stem(file)).or_default() += 1;
    }
    let name = |file: &FileDescriptorProto| {
        let stem = stem(file);
        if count[&stem] == 1 && stem != "generated" {
            return stem;
        }
        let segments: Vec<&str> = file.package().split('.').collect();
        let package = segments[segments.len().saturating_sub(2)..].join("_");
        if stem == "generated" {
            ident::field(&package)
        } else {
            ident::field(&format!("{package}_{stem}"))
        }
    };
    files
        .iter()
        .map(|file| (file.name().to_owned(), format!("shared::{}", name(file))))
        .collect()
}

/// Messages and enums that are reached from somewhere through fields.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// Messages, the starts included.
    pub(crate) messages: BTreeSet<MessageName>,
    /// Enums.
    pub(crate) enums: BTreeSet<EnumName>,
}

impl Reached {
    /// Adds everything that `starts` reach.
    pub(crate) fn walk<'a>(&mut self, model: &Model, starts: impl Iterator<Item = &'a MessageName>) {
        let mut open: Vec<MessageName> = starts.cloned().collect();
        while let Some(name) = open.pop() {
            let message = model.message(&name);
            if self.messages.insert(name) {
                self.visit(message, &mut open);
            }
        }
    }

    fn visit(&mut self, message: &Message, open: &mut Vec<MessageName>) {
        for field in &message.fields {
            match &field.ty {
                FieldType::Message(name) => open.push(name.clone()),
                FieldType::Enum(name) => {
                    self.enums.insert(name.clone());
                }
                FieldType::Scalar(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_) => {}
            }
        }
    }
}
