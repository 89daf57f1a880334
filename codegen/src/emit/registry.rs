//! The registry: the one value through which the runtime learns of the kinds, the platform's words and the schemas.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use super::rust_types::ident;
use super::{named_queries, references, rust, sql};
use crate::DESCRIPTORS;
use crate::dialect;
use crate::model::{DeclaredVersion, Model, Platform, Shape};

/// The text of the file, which lies beside the kinds' modules. `root` is the way from its directory to the root.
pub(super) fn file(model: &Model, root: &str) -> String {
    let doc = "The registry of all kinds, as `kindex::run` takes it.";
    let items = [
        imports(model),
        registry(model, root),
        kinds(model),
        named_queries::table(model),
        declared(model),
        platform(&model.platform),
        references::services(&model.services),
    ];
    rust::file(doc, items)
}

/// What the tables name; those of queries name more where there are any.
fn imports(model: &Model) -> TokenStream {
    let queries = &model.queries;
    let ordered = queries.iter().any(|query| !query.order_by.is_empty());
    let compared = ["ColumnType", "Comparison", "Operand", "QueryCondition"];
    let mut names = vec!["DeclaredVersion", "Kind", "NamedQuery", "Platform", "Registry"];
    names.extend(compared.iter().filter(|_| !queries.is_empty()));
    names.extend(ordered.then_some("QueryOrder"));
    names.extend(foreign(model).next().map(|_| "ForeignManifest"));
    names.sort_unstable();
    let names = names
        .into_iter()
        .map(|name| syn::parse_str::<Ident>(name).expect("an identifier"));
    quote! { use kindex_model::kind::{#(#names),*}; }
}

/// The kinds whose CRDs others define, and where these lie.
fn foreign(model: &Model) -> impl Iterator<Item = (&str, &str)> {
    model.kinds.iter().filter_map(|kind| match &kind.shape {
        Shape::Crd { manifest, .. } => Some((kind.name.as_str(), manifest.as_str())),
        Shape::Message | Shape::Inline(_) => None,
    })
}

fn registry(model: &Model, root: &str) -> TokenStream {
    let schemas = dialect::ALL.map(|dialect| format!("{root}/{}", sql::schema_file(dialect)));
    let words = dialect::ALL.map(|dialect| dialect.word());
    let descriptors = format!("/{DESCRIPTORS}");
    let foreign = foreign(model).map(|(kind, manifest)| {
        let manifest = format!("{root}/{manifest}");
        quote! { ForeignManifest { kind: #kind, manifest: include_str!(#manifest) } }
    });
    let services = references::table(&model.services);
    quote! {
        /// All kinds with the schemas that hold them.
        pub fn registry() -> Registry {
            Registry {
                platform: PLATFORM,
                kinds: KINDS,
                schemas: &[#((#words, include_str!(#schemas))),*],
                queries: QUERIES,
                migrations: crate::migrations::MIGRATIONS,
                foreign: &[#(#foreign),*],
                declared: DECLARED,
                descriptors: include_bytes!(concat!(env!("OUT_DIR"), #descriptors)),
                services: #services,
            }
        }
    }
}

fn kinds(model: &Model) -> TokenStream {
    let modules = model.kinds.iter().map(|kind| -> Ident {
        let module = ident::field(&kind.module);
        syn::parse_str(&module).expect("a module's name is an identifier")
    });
    quote! {
        /// The kinds, in the order of crds.toml.
        pub static KINDS: &[&Kind] = &[#(&crate::kinds::#modules::KIND),*];
    }
}

fn declared(model: &Model) -> TokenStream {
    // The lock remembers kinds that are gone as well. Nothing is asked of them.
    let is_there = |declared: &&DeclaredVersion| model.kinds.iter().any(|kind| kind.name.as_str() == declared.kind);
    let versions = model.declared.iter().filter(is_there).map(|declared| {
        let DeclaredVersion {
            kind,
            group,
            version,
            hash,
            dropped,
        } = declared;
        quote! {
            DeclaredVersion { kind: #kind, group: #group, version: #version, hash: #hash, dropped: #dropped }
        }
    });
    quote! {
        /// Every version that a kind was ever declared in, as `schema/crds.lock` knows them.
        pub static DECLARED: &[DeclaredVersion] = &[#(#versions),*];
    }
}

fn platform(platform: &Platform) -> TokenStream {
    let (group, version) = (platform.group.as_str(), platform.version.as_str());
    let Platform {
        finalizer,
        deleting,
        immutable,
        restored_from,
        conversion_data,
        ..
    } = platform;
    quote! {
        /// The words that all kinds share.
        pub const PLATFORM: Platform = Platform {
            group: #group,
            version: #version,
            finalizer: #finalizer,
            deleting: #deleting,
            immutable: #immutable,
            restored_from: #restored_from,
            conversion_data: #conversion_data,
        };
    }
}
