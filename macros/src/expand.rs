//! The tokens of the implementation, from validated attributes. One function per emitted item. Field paths keep the
//! user's own spans, so that the compiler's errors point into the attribute.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{DeriveInput, Error, Ident, LitStr};

use crate::attr::{self, FieldPath, Segment};
use crate::valid::{self, Column, Target};

/// Expands the derive, or reports every error and implements the trait without the columns that have one.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Vec::new();
    let written = attr::parse(input, &mut errors);
    let target = valid::target(input, &written).map_err(|error| errors.push(error)).ok();
    let table = target.as_ref().map_or("", |target| &target.table);
    let columns = valid::columns(written.columns, table, &mut errors);
    let errors = errors.iter().map(Error::to_compile_error);
    let expansion = target.map(|target| expand(&target, &columns));
    quote!(#(#errors)* #expansion)
}

/// Names are looked up inside an anonymous constant, where nothing of the user's can shadow them and nothing of
/// ours leaks out.
fn expand(target: &Target, columns: &[Column]) -> TokenStream {
    let readers = columns.iter().map(|column| reader(target, column));
    let implementation = implementation(target, columns);
    quote! {
        const _: () = {
            use ::kindex::model::{indexed, kind, typed, value};
            #(#readers)*
            #implementation
        };
    }
}

/// `fn read_state(object: &Model) -> Option<&impl ToColumnValue>`: the one place where a column's field is named.
fn reader(target: &Target, column: &Column) -> TokenStream {
    let object = &target.object;
    let name = reader_name(&column.name);
    let FieldPath { first, rest } = &column.path;
    let argument = Ident::new("object", Span::mixed_site().located_at(first.field.span()));
    let mut place = step(&quote!(#argument), first);
    let mut last = first;
    for segment in rest {
        place = step(&place, segment);
        last = segment;
    }
    let span = last.field.span();
    let found = match last.optional {
        Some(_) => place,
        None => quote_spanned!(span=> &#place),
    };
    let some = quote_spanned!(span=> ::core::option::Option::Some(#found));
    let value = quote_spanned! {span=>
        ::core::option::Option<&(impl value::ToColumnValue + use<>)>
    };
    quote! {
        #[allow(clippy::needless_question_mark, reason = "a path of one optional field needs no `?`")]
        fn #name(#argument: &#object) -> #value {
            #some
        }
    }
}

fn step(place: &TokenStream, segment: &Segment) -> TokenStream {
    let Segment { field, optional } = segment;
    match optional {
        None => quote!(#place.#field),
        Some(mark) => {
            quote_spanned!(field.span()=> ::core::option::Option::as_ref(&#place.#field)#mark)
        }
    }
}

fn implementation(target: &Target, columns: &[Column]) -> TokenStream {
    let Target { object, table } = target;
    let column_entries = columns.iter().map(column_entry);
    let key_entries = columns.iter().filter_map(key_entry);
    let fields = columns.iter().map(field);
    quote! {
        impl indexed::IndexedObject for #object {
            const TABLE: &'static str = #table;
            const COLUMNS: &'static [kind::Column] = &[#(#column_entries),*];
            const KEYS: &'static [kind::Key] = &[#(#key_entries),*];

            fn get_indexed_key_value_pairs(&self) -> ::std::vec::Vec<indexed::IndexedField> {
                ::std::vec![#(#fields),*]
            }
        }
    }
}

fn column_entry(column: &Column) -> TokenStream {
    let Column { name, json, .. } = column;
    let ty = column_type(column);
    quote! {
        kind::Column {
            name: #name,
            path: &[#(#json),*],
            ty: #ty,
            own_namespace: false,
        }
    }
}

fn column_type(column: &Column) -> TokenStream {
    let reader = reader_name(&column.name);
    match &column.ty {
        None => quote!(typed::column_type(#reader)),
        Some(declared) => {
            let variant = declared.sql.variant();
            quote_spanned!(declared.span=>
                typed::declared_column_type(kind::ColumnType::#variant, #reader)
            )
        }
    }
}

fn key_entry(column: &Column) -> Option<TokenStream> {
    let key = column.key.as_ref()?;
    let name = &column.name;
    Some(quote!(kind::Key { name: #key, columns: &[#name] }))
}

fn field(column: &Column) -> TokenStream {
    let name = &column.name;
    let reader = reader_name(name);
    quote! {
        indexed::IndexedField {
            key: #name,
            value: value::ToColumnValue::to_column_value(&#reader(self)),
        }
    }
}

fn reader_name(column: &LitStr) -> Ident {
    format_ident!("read_{}", column.value())
}
