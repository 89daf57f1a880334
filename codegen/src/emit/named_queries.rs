//! The named queries as static data, by which the runtime answers them without the functions that `query` emits.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::Ident;

use super::kind_table;
use super::rust_types::ident;
use crate::model::{self, BaseColumn, ColumnRef, Comparison, Condition, Direction, Kind, Model, Operand, Order, Query};

/// The table of all queries, in the order of crds.toml. Names are those of `kindex_model::kind`.
pub(super) fn table(model: &Model) -> TokenStream {
    let queries = model.queries.iter().map(|query| {
        let kind = model.kinds.iter().find(|kind| kind.name == query.kind);
        entry(query, kind.expect("lower resolves kinds"))
    });
    quote! {
        /// The named queries, in the order of crds.toml.
        pub static QUERIES: &[&NamedQuery] = &[#(&#queries),*];
    }
}

fn entry(query: &Query, kind: &Kind) -> TokenStream {
    let (name, doc) = (query.name.to_string(), &query.doc);
    let module: Ident = syn::parse_str(&ident::field(&kind.module)).expect("a module's name is an identifier");
    let conditions = query.conditions.iter().map(|found| condition(found, kind));
    let order = query.order_by.iter().map(|found| order(found, kind));
    let limit = match query.limit {
        Some(rows) => {
            let rows = Literal::u32_unsuffixed(rows);
            quote!(Some(#rows))
        }
        None => quote!(None),
    };
    quote! {
        NamedQuery {
            name: #name,
            doc: #doc,
            kind: &crate::kinds::#module::KIND,
            conditions: &[#(#conditions),*],
            order: &[#(#order),*],
            limit: #limit,
        }
    }
}

fn condition(condition: &Condition, kind: &Kind) -> TokenStream {
    let (column, ty) = (condition.column.name(), column_type(&condition.column, kind));
    let comparison = match condition.comparison {
        Comparison::Equal => quote!(Equal),
        Comparison::NotEqual => quote!(NotEqual),
        Comparison::Less => quote!(Less),
        Comparison::LessOrEqual => quote!(LessOrEqual),
        Comparison::Greater => quote!(Greater),
        Comparison::GreaterOrEqual => quote!(GreaterOrEqual),
    };
    let operand = match &condition.operand {
        Operand::Parameter(name) => {
            let name = name.as_str();
            quote!(Operand::Parameter(#name))
        }
        Operand::Literal(model::Literal::Text(text)) => quote!(Operand::Text(#text)),
        Operand::Literal(model::Literal::Integer(number)) => {
            let number = Literal::i128_unsuffixed(*number);
            match is_unsigned(&condition.column, kind) {
                true => quote!(Operand::Unsigned(#number)),
                false => quote!(Operand::Integer(#number)),
            }
        }
        Operand::Literal(model::Literal::Bool(flag)) => quote!(Operand::Bool(#flag)),
    };
    quote! {
        QueryCondition {
            column: #column,
            ty: #ty,
            comparison: Comparison::#comparison,
            operand: #operand,
        }
    }
}

/// The columns whose type in [`column_type`] is `UInt64`.
fn is_unsigned(column: &ColumnRef, kind: &Kind) -> bool {
    match column {
        ColumnRef::Extracted(name) => {
            let column = kind.column(name).expect("lower resolves columns");
            column.ty == model::ColumnType::UInt64
        }
        ColumnRef::Base(_) => false,
    }
}

fn order(order: &Order, kind: &Kind) -> TokenStream {
    let (column, ty) = (order.column.name(), column_type(&order.column, kind));
    let descending = match order.direction {
        Direction::Ascending => false,
        Direction::Descending => true,
    };
    quote! { QueryOrder { column: #column, ty: #ty, descending: #descending } }
}

fn column_type(column: &ColumnRef, kind: &Kind) -> TokenStream {
    let variant = match column {
        ColumnRef::Extracted(name) => kind_table::column_type(kind.column(name).expect("lower resolves columns")),
        ColumnRef::Base(base) => match base {
            BaseColumn::Uid | BaseColumn::GroupVer | BaseColumn::Namespace | BaseColumn::Name => {
                "Text { chars: 255 }".to_owned()
            }
            BaseColumn::ResVersion => "Int64".to_owned(),
            BaseColumn::CreateTime | BaseColumn::UpdateTime | BaseColumn::DeleteTime | BaseColumn::EvictedTime => {
                "Time".to_owned()
            }
            BaseColumn::Proto | BaseColumn::Json | BaseColumn::ContentHash | BaseColumn::Seq => {
                unreachable!("lower refuses conditions on payloads and places")
            }
        },
    };
    format!("ColumnType::{variant}").parse().expect("a path, and fields")
}
