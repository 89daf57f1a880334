//! The static table of a kind that the runtime reads: names, columns, keys, manifest and the function that encodes its
//! objects. One function per emitted item.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::rust_types::placement::Placement;
use super::{crd, rust};
use crate::model::{Column, ColumnType, Key, Kind, Part, QualifiedName, Scope, SqlType, SubresourceStatus};

/// The text of the file. `root` is the way from its directory to the root of the tree.
pub(super) fn file(kind: &Kind, placement: &Placement, root: &str) -> String {
    let name = &kind.name;
    let doc = format!("`{name}` as the runtime sees it.");
    let items = [
        imports(kind),
        kind_static(kind, placement, root),
        columns(kind),
        keys(kind),
    ];
    rust::file(&doc, items)
}

fn imports(kind: &Kind) -> TokenStream {
    if kind.columns.is_empty() {
        quote! { use kindex_runtime::kind::{Column, Key, Kind, Scope}; }
    } else {
        quote! { use kindex_runtime::kind::{Column, ColumnType, Key, Kind, Scope}; }
    }
}

fn kind_static(kind: &Kind, placement: &Placement, root: &str) -> TokenStream {
    let doc = format!(" The kind `{}`.", kind.name);
    let [name, group, version] = [kind.name.as_str(), kind.group.as_str(), kind.version.as_str()];
    let (plural, singular, table) = (&kind.plural, &kind.singular, kind.table.as_str());
    let scope = match kind.scope {
        Scope::Namespaced => quote!(Scope::Namespaced),
        Scope::Cluster => quote!(Scope::Cluster),
    };
    let immutable = kind.immutable;
    let manifest = manifest(kind, root);
    let encode = encode(kind, placement);
    quote! {
        #[doc = #doc]
        pub static KIND: Kind = Kind {
            name: #name,
            group: #group,
            version: #version,
            plural: #plural,
            singular: #singular,
            scope: #scope,
            table: #table,
            immutable: #immutable,
            columns: COLUMNS,
            keys: KEYS,
            manifest: #manifest,
            encode: #encode,
        };
    }
}

fn manifest(kind: &Kind, root: &str) -> TokenStream {
    match crd::path(kind) {
        Some(path) => {
            let path = format!("{root}/{path}");
            quote!(include_str!(#path))
        }
        None => quote!(""),
    }
}

fn encode(kind: &Kind, placement: &Placement) -> TokenStream {
    let rust_path = |name: &str| -> TokenStream {
        let path = placement.rust_path(name);
        path.parse().expect("placement names Rust paths")
    };
    let spec = rust_path(kind.spec.full());
    let status = match &kind.status {
        SubresourceStatus::Present(status) => rust_path(status.full()),
        SubresourceStatus::Absent => quote!(kindex_runtime::wire::NoStatus),
    };
    quote!(kindex_runtime::wire::encode_root::<#spec, #status>)
}

fn columns(kind: &Kind) -> TokenStream {
    let columns = kind.columns.iter().map(column);
    quote! {
        /// The extracted columns, in table order.
        pub const COLUMNS: &[Column] = &[#(#columns),*];
    }
}

fn column(column: &Column) -> TokenStream {
    let name = column.name.as_str();
    let path = column.path.json();
    let ty = column_type(column);
    let part = column.group.as_ref().map(|group| group.part);
    let own_namespace = part == Some(Part::ResourceNamespace);
    quote! {
        Column {
            name: #name,
            path: &[#(#path),*],
            ty: #ty,
            own_namespace: #own_namespace,
        }
    }
}

fn column_type(column: &Column) -> TokenStream {
    let variant = match column.ty {
        ColumnType::Text | ColumnType::Enum(_) => {
            let chars = chars_max(column.sql);
            return quote!(ColumnType::Text { chars: #chars });
        }
        ColumnType::Int32 => "Int32",
        ColumnType::Int64 | ColumnType::UInt64 => "Int64",
        ColumnType::Bool => "Bool",
        ColumnType::Double => "Double",
        ColumnType::Timestamp => "Time",
    };
    let variant = Ident::new(variant, Span::call_site());
    quote!(ColumnType::#variant)
}

/// Characters that always fit the text type. The TEXT types count bytes, of which a character takes at most four.
fn chars_max(sql: SqlType) -> TokenStream {
    let chars: u32 = match sql {
        SqlType::VarChar(chars) => chars.into(),
        SqlType::Text => 0xFFFF / 4,
        SqlType::MediumText => 0xFF_FFFF / 4,
        SqlType::LongText => 0xFFFF_FFFF / 4,
        SqlType::TinyInt
        | SqlType::SmallInt
        | SqlType::Int
        | SqlType::BigInt
        | SqlType::BigIntUnsigned
        | SqlType::Boolean
        | SqlType::Double
        | SqlType::Decimal(_, _)
        | SqlType::DateTime(_)
        | SqlType::Date => unreachable!("lower holds text columns to text types"),
    };
    let literal = proc_macro2::Literal::u32_unsuffixed(chars);
    quote!(#literal)
}

fn keys(kind: &Kind) -> TokenStream {
    let keys = kind.keys.iter().map(key);
    quote! {
        /// The keys of the main table beside the primary key.
        pub const KEYS: &[Key] = &[#(#keys),*];
    }
}

fn key(key: &Key) -> TokenStream {
    let name = key.name.as_str();
    let columns = key.columns.iter().map(|column| column.as_str());
    quote! {
        Key {
            name: #name,
            columns: &[#(#columns),*],
        }
    }
}
