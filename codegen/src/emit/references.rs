//! The references of a kind for the runtime, and the other services that they lead to.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use crate::model::{
    Column, Holder, Kind, KindName, Model, Named, OnDelete, Part, Reference, ReferenceTarget, Service, ServiceName,
    TargetKind,
};

/// The types of `kindex_model::reference` that the constant names.
pub(super) fn types(kind: &Kind) -> &'static str {
    match kind.references.is_empty() {
        true => "Reference",
        false => "{Named, OnDelete, Reference, Target}",
    }
}

/// The constant in the file of the kind.
pub(super) fn constant(model: &Model, kind: &Kind) -> TokenStream {
    let references = kind.references.iter().map(|found| reference(model, kind, found));
    quote! {
        /// The fields that name objects of other kinds.
        pub const REFERENCES: &[Reference] = &[#(#references),*];
    }
}

fn reference(model: &Model, kind: &Kind, reference: &Reference) -> TokenStream {
    let name = reference.name.as_str();
    let targets = reference.target.kinds().iter().map(|found| target(model, found));
    let kind_column = match &reference.target {
        ReferenceTarget::Kind(_) => quote!(None),
        ReferenceTarget::KindIn { column, .. } => {
            let column = column.as_str();
            quote!(Some(#column))
        }
    };
    let path = kind.holder_path(reference);
    let named = match &reference.holder {
        Holder::Column(_)
        | Holder::Path {
            named: Named::Identifier,
            ..
        } => quote!(Identifier),
        Holder::Path { named: Named::Name, .. } => quote!(Name),
    };
    let columns = columns(kind, &reference.holder);
    let owned = reference.owned;
    let on_delete = match reference.on_delete {
        OnDelete::Cascade => quote!(Cascade),
        OnDelete::Block => quote!(Block),
        OnDelete::Orphan => quote!(Orphan),
    };
    quote! {
        Reference {
            name: #name,
            targets: &[#(#targets),*],
            kind_column: #kind_column,
            path: &[#(#path),*],
            named: Named::#named,
            columns: &[#(#columns),*],
            owned: #owned,
            on_delete: OnDelete::#on_delete,
        }
    }
}

fn target(model: &Model, target: &TargetKind) -> TokenStream {
    let kind = target.kind.as_str();
    let Some(name) = &target.service else {
        let own = model.kind(&target.kind).expect("lower resolves references");
        let group = own.group.as_str();
        return quote!(Target { service: None, group: #group, kind: #kind });
    };
    let mut services = model.services.iter();
    let service = services
        .find(|service| service.name == *name)
        .expect("lower resolves services");
    let (group, constant) = (service.group.as_str(), constant_of(name));
    quote!(Target { service: Some(&crate::registry::services::#constant), group: #group, kind: #kind })
}

/// The columns of namespace and name, or of the name alone.
fn columns<'k>(kind: &'k Kind, holder: &'k Holder) -> Vec<&'k str> {
    let is_held = |column: &&Column| match holder {
        Holder::Column(group) => {
            let member = column.group.as_ref().filter(|member| member.name == *group);
            member.is_some_and(|member| matches!(member.part, Part::ResourceNamespace | Part::ResourceName))
        }
        Holder::Path { path, .. } => column.path == *path,
    };
    let columns = kind.columns.iter().filter(is_held);
    columns.map(|column| column.name.as_str()).collect()
}

/// Where the registry has the other services.
pub(super) fn table(services: &[Service]) -> TokenStream {
    match services {
        [] => quote!(&[]),
        _ => quote!(services::SERVICES),
    }
}

/// The module of the registry with the other services, where there are any.
pub(super) fn services(services: &[Service]) -> TokenStream {
    if services.is_empty() {
        return TokenStream::new();
    }
    let constants = services.iter().map(|service| constant_of(&service.name));
    let services = services.iter().map(service);
    quote! {
        /// The other services.
        pub mod services {
            use kindex_model::reference::Service;
            /// All of them, in the order of crds.toml.
            pub static SERVICES: &[&Service] = &[#(&#constants),*];
            #(#services)*
        }
    }
}

fn service(service: &Service) -> TokenStream {
    let (constant, name, group) = (
        constant_of(&service.name),
        service.name.as_str(),
        service.group.as_str(),
    );
    let (doc, address) = (format!(" `{name}`, at `{}`.", service.address), &service.address);
    let file = |file: &Option<String>| match file {
        Some(file) => quote!(Some(#file)),
        None => quote!(None),
    };
    let (ca_file, token_file) = (file(&service.ca_file), file(&service.token_file));
    let cluster_scoped = service.cluster_scoped.iter().map(KindName::as_str);
    let plurals = service.odd_plurals().map(|(kind, plural)| quote!((#kind, #plural)));
    let refers_to = service.refers_to.iter().map(KindName::as_str);
    quote! {
        #[doc = #doc]
        pub static #constant: Service = Service {
            name: #name,
            group: #group,
            cluster_scoped: &[#(#cluster_scoped),*],
            plurals: &[#(#plurals),*],
            refers_to: &[#(#refers_to),*],
            address: #address,
            ca_file: #ca_file,
            token_file: #token_file,
        };
    }
}

fn constant_of(service: &ServiceName) -> Ident {
    format_ident!("{}", service.as_str().replace('-', "_").to_ascii_uppercase())
}
