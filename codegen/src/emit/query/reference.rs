//! The references of a kind as constants, by which a query brings what its rows name.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use super::columns::{identifier, pair};
use crate::emit::rust_types::ident;
use crate::model::{Holder, Kind, Model, Reference, ReferenceTarget, TargetKind};

/// The module, where rows of the kind refer to rows of this database.
pub(super) fn module(kind: &Kind, model: &Model) -> Option<TokenStream> {
    let references = kind.references.iter();
    let constants: Vec<TokenStream> = references.filter_map(|found| constant(found, kind, model)).collect();
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

/// `None` where the name is in no columns, or names an object of another service, whose rows are elsewhere.
fn constant(reference: &Reference, kind: &Kind, model: &Model) -> Option<TokenStream> {
    let Holder::Column(group) = &reference.holder else {
        return None;
    };
    let name = identifier(&reference.name.as_str().to_ascii_uppercase());
    let (namespace, named) = pair(kind, group).expect("lower resolves the columns of references");
    let (namespace, named) = (namespace.as_str(), named.as_str());
    let held_by = quote!(&super::super::KIND, #namespace, #named);
    let own: Vec<&TargetKind> = reference
        .target
        .kinds()
        .iter()
        .filter(|target| target.service.is_none())
        .collect();
    let first = own.first()?;
    let (doc, value) = match &reference.target {
        ReferenceTarget::Kind(_) => {
            let module = module_of(model, first.kind.as_str());
            (
                format!(" The {first} that `{group}` names."),
                quote!(Reference::to(&crate::kinds::#module::KIND, #held_by)),
            )
        }
        ReferenceTarget::KindIn { column, listed, .. } => {
            let column = column.as_str();
            let modules = own.iter().map(|target| module_of(model, target.kind.as_str()));
            let kinds = match listed {
                true => quote!(&[#(&crate::kinds::#modules::KIND),*]),
                false => quote!(crate::registry::KINDS),
            };
            (
                format!(" The object that `{group}` names, of the kind in `{column}`."),
                quote!(Reference::to_kind_in(#column, #kinds, #held_by)),
            )
        }
    };
    Some(quote! {
        #[doc = #doc]
        pub const #name: Reference<super::Query> = #value;
    })
}

/// Whether the kind's file of queries has the module.
pub(in crate::emit) fn is_emitted(kind: &Kind) -> bool {
    kind.references.iter().any(|reference| {
        let is_column = matches!(reference.holder, Holder::Column(_));
        let mut targets = reference.target.kinds().iter();
        is_column && targets.any(|target| target.service.is_none())
    })
}

fn module_of(model: &Model, kind: &str) -> Ident {
    let target = model.kinds.iter().find(|found| found.name.as_str() == kind);
    identifier(&ident::field(&target.expect("lower resolves references").module))
}
