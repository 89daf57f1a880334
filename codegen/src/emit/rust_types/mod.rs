//! Rust types: one per message, made by prost-build, with serde attributes for Kubernetes JSON and, for each kind, a
//! root type for typed clients. Everything goes below `generated/src/types/`: one directory per kind, `shared` for the
//! rest. How columns are read from these types is not known here.

mod attributes;
mod by_hand;
mod generate;
pub(crate) mod ident;
pub(crate) mod placement;
mod tidy;

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::{EnumName, FieldType, Message, MessageName, Model, QualifiedName};
use generate::Declarations;
use placement::{Home, Placement, Reached};
use tidy::Imports;

pub(crate) use attributes::has_presence;

const DIRECTORY: &str = "generated/src/types";

/// Before the names of modules that belong to no kind.
const SHARED: &str = "shared::";

/// All files of Rust types. A kind's `mod.rs` also has a module `indexed`, which another emitter fills.
pub(crate) fn emit(model: &Model, placement: &Placement) -> Artifacts {
    let declarations = Declarations::new(model);
    let mut in_objects = Reached::default();
    for kind in &model.kinds {
        let starts = [Some(&kind.spec), kind.status.message()];
        in_objects.walk(model, starts.into_iter().flatten());
    }
    let mut homes: BTreeMap<Home, File> = BTreeMap::new();
    let files = model.descriptors.file.iter();
    for file in files.filter(|file| placement::has_types(file)) {
        for (name, item) in generate::items(model, placement, &declarations, &in_objects, file) {
            let home = placement.home(&name).expect("what is printed has a home");
            let target = homes.entry(home.clone()).or_default();
            target.required.extend(elsewhere(model, placement, &name, home));
            target.items.push(item);
        }
    }
    let mut artifacts = modules(model, homes.keys());
    for (home, file) in homes {
        artifacts.insert(path(&home), file.print(model, &home));
    }
    artifacts
}

/// What goes into one file.
#[derive(Default)]
struct File {
    required: BTreeSet<String>,
    items: Vec<Item>,
}

impl File {
    fn print(mut self, model: &Model, home: &Home) -> String {
        let mut imports = Imports::of(&self.items);
        self.required.into_iter().for_each(|path| imports.require(path));
        self.items.iter_mut().for_each(|item| imports.shorten(item));
        let own = own_module(home);
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
        format!("// {HEADER}\n\n//! {}\n\n{text}", about(model, home))
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
fn elsewhere(model: &Model, placement: &Placement, name: &str, home: &Home) -> Vec<String> {
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
        .filter(|top| placement.home(top).is_some_and(|other| other != home))
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
fn own_module(home: &Home) -> &str {
    match home.part {
        Some(part) => part.module(),
        None => home.module.trim_start_matches(SHARED),
    }
}

fn path(home: &Home) -> RelativePath {
    let module = home.module.replace("::", "/");
    RelativePath::new(match home.part {
        Some(part) => format!("{DIRECTORY}/{module}/{}.rs", part.module()),
        None => format!("{DIRECTORY}/{module}.rs"),
    })
}

fn about(model: &Model, home: &Home) -> String {
    let kind = model.kinds.iter().find(|kind| kind.module == home.module);
    match (kind, home.part) {
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

/// The `mod.rs` files.
fn modules<'a>(model: &Model, homes: impl Iterator<Item = &'a Home>) -> Artifacts {
    let mut parts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut shared = Vec::new();
    for home in homes {
        match home.part {
            Some(part) => parts.entry(&home.module).or_default().push(part.module()),
            None => shared.push(home.module.trim_start_matches(SHARED)),
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
