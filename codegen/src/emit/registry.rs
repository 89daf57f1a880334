//! The registry: the one value through which the runtime learns of the kinds, the platform's words and the schemas.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use super::rust_types::ident;
use super::{rust, sql};
use crate::model::{Model, Platform};

/// The text of the file, which lies beside the kinds' modules. `root` is the way from its directory to the root.
pub(super) fn file(model: &Model, root: &str) -> String {
    let doc = "All kinds, as `kindex_runtime` takes them.";
    let imports = quote! { use kindex_runtime::kind::{Kind, Platform, Registry}; };
    let items = [imports, registry(root), kinds(model), platform(&model.platform)];
    rust::file(doc, items)
}

fn registry(root: &str) -> TokenStream {
    let mysql_schema = format!("{root}/{}", sql::MYSQL_FILE);
    let sqlite_schema = format!("{root}/{}", sql::SQLITE_FILE);
    quote! {
        /// All kinds with the schemas that hold them.
        pub fn registry() -> Registry {
            Registry {
                platform: PLATFORM,
                kinds: KINDS,
                mysql_schema: include_str!(#mysql_schema),
                sqlite_schema: include_str!(#sqlite_schema),
                migrations: crate::migrations::MIGRATIONS,
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

fn platform(platform: &Platform) -> TokenStream {
    let (group, version) = (platform.group.as_str(), platform.version.as_str());
    let Platform {
        finalizer,
        deleting,
        immutable,
        restored_from,
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
        };
    }
}
