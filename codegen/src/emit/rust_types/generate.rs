//! One `.proto` file through prost-build: its Rust items, each with the name of the message or enum that it is for.
//! Where an item goes is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use prost_build::{Config, Module};
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, MessageOptions};
use quote::quote;
use syn::{Item, ItemMod};

use super::attributes;
use super::ident;
use super::placement::{Placement, Reached, qualified};
use super::tidy::tidy;
use crate::model::{Enum, EnumName, Kind, MessageName, Model, QualifiedName};

/// What the model's files declare, by name, so that a file is printed without a walk over all others.
pub(crate) struct Declarations<'a> {
    /// The top-level messages by full name, with the package of each.
    messages: BTreeMap<String, (&'a str, &'a DescriptorProto)>,
    /// The enums by file.
    enums: BTreeMap<&'a str, Vec<&'a Enum>>,
    /// The kinds by the full name of their spec.
    kinds: BTreeMap<&'a str, Vec<&'a Kind>>,
}

impl<'a> Declarations<'a> {
    /// Indexes the model's files.
    pub(crate) fn new(model: &'a Model) -> Self {
        let files = model.descriptors.file.iter();
        let messages = files.flat_map(|file| {
            let messages = file.message_type.iter();
            messages.map(|it| (qualified(file.package(), it.name()), (file.package(), it)))
        });
        let mut enums: BTreeMap<&str, Vec<&Enum>> = BTreeMap::new();
        for enumeration in model.enums.values() {
            enums.entry(&enumeration.file).or_default().push(enumeration);
        }
        let mut kinds: BTreeMap<&str, Vec<&Kind>> = BTreeMap::new();
        for kind in &model.kinds {
            kinds.entry(kind.spec.full()).or_default().push(kind);
        }
        Self {
            messages: messages.collect(),
            enums,
            kinds,
        }
    }

    /// The top-level message that `name` is or is nested in; an enum's own name otherwise.
    fn top<'n>(&self, name: &'n str) -> &'n str {
        let ends = name.match_indices('.').map(|(at, _)| at);
        let found = ends
            .chain([name.len()])
            .find(|end| self.messages.contains_key(&name[..*end]));
        &name[..found.unwrap_or(name.len())]
    }
}

/// The items of one file, in order, by the full name of the top-level message or enum that they belong to.
pub(crate) fn items(
    model: &Model,
    placement: &Placement,
    declarations: &Declarations<'_>,
    in_objects: &Reached,
    file: &FileDescriptorProto,
) -> Vec<(String, Item)> {
    let mut config = Config::new();
    config.compile_well_known_types().btree_map(["."]);
    let mut declared = Vec::new();
    for message in &file.message_type {
        declare(&qualified(file.package(), message.name()), message, &mut declared);
    }
    for name in declared.iter().filter_map(|name| MessageName::parse(name).ok()) {
        let Some(message) = model.messages.get(&name) else {
            continue;
        };
        if in_objects.messages.contains(&name) && placement.by_hand(name.full()).is_none() {
            attributes::serde(&mut config, message, model, placement);
        }
        attributes::docs_of_message(&mut config, message);
    }
    for enumeration in declarations.enums.get(file.name()).into_iter().flatten() {
        attributes::docs_of_enum(&mut config, enumeration);
    }
    let kinds = declared.iter().filter_map(|name| declarations.kinds.get(name.as_str()));
    for kind in kinds.flatten() {
        attributes::custom_resource(&mut config, kind, placement);
    }
    let (needed, external) = surroundings(placement, declarations, file);
    for (name, path) in external {
        config.extern_path(format!(".{name}"), path);
    }
    let out = Module::from_parts(["out"]);
    let mut requests = vec![(out.clone(), file.clone())];
    requests.extend(needed.into_iter().map(|it| (Module::from_parts(["needed"]), it)));
    let text = config
        .generate(requests)
        .expect("extern paths are distinct and well-formed")
        .remove(&out)
        .unwrap_or_default();
    let parsed = syn::parse_file(&text).expect("prost-build writes Rust");
    assign(parsed.items, file, placement, model, in_objects)
}

fn declare(full: &str, message: &DescriptorProto, declared: &mut Vec<String>) {
    declared.push(full.to_owned());
    for nested in &message.nested_type {
        declare(&format!("{full}.{}", nested.name()), nested, declared);
    }
}

/// prost-build looks into the messages that the file's messages are made of (may they be compared, must they be
/// boxed), but is told by path where their types already are, so that it writes none of them again.
fn surroundings<'a>(
    placement: &Placement,
    declarations: &Declarations<'a>,
    file: &FileDescriptorProto,
) -> (Vec<FileDescriptorProto>, BTreeMap<String, String>) {
    let own = |name: &str| {
        let local = name.strip_prefix(file.package()).unwrap_or(name);
        let local = local.trim_start_matches('.');
        file.message_type.iter().any(|it| it.name() == local) || file.enum_type.iter().any(|it| it.name() == local)
    };
    let mut external = BTreeMap::new();
    let mut packages: BTreeMap<&'a str, Vec<DescriptorProto>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<&DescriptorProto> = file.message_type.iter().collect();
    while let Some(message) = open.pop() {
        for name in referenced(message) {
            let top = declarations.top(name);
            if !seen.insert(top.to_owned()) || own(top) {
                continue;
            }
            if let Some(path) = placement.by_hand(top) {
                external.insert(top.to_owned(), path.to_owned());
            } else if placement.location(top).is_some() {
                external.insert(top.to_owned(), placement.rust_path(top));
            }
            if let Some((package, message)) = declarations.messages.get(top) {
                packages.entry(package).or_default().push((*message).clone());
                open.push(message);
            }
        }
    }
    for message in &file.message_type {
        let name = qualified(file.package(), message.name());
        if let Some(path) = placement.by_hand(&name) {
            external.insert(name, path.to_owned());
        }
    }
    let needed = packages.into_iter().map(|(package, messages)| FileDescriptorProto {
        package: Some(package.to_owned()),
        message_type: messages,
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    });
    (needed.collect(), external)
}

/// Full names of messages and enums in a message's fields, those of nested messages included.
fn referenced(message: &DescriptorProto) -> Vec<&str> {
    let own = message.field.iter().filter_map(|field| match field.r#type() {
        Type::Message | Type::Group | Type::Enum => Some(field.type_name().trim_start_matches('.')),
        _ => None,
    });
    own.chain(message.nested_type.iter().flat_map(referenced)).collect()
}

/// prost-build writes in the order of the file: for each message a struct and, if something is nested in it, a
/// module; then for each enum the enum and its methods. What it leaves out was declared external.
fn assign(
    items: Vec<Item>,
    file: &FileDescriptorProto,
    placement: &Placement,
    model: &Model,
    in_objects: &Reached,
) -> Vec<(String, Item)> {
    let is_here = |name: &String| placement.by_hand(name).is_none();
    let messages = file
        .message_type
        .iter()
        .map(|it| (qualified(file.package(), it.name()), Some(it)));
    let enums = file
        .enum_type
        .iter()
        .map(|it| (qualified(file.package(), it.name()), None));
    let mut names = messages.chain(enums).filter(|(name, _)| is_here(name));
    let mut assigned: Vec<(String, Item)> = Vec::new();
    let mut current: Option<(String, Option<&DescriptorProto>)> = None;
    for mut item in items {
        tidy(&mut item);
        match &mut item {
            Item::Struct(_) | Item::Enum(_) => current = names.next(),
            Item::Mod(module) => match &current {
                Some((full, Some(message))) => complete(module, full, message, model, in_objects),
                Some((_, None)) | None => unreachable!("a module follows its message"),
            },
            _ => {}
        }
        let (name, _) = current.as_ref().expect("a message or an enum comes first");
        let is_methods = matches!(item, Item::Impl(_));
        assigned.push((name.clone(), item));
        if is_methods {
            assigned.push((name.clone(), proto_enum(name)));
        }
    }
    assigned
}

/// Adds the impls of what is nested in a message to the module that prost-build makes for it. Structs come there in the
/// order of the nested messages, a module after the struct that it belongs to.
fn complete(module: &mut ItemMod, full: &str, message: &DescriptorProto, model: &Model, in_objects: &Reached) {
    let Some((_, items)) = &mut module.content else {
        return;
    };
    let is_map_entry = |it: &DescriptorProto| it.options.as_ref().is_some_and(MessageOptions::map_entry);
    let mut nested = message.nested_type.iter().filter(|it| !is_map_entry(it));
    let mut current = None;
    for item in items.iter_mut() {
        match item {
            Item::Struct(_) => current = nested.next(),
            Item::Mod(inner) => {
                let message = current.expect("a module follows its message");
                complete(inner, &format!("{full}.{}", message.name()), message, model, in_objects);
            }
            _ => {}
        }
    }
    items.extend(nested_impls(full, message, model, in_objects));
}

/// The impls of the enums and oneofs that are nested in a message. A message that is in no object has no JSON, and its
/// oneofs have none either.
fn nested_impls(full: &str, message: &DescriptorProto, model: &Model, in_objects: &Reached) -> Vec<Item> {
    let enums = message.enum_type.iter().map(EnumDescriptorProto::name);
    let mut impls: Vec<Item> = enums.map(|name| proto_enum(&format!("{full}.{name}"))).collect();
    let known = MessageName::parse(full).ok();
    let known = known.filter(|name| in_objects.messages.contains(name));
    if let Some(known) = known.and_then(|name| model.messages.get(&name)) {
        for (at, oneof) in known.oneofs.iter().enumerate() {
            let members = known.fields.iter().filter(|field| field.oneof == Some(at));
            let members = members.map(|field| field.json_name.as_str());
            let messages = message.nested_type.iter().map(DescriptorProto::name);
            let enums = message.enum_type.iter().map(EnumDescriptorProto::name);
            let ty = ident::oneof(&oneof.name, messages.chain(enums));
            let ty = syn::Ident::new(&ty, proc_macro2::Span::call_site());
            impls.push(syn::parse_quote! {
                impl wire::Oneof for #ty {
                    const MEMBERS: &'static [&'static str] = &[#(#members),*];
                }
            });
        }
    }
    impls
}

fn proto_enum(full: &str) -> Item {
    let name = EnumName::parse(full).expect("the compiler checked the name");
    let ty = syn::Ident::new(&ident::ty(name.base()), proc_macro2::Span::call_site());
    let tokens = quote! {
        impl wire::ProtoEnum for #ty {
            const ENUM: &'static str = #full;

            fn name(self) -> &'static str {
                self.as_str_name()
            }

            fn from_name(name: &str) -> Option<Self> {
                Self::from_str_name(name)
            }
        }
    };
    syn::parse2(tokens).expect("an impl")
}
