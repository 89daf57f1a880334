//! `IndexedObject` for the root type of each kind: what Michelangelo's generator calls `GetIndexedKeyValuePairs`. Where
//! the ingester reads columns from an object's text, this reads the same columns from its typed form.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::rust;
use super::rust_types::placement::Placement;
use super::rust_types::{has_presence, ident};
use crate::artifact::{Artifacts, RelativePath};
use crate::model::{
    Column, ColumnType, Field, FieldType, Kind, Message, MessageName, Model, Part, QualifiedName, Scalar, Segment,
    WellKnown,
};

/// One file for each kind.
pub(super) fn emit(model: &Model, placement: &Placement) -> Artifacts {
    let file = |kind: &Kind| {
        let path = format!("generated/src/types/{}/indexed.rs", kind.module);
        (RelativePath::new(path), file(model, placement, kind))
    };
    model.kinds.iter().map(file).collect()
}

fn file(model: &Model, placement: &Placement, kind: &Kind) -> String {
    let doc = format!("The columns of `{}`, read from its typed form.", kind.name);
    let readers = readers(model, placement, kind);
    let items = [imports(placement, kind, &readers), implementation(kind)];
    rust::file(&doc, items.into_iter().chain(readers))
}

fn imports(placement: &Placement, kind: &Kind, readers: &[TokenStream]) -> TokenStream {
    let own = own_types(placement, kind);
    let module = name(&ident::field(&kind.module));
    let text: String = readers.iter().map(TokenStream::to_string).collect();
    let value = match (text.is_empty(), text.contains("to_column_value")) {
        (true, _) => None,
        (false, true) => Some(quote! { use kindex_model::value::{ToColumnValue, Value}; }),
        (false, false) => Some(quote! { use kindex_model::value::Value; }),
    };
    let wire = text.contains("wire ::").then(|| quote! { use crate::wire; });
    quote! {
        use kindex_model::indexed::{IndexedField, IndexedObject};
        use kindex_model::kind::{Column, Key};
        #value

        use super::{#(#own),*};
        use crate::kinds::#module::{COLUMNS, KEYS};
        #wire
    }
}

/// Before the names of the types that this file imports by name.
fn own_module(kind: &Kind) -> String {
    format!("crate::types::{}::", ident::field(&kind.module))
}

/// The root type and the enums beside it that columns hold.
fn own_types(placement: &Placement, kind: &Kind) -> Vec<Ident> {
    let enums = kind.columns.iter().filter_map(|column| match &column.ty {
        ColumnType::Enum(enumeration) => Some(placement.rust_path(enumeration.full())),
        ColumnType::Text
        | ColumnType::Int32
        | ColumnType::Int64
        | ColumnType::UInt64
        | ColumnType::Bool
        | ColumnType::Double
        | ColumnType::Timestamp => None,
    });
    let prefix = own_module(kind);
    let own = enums.filter_map(|path| Some(path.strip_prefix(&prefix)?.to_owned()));
    let mut names: Vec<String> = own.filter(|name| !name.contains("::")).collect();
    names.push(kind.name.as_str().to_owned());
    names.sort_unstable();
    names.dedup();
    names.iter().map(|ident| name(ident)).collect()
}

fn is_own_namespace(column: &Column) -> bool {
    column.group.as_ref().map(|group| group.part) == Some(Part::ResourceNamespace)
}

fn implementation(kind: &Kind) -> TokenStream {
    let root = name(kind.name.as_str());
    let table = kind.table.as_str();
    let immutable = kind.immutable.then(|| {
        quote! {
            fn is_immutable_kind(&self) -> bool {
                true
            }
        }
    });
    let pairs = pairs(kind);
    quote! {
        impl IndexedObject for #root {
            const TABLE: &'static str = #table;
            const COLUMNS: &'static [Column] = COLUMNS;
            const KEYS: &'static [Key] = KEYS;

            fn get_indexed_key_value_pairs(&self) -> Vec<IndexedField> {
                #pairs
            }

            #immutable
        }
    }
}

/// A line for each column.
fn pairs(kind: &Kind) -> TokenStream {
    if kind.columns.is_empty() {
        return quote!(Vec::new());
    }
    let pairs = kind.columns.iter().map(|column| {
        let (key, read) = (column.name.as_str(), reader(column));
        quote!((#key, #read(self)))
    });
    quote! {
        let pairs = [#(#pairs),*];
        pairs.map(|(key, value)| IndexedField { key, value }).into()
    }
}

/// The function that reads the column.
fn reader(column: &Column) -> Ident {
    name(&ident::field(column.name.as_str()))
}

/// A function for each column.
fn readers(model: &Model, placement: &Placement, kind: &Kind) -> Vec<TokenStream> {
    let root = name(kind.name.as_str());
    let readers = kind.columns.iter().map(|column| {
        let read = reader(column);
        let value = value(model, placement, kind, column);
        quote! {
            fn #read(object: &#root) -> Value {
                #value
            }
        }
    });
    readers.collect()
}

fn value(model: &Model, placement: &Placement, kind: &Kind, column: &Column) -> TokenStream {
    let (part, inner) = column.path.segments.split_first().expect("a path is never empty");
    let start = match part.json.as_str() {
        "metadata" => return metadata(inner),
        "status" => (Access::Maybe(quote!(object.status.as_ref())), kind.status.message()),
        _ => (Access::Here(quote!(object.spec)), Some(&kind.spec)),
    };
    let (mut access, mut message) = start;
    let mut leaf = None;
    for segment in inner {
        let current = model.message(message.expect("only the last field is not a message"));
        let field = field(current, segment);
        access = access.step(current, field, placement, model);
        message = message_of(field);
        leaf = Some(field);
    }
    let leaf = leaf.expect("a column is a field of spec or status");
    convert(access.into_option(), leaf, column, kind, placement)
}

fn field<'m>(message: &'m Message, segment: &Segment) -> &'m Field {
    message
        .field_by_json_name(&segment.json)
        .expect("lower resolved the path")
}

fn message_of(field: &Field) -> Option<&MessageName> {
    match &field.ty {
        FieldType::Message(name) => Some(name),
        FieldType::Scalar(_) | FieldType::Enum(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_) => None,
    }
}

/// An expression for a value on the way to the column.
enum Access {
    /// The value itself, always there.
    Here(TokenStream),
    /// An `Option` of a reference to it.
    Maybe(TokenStream),
}

impl Access {
    fn step(self, message: &Message, field: &Field, placement: &Placement, model: &Model) -> Self {
        let ident = name(&ident::field(&field.name));
        Self::Maybe(match (self, field.oneof) {
            (access, Some(oneof)) => {
                let pattern = member(message, oneof, field, placement, model);
                let oneof = name(&ident::field(&message.oneofs[oneof].name));
                match access {
                    Self::Here(here) => {
                        quote!(match &#here.#oneof { #pattern => Some(it), _ => None })
                    }
                    Self::Maybe(maybe) => quote! {
                        #maybe.and_then(|it| match &it.#oneof { #pattern => Some(it), _ => None })
                    },
                }
            }
            (Self::Here(here), None) if has_presence(field) => quote!(#here.#ident.as_ref()),
            (Self::Here(here), None) => quote!(Some(&#here.#ident)),
            (Self::Maybe(maybe), None) if has_presence(field) => {
                quote!(#maybe.and_then(|it| it.#ident.as_ref()))
            }
            (Self::Maybe(maybe), None) => quote!(#maybe.map(|it| &it.#ident)),
        })
    }

    fn into_option(self) -> TokenStream {
        match self {
            Self::Here(here) => quote!(Some(&#here)),
            Self::Maybe(maybe) => maybe,
        }
    }
}

/// `Some(crate::types::deployment::deployment_spec::Target::InferenceServer(it))`
fn member(message: &Message, oneof: usize, field: &Field, placement: &Placement, model: &Model) -> TokenStream {
    let path = placement.rust_path(message.name.full());
    let (outer, own) = path.rsplit_once("::").unwrap_or_default();
    let oneof = ident::oneof(&message.oneofs[oneof].name, nested_names(model, message));
    let path = format!("{outer}::{}::{oneof}::{}", ident::field(own), ident::ty(&field.name));
    let path: TokenStream = path.parse().expect("a path");
    quote!(Some(#path(it)))
}

fn nested_names<'m>(model: &'m Model, message: &'m Message) -> impl Iterator<Item = &'m str> {
    let prefix = format!("{}.", message.name);
    let is_nested = move |name: &&'m str| {
        name.strip_prefix(prefix.as_str())
            .is_some_and(|rest| !rest.contains('.'))
    };
    let messages = model.messages.keys().map(QualifiedName::full);
    let enums = model.enums.keys().map(QualifiedName::full);
    messages
        .chain(enums)
        .filter(is_nested)
        .map(|name| name.rsplit('.').next().unwrap_or(name))
}

/// `option` is an `Option` of a reference to the field's value.
fn convert(option: TokenStream, field: &Field, column: &Column, kind: &Kind, placement: &Placement) -> TokenStream {
    let present = if has_presence(field) || field.oneof.is_some() {
        option.clone()
    } else {
        quote!(wire::non_default(#option))
    };
    if is_own_namespace(column) {
        return quote!(wire::own_namespace(#option, object.metadata.namespace.as_ref()));
    }
    match &column.ty {
        ColumnType::Enum(enumeration) => {
            let path = placement.rust_path(enumeration.full());
            let path = path.strip_prefix(&own_module(kind)).unwrap_or(&path);
            let path: TokenStream = path.parse().expect("a path");
            quote!(wire::enum_name::<#path>(#present))
        }
        ColumnType::Text if !is_string(field) => quote!(wire::json_text(#present)),
        ColumnType::Int64 if scalar(field) == Some(Scalar::UInt32) => {
            quote!(#present.map(|it| i64::from(*it)).to_column_value())
        }
        ColumnType::Double if scalar(field) == Some(Scalar::Float) => {
            quote!(#present.map(|it| f64::from(*it)).to_column_value())
        }
        ColumnType::Text
        | ColumnType::Int32
        | ColumnType::Int64
        | ColumnType::UInt64
        | ColumnType::Bool
        | ColumnType::Double
        | ColumnType::Timestamp => quote!(#present.to_column_value()),
    }
}

fn is_string(field: &Field) -> bool {
    scalar(field) == Some(Scalar::String)
}

fn scalar(field: &Field) -> Option<Scalar> {
    match field.ty {
        FieldType::Scalar(scalar) | FieldType::WellKnown(WellKnown::Wrapper(scalar)) => Some(scalar),
        FieldType::Enum(_) | FieldType::Message(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_) => None,
    }
}

/// Metadata of a root type is Kubernetes' own struct, in which everything is an `Option`.
fn metadata(path: &[Segment]) -> TokenStream {
    let field = path.first().expect("a column is a field of the metadata");
    let ident = name(&ident::field(&field.json));
    match field.json.as_str() {
        "creationTimestamp" | "deletionTimestamp" => {
            quote!(object.metadata.#ident.as_ref().map(|it| it.0).to_column_value())
        }
        _ => quote!(object.metadata.#ident.to_column_value()),
    }
}

fn name(ident: &str) -> Ident {
    match ident.strip_prefix("r#") {
        Some(raw) => Ident::new_raw(raw, Span::call_site()),
        None => Ident::new(ident, Span::call_site()),
    }
}
