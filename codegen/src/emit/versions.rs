//! The table of a kind's other versions: how their fields map to those of the kind's own, for the running program.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Path as RustPath;

use super::rust;
use crate::model::{FieldMap, Kind, MapRule, Path, Version};

/// The text of the file; `None` for a kind of one version.
pub(super) fn file(kind: &Kind) -> Option<String> {
    if kind.versions.is_empty() {
        return None;
    }
    let doc = format!("The versions of `{}` beside `{}`.", kind.name, kind.version);
    let maps = if kind.is_converted() {
        quote!(FieldMap, MapRule,)
    } else {
        quote!()
    };
    let imports = quote! { use kindex_model::kind::{#maps Version}; };
    let versions = kind.versions.iter().map(|version| self::version(kind, version));
    let table = quote! {
        /// In the order of crds.toml.
        pub(super) static VERSIONS: &[Version] = &[#(#versions),*];
    };
    Some(rust::file(&doc, [imports, table]))
}

fn version(kind: &Kind, version: &Version) -> TokenStream {
    let (name, served) = (version.name.as_str(), version.served);
    let stored = version.name == kind.storage;
    let map = version.map.iter().map(field);
    let deprecated = match &version.deprecated {
        Some(warning) => quote!(Some(#warning)),
        None => quote!(None),
    };
    quote! {
        Version { name: #name, served: #served, stored: #stored, deprecated: #deprecated, map: &[#(#map),*] }
    }
}

fn field(map: &FieldMap) -> TokenStream {
    let (here, own) = (place(map.here.as_ref()), place(map.own.as_ref()));
    let rule = match &map.rule {
        MapRule::Same => quote!(MapRule::Same),
        MapRule::Default(json) => quote!(MapRule::Default(#json)),
        MapRule::Function { to_own, from_own } => {
            let (to_own, from_own) = (function(to_own), function(from_own));
            quote!(MapRule::Function { to_own: #to_own, from_own: #from_own })
        }
    };
    quote!(FieldMap { here: #here, own: #own, rule: #rule })
}

fn place(path: Option<&Path>) -> TokenStream {
    match path {
        Some(path) => {
            let names = path.json();
            quote!(Some(&[#(#names),*]))
        }
        None => quote!(None),
    }
}

fn function(path: &str) -> RustPath {
    syn::parse_str(path).expect("lower takes paths of Rust alone")
}
