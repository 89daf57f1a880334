//! Rust types: one per message, made by prost-build, with serde attributes for Kubernetes JSON and, for each kind, a
//! root type for typed clients. Everything goes below `generated/src/types/`: one directory per kind, `shared` for the
//! rest. How columns are read from these types is not known here.

mod by_hand;

pub(crate) mod ident;

pub(crate) mod placement;

mod attributes;

mod tidy;

mod generate;

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use prost_types::FileDescriptorProto;
use syn::Item;

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::{EnumName, FieldType, Kind, Message, MessageName, Model, QualifiedName};
use generate::Declarations;
use placement::{Location, Placement, Reached};
use tidy::Imports;

pub(crate) use attributes::has_presence;

const DIRECTORY: &str = "generated/src/types";

/// Before the names of modules that belong to no kind.
const SHARED: &str = "shared::";

/// Printing is most of the generator's work: it is shared out among this many threads.
const SHARES: usize = 2;

/// All files of Rust types. A kind's `mod.rs` also has a module `indexed`, which another emitter fills.
pub(crate) fn emit(model: &Model, placement: &Placement) -> Artifacts {
    let printer = Printer::new(model, placement);
    let printer = &printer;
    let mut artifacts = Artifacts::new();
    let mut locations = BTreeSet::new();
    thread::scope(|scope| {
        let shares: Vec<_> = (0..SHARES)
            .map(|share| scope.spawn(move || printer.print(share)))
            .collect();
        for share in shares {
            let printed = share.join().expect("printing does not panic");
            for (location, text) in printed {
                artifacts.insert(path(&location), text);
                locations.insert(location);
            }
        }
    });
    artifacts.extend(modules(model, locations.iter()));
    artifacts
}

/// What printing any file needs to know.
struct Printer<'a> {
    model: &'a Model,
    placement: &'a Placement,
    declarations: Declarations<'a>,
    in_objects: Reached,
    /// The kinds by their module.
    kinds: BTreeMap<&'a str, &'a Kind>,
}

impl<'a> Printer<'a> {
    fn new(model: &'a Model, placement: &'a Placement) -> Self {
        let mut in_objects = Reached::default();
        for object in model.kinds.iter().flat_map(placement::whole_objects) {
            let starts = [Some(object.spec), object.status];
            in_objects.walk(model, starts.into_iter().flatten());
        }
        Self {
            model,
            placement,
            declarations: Declarations::new(model),
            in_objects,
            kinds: model.kinds.iter().map(|kind| (kind.module.as_str(), kind)).collect(),
        }
    }

    /// The text of every Rust file of that share. The items of a file never leave their thread.
    fn print(&self, share: usize) -> Vec<(Location, String)> {
        let Self {
            model,
            placement,
            declarations,
            in_objects,
            ..
        } = self;
        let mut files: BTreeMap<&Location, File> = BTreeMap::new();
        for proto in model
            .descriptors
            .file
            .iter()
            .filter(|proto| self.has_any_of(share, proto))
        {
            for (name, item) in generate::items(model, placement, declarations, in_objects, proto) {
                let location = placement.location(&name).expect("what is printed has a home");
                if share_of(location) != share {
                    continue;
                }
                let file = files.entry(location).or_default();
                file.required.extend(elsewhere(model, placement, &name, location));
                file.items.push(item);
            }
        }
        let print =
            |(location, file): (&Location, File)| (location.clone(), file.print(location, &self.about(location)));
        files.into_iter().map(print).collect()
    }

    /// Whether a `.proto` file has types for some file of that share.
    fn has_any_of(&self, share: usize, proto: &FileDescriptorProto) -> bool {
        placement::has_types(proto)
            && placement::declared(proto)
                .filter_map(|name| self.placement.location(&name))
                .any(|location| share_of(location) == share)
    }

    fn about(&self, location: &Location) -> String {
        match (self.kinds.get(location.module.as_str()), location.part) {
            (Some(kind), Some(part)) => {
                let what = match part {
                    placement::Part::Enums => "Enums",
                    placement::Part::Spec => "The spec",
                    placement::Part::Status => "The status",
                    placement::Part::Other => "Further messages",
                };
                format!("{what} of `{}`.", kind.name)
            }
            _ => "Messages that several kinds use.".to_owned(),
        }
    }
}

/// All files of a module are of one share.
fn share_of(location: &Location) -> usize {
    location.module.bytes().map(usize::from).sum::<usize>() % SHARES
}

/// What goes into one file.
#[derive(Default)]
struct File {
    required: BTreeSet<String>,
    items: Vec<Item>,
}

impl File {
    fn print(mut self, location: &Location, about: &str) -> String {
        let mut imports = Imports::of(&self.items);
        self.required.into_iter().for_each(|path| imports.require(path));
        self.items.iter_mut().for_each(|item| imports.shorten(item));
        let own = own_module(location);
        let items = self.items.iter_mut();
        items.for_each(|item| tidy::expect_inception(item, own));
        let mut uses_wire = false;
        let print = |item: Item| {
            let is_module = matches!(item, Item::Mod(_));
            let text = unparse(vec![item]);
            uses_wire |= !is_module && tidy::names_wire(&text);
            text
        };
        let mut sections: Vec<String> = self.items.into_iter().map(print).collect();
        let imports = imports.into_items(uses_wire);
        if !imports.is_empty() {
            sections.insert(0, unparse(imports));
        }
        let text = sections.join("\n");
        format!("// {HEADER}\n\n//! {about}\n\n{text}")
    }
}

fn unparse(items: Vec<Item>) -> String {
    prettyplease::unparse(&syn::File {
        shebang: None,
        frontmatter: None,
        attrs: Vec::new(),
        items,
    })
}

/// Types of the same `.proto` file that live in another Rust file; prost-build names them as if they did not.
fn elsewhere(model: &Model, placement: &Placement, name: &str, location: &Location) -> Vec<String> {
    let Ok(message) = MessageName::parse(name) else {
        return Vec::new();
    };
    let Some(message) = model.messages.get(&message) else {
        return Vec::new();
    };
    let prefix = format!("{name}.");
    let after = model.messages.range(message.name.clone()..).skip(1);
    let nested = after
        .map(|(_, message)| message)
        .take_while(|message| message.name.full().starts_with(&prefix));
    std::iter::once(message)
        .chain(nested)
        .flat_map(|message| same_file(model, message))
        .filter_map(|name| placement.split(&name).map(|(top, _)| top.to_owned()))
        .filter(|top| placement.location(top).is_some_and(|other| other != location))
        .map(|top| placement.rust_path(&top))
        .collect()
}

fn same_file(model: &Model, message: &Message) -> Vec<String> {
    let in_file = |name: &str, file: &str| (message.file == file).then(|| name.to_owned());
    let message_in_file = |name: &MessageName| in_file(name.full(), &model.message(name).file);
    let enum_in_file = |name: &EnumName| in_file(name.full(), &model.enumeration(name).file);
    let fields = message.fields.iter();
    fields
        .filter_map(|field| match &field.ty {
            FieldType::Message(name) => message_in_file(name),
            FieldType::Enum(name) => enum_in_file(name),
            FieldType::Scalar(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_) => None,
        })
        .collect()
}

/// The name of a file's module.
fn own_module(location: &Location) -> &str {
    match location.part {
        Some(part) => part.module(),
        None => location.module.trim_start_matches(SHARED),
    }
}

fn path(location: &Location) -> RelativePath {
    let module = location.module.replace("::", "/");
    RelativePath::new(match location.part {
        Some(part) => format!("{DIRECTORY}/{module}/{}.rs", part.module()),
        None => format!("{DIRECTORY}/{module}.rs"),
    })
}

/// The `mod.rs` files.
fn modules<'a>(model: &Model, locations: impl Iterator<Item = &'a Location>) -> Artifacts {
    let mut parts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut shared = Vec::new();
    for location in locations {
        match location.part {
            Some(part) => parts.entry(&location.module).or_default().push(part.module()),
            None => shared.push(location.module.trim_start_matches(SHARED)),
        }
    }
    let mut artifacts = Artifacts::new();
    let mut insert = |path: &str, text: String| {
        artifacts.insert(RelativePath::new(format!("{DIRECTORY}/{path}")), text);
    };
    for kind in &model.kinds {
        let files = parts.get(kind.module.as_str()).cloned().unwrap_or_default();
        let mut text = format!("// {HEADER}\n\n//! `{}`: {}\n\n", kind.name, kind.doc);
        let mut names: Vec<&str> = files.iter().copied().chain(["indexed"]).collect();
        names.sort_unstable();
        names.iter().for_each(|name| text.push_str(&format!("mod {name};\n")));
        text.push('\n');
        let mut files = files;
        files.sort_unstable();
        files
            .iter()
            .for_each(|name| text.push_str(&format!("pub use {name}::*;\n")));
        insert(&format!("{}/mod.rs", kind.module), text);
    }
    let mut text = format!("// {HEADER}\n\n//! Messages that several kinds use.\n\n");
    shared
        .iter()
        .for_each(|name| text.push_str(&format!("pub mod {name};\n")));
    insert("shared/mod.rs", text);
    let mut text = format!("// {HEADER}\n\n//! One Rust type per message: a module per kind, and what they share.\n\n");
    let mut names: Vec<&str> = model.kinds.iter().map(|kind| kind.module.as_str()).collect();
    names.push("shared");
    names.sort_unstable();
    names
        .iter()
        .for_each(|name| text.push_str(&format!("pub mod {name};\n")));
    insert("mod.rs", text);
    artifacts
}
