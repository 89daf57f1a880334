//! The references of a kind as constants, by which a query brings what its rows name.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use super::{identifier, pair};
use crate::emit::rust_types::ident;
use crate::model::{Kind, Model, Reference, ReferenceTarget};

/// The module, where the kind refers to anything.
pub(super) fn module(kind: &Kind, model: &Model) -> Option<TokenStream> {
    let constants: Vec<TokenStream> = kind
        .references
        .iter()
        .map(|found| constant(found, kind, model))
        .collect();
    (!constants.is_empty()).then(|| {
        quote! {
            /// What the objects refer to, for [`Query::with`].
            pub mod reference {
                use kindex_query::Reference;
                #(#constants)*
            }
        }
    })
}

fn constant(reference: &Reference, kind: &Kind, model: &Model) -> TokenStream {
    let name = identifier(&reference.name.as_str().to_ascii_uppercase());
    let (namespace, named) = pair(kind, &reference.column).expect("lower resolves the columns of references");
    let (namespace, named) = (namespace.as_str(), named.as_str());
    let held_by = quote!(&super::super::KIND, #namespace, #named);
    let (doc, value) = match &reference.target {
        ReferenceTarget::Kind(target) => {
            let module = module_of(model, target.as_str());
            (
                format!(" The {target} that `{}` names.", reference.column),
                quote!(Reference::to(&crate::kinds::#module::KIND, #held_by)),
            )
        }
        ReferenceTarget::KindIn(column) => {
            let column = column.as_str();
            (
                format!(
                    " The object that `{}` names, of the kind in `{column}`.",
                    reference.column
                ),
                quote!(Reference::to_kind_in(#column, crate::registry::KINDS, #held_by)),
            )
        }
    };
    quote! {
        #[doc = #doc]
        pub const #name: Reference<super::Query> = #value;
    }
}

fn module_of(model: &Model, kind: &str) -> Ident {
    let target = model.kinds.iter().find(|found| found.name.as_str() == kind);
    identifier(&ident::field(&target.expect("lower resolves references").module))
}
