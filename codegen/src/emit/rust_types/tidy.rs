//! prost-build's text as a person would have written it: one `derive` per type, types by the names that are in scope
//! or imported. Changes no meaning; everything else of the text stays.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Fields, GenericArgument, ImplItem, Item, ItemMod, Path, PathArguments, ReturnType, Token, Type,
    TypePath, parse_quote,
};

/// Paths that prost-build writes in full, and how they are written here.
const SHORT: [(&str, &str); 5] = [
    ("prost::alloc::string::String", "String"),
    ("prost::alloc::vec::Vec", "Vec"),
    ("prost::alloc::boxed::Box", "Box"),
    ("prost::alloc::collections::BTreeMap", "std::collections::BTreeMap"),
    ("core::option::Option", "Option"),
];

/// Where generated code finds the hand-written types.
const WIRE: &str = "crate::wire";

/// Shortens what is in the prelude and merges derives, in an item and in what is nested in it.
pub(crate) fn tidy(item: &mut Item) {
    match item {
        Item::Struct(item) => {
            merge_derives(&mut item.attrs);
            item.fields.iter_mut().for_each(|it| docs_first(&mut it.attrs));
        }
        Item::Enum(item) => {
            merge_derives(&mut item.attrs);
            item.variants.iter_mut().for_each(|it| docs_first(&mut it.attrs));
        }
        Item::Mod(item) => contents(item).for_each(tidy),
        _ => {}
    }
    each_type(item, &mut |path| {
        let found = SHORT.iter().find(|(long, _)| *long == text(path));
        if let Some((_, short)) = found {
            replace(path, short);
        }
    });
}

/// What a file's items import: full paths.
#[derive(Default)]
pub(crate) struct Imports {
    paths: BTreeSet<String>,
    names: BTreeMap<String, String>,
}

impl Imports {
    /// For a file that declares `items`, whose names nothing that is imported may take.
    pub(crate) fn of(items: &[Item]) -> Self {
        let declared = items.iter().filter_map(|item| match item {
            Item::Struct(item) => Some(item.ident.to_string()),
            Item::Enum(item) => Some(item.ident.to_string()),
            _ => None,
        });
        Self {
            paths: BTreeSet::new(),
            names: declared.map(|name| (name, String::new())).collect(),
        }
    }

    /// Imports a type that the items already call by its last name.
    pub(crate) fn require(&mut self, path: String) {
        let name = path.rsplit("::").next().unwrap_or_default().to_owned();
        self.names.insert(name, path.clone());
        self.paths.insert(path);
    }

    /// Calls types by their last name where that is free, and imports them.
    pub(crate) fn shorten(&mut self, item: &mut Item) {
        match item {
            Item::Mod(module) => import_wire(module),
            _ => each_type(item, &mut |path| self.shorten_path(path)),
        }
    }

    /// The `use` items of the file.
    pub(crate) fn into_items(mut self, uses_wire: bool) -> Vec<Item> {
        if uses_wire {
            self.paths.insert(WIRE.to_owned());
        }
        let item = |path: &String| {
            let path: Path = syn::parse_str(path).expect("an import is a path");
            parse_quote!(use #path;)
        };
        self.paths.iter().map(item).collect()
    }

    fn shorten_path(&mut self, path: &mut Path) {
        let full = text(path);
        if let Some(name) = full.strip_prefix("crate::wire::") {
            replace(path, &format!("wire::{name}"));
        } else if full.starts_with("crate::types::") || full == "std::collections::BTreeMap" {
            let name = full.rsplit("::").next().unwrap_or_default().to_owned();
            let taken = self.names.entry(name.clone()).or_insert_with(|| full.clone());
            if *taken == full {
                replace(path, &name);
                self.paths.insert(full);
            }
        }
    }
}

/// Whether the text of an item names the hand-written types, be it in an attribute.
pub(crate) fn names_wire(text: &str) -> bool {
    text.contains(" wire::") || text.contains("<wire::") || text.contains("\"wire::") || text.contains("(wire::")
}

/// A nested module imports nothing by itself.
fn import_wire(module: &mut ItemMod) {
    contents(module).for_each(|item| match item {
        Item::Mod(inner) => import_wire(inner),
        _ => each_type(item, &mut |path| {
            let full = text(path);
            if let Some(name) = full.strip_prefix("crate::wire::") {
                replace(path, &format!("wire::{name}"));
            }
        }),
    });
    let own_items = |items: &[Item]| {
        let own = items.iter().filter(|item| !matches!(item, Item::Mod(_)));
        own.map(|item| item.to_token_stream().to_string()).collect::<String>()
    };
    if let Some((_, items)) = &mut module.content
        && names_wire(&own_items(items).replace(" :: ", "::"))
    {
        items.insert(
            0,
            parse_quote!(
                use crate::wire;
            ),
        );
    }
}

/// prost-build names a module after its message, and the file may have that name already.
pub(crate) fn expect_inception(item: &mut Item, file: &str) {
    if let Item::Mod(module) = item
        && module.ident == file
    {
        module.attrs.push(parse_quote! {
            #[expect(clippy::module_inception, reason = "named after its message")]
        });
    }
}

fn contents(module: &mut ItemMod) -> impl Iterator<Item = &mut Item> {
    module.content.iter_mut().flat_map(|(_, items)| items)
}

/// Visits the paths of all types in an item, the innermost first; not in nested modules.
fn each_type(item: &mut Item, visit: &mut impl FnMut(&mut Path)) {
    match item {
        Item::Struct(item) => each_field(&mut item.fields, visit),
        Item::Enum(item) => {
            let variants = item.variants.iter_mut();
            variants.for_each(|variant| each_field(&mut variant.fields, visit));
        }
        Item::Impl(item) => {
            if let Some((path, _)) = &mut item.trait_ {
                visit(path);
            }
            for member in &mut item.items {
                if let ImplItem::Fn(function) = member
                    && let ReturnType::Type(_, output) = &mut function.sig.output
                {
                    each_path(output, visit);
                }
            }
        }
        _ => {}
    }
}

fn each_field(fields: &mut Fields, visit: &mut impl FnMut(&mut Path)) {
    for field in fields {
        each_path(&mut field.ty, visit);
    }
}

fn each_path(found: &mut Type, visit: &mut impl FnMut(&mut Path)) {
    let Type::Path(TypePath { path, .. }) = found else {
        return;
    };
    for segment in &mut path.segments {
        if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
            for argument in &mut arguments.args {
                if let GenericArgument::Type(inner) = argument {
                    each_path(inner, visit);
                }
            }
        }
    }
    visit(path);
}

/// The path without a leading colon and without arguments.
fn text(path: &Path) -> String {
    let names = path.segments.iter().map(|segment| segment.ident.to_string());
    names.collect::<Vec<_>>().join("::")
}

/// Puts another path before the same arguments.
fn replace(path: &mut Path, with: &str) {
    let last = path.segments.last_mut().expect("a path has a segment");
    let arguments = std::mem::take(&mut last.arguments);
    *path = syn::parse_str(with).expect("a path");
    let last = path.segments.last_mut().expect("a path has a segment");
    last.arguments = arguments;
}

/// One `derive` before all other attributes but the documentation, prost's traits first.
fn merge_derives(attributes: &mut Vec<Attribute>) {
    let is_derive = |attribute: &Attribute| attribute.path().is_ident("derive");
    let mut derived: Vec<Path> = Vec::new();
    for attribute in attributes.iter().rev().filter(|it| is_derive(it)) {
        let paths = attribute
            .parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)
            .expect("a derive lists paths");
        derived.extend(paths.into_iter().map(|path| Path {
            leading_colon: None,
            ..path
        }));
    }
    attributes.retain(|attribute| !is_derive(attribute));
    attributes.insert(0, parse_quote!(#[derive(#(#derived),*)]));
    docs_first(attributes);
}

fn docs_first(attributes: &mut [Attribute]) {
    attributes.sort_by_key(|attribute| !attribute.path().is_ident("doc"));
}
