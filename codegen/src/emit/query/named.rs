//! A named query of crds.toml as a function that returns the query, ready to be narrowed further or fetched.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::Ident;

use super::columns::{constant, identifier, method, operand};
use crate::emit::rust_types::placement::Placement;
use crate::model::{
    self, BaseColumn, ColumnRef, ColumnType, Comparison, Condition, Direction, Kind, Operand, Order, Query,
};

/// The function. A live row is one that is not deleted, so that every named query asks for it.
pub(super) fn function(query: &Query, kind: &Kind, placement: &Placement) -> TokenStream {
    let doc = doc(query);
    let name = identifier(&query.name.function());
    let parameters = parameters(query, kind, placement);
    let conditions = query.conditions.iter().map(|found| condition(found, kind));
    let orders = query.order_by.iter().map(order);
    let limit = query.limit.map(|rows| {
        let rows = Literal::u32_unsuffixed(rows);
        quote!(.limit(#rows))
    });
    quote! {
        #(#[doc = #doc])*
        pub fn #name(#(#parameters),*) -> Query<kindex_query::Narrowed> {
            query()#(#conditions)*.live()#(#orders)*#limit
        }
    }
}

fn doc(query: &Query) -> Vec<String> {
    let conditions: Vec<String> = query.conditions.iter().map(condition_text).collect();
    let mut lines: Vec<String> = query.doc.lines().map(|line| format!(" {line}")).collect();
    lines.extend([
        String::new(),
        format!(
            " The query `{}` of crds.toml: `{}`.",
            query.name,
            conditions.join(" and ")
        ),
    ]);
    lines
}

fn condition_text(condition: &Condition) -> String {
    let operand = match &condition.operand {
        Operand::Parameter(name) => format!(":{name}"),
        Operand::Literal(model::Literal::Text(text)) => format!("'{}'", text.replace('\'', "''")),
        Operand::Literal(model::Literal::Integer(number)) => number.to_string(),
        Operand::Literal(model::Literal::Bool(flag)) => flag.to_string(),
    };
    let column = condition.column.name();
    format!("{column} {} {operand}", condition.comparison.as_str())
}

/// Each parameter once, in the order of its first use.
fn parameters(query: &Query, kind: &Kind, placement: &Placement) -> Vec<TokenStream> {
    let mut seen = Vec::new();
    let mut parameters = Vec::new();
    for condition in &query.conditions {
        let Operand::Parameter(name) = &condition.operand else {
            continue;
        };
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let argument = identifier(name.as_str());
        let ty: TokenStream = operand(&column_type(&condition.column, kind), placement)
            .parse()
            .expect("operands are Rust types");
        parameters.push(quote!(#argument: #ty));
    }
    parameters
}

fn condition(condition: &Condition, kind: &Kind) -> TokenStream {
    let column = column(&condition.column);
    let comparison = match condition.comparison {
        Comparison::Equal => quote!(eq),
        Comparison::NotEqual => quote!(ne),
        Comparison::Less => quote!(lt),
        Comparison::LessOrEqual => quote!(le),
        Comparison::Greater => quote!(gt),
        Comparison::GreaterOrEqual => quote!(ge),
    };
    match &condition.operand {
        Operand::Parameter(name) => {
            let argument = identifier(name.as_str());
            quote!(.#column().#comparison(#argument))
        }
        Operand::Literal(literal) => {
            let by_name = match column_type(&condition.column, kind) {
                ColumnType::Enum(_) => quote!(.by_name()),
                ColumnType::Text
                | ColumnType::Int32
                | ColumnType::Int64
                | ColumnType::UInt64
                | ColumnType::Bool
                | ColumnType::Double
                | ColumnType::Timestamp => quote!(),
            };
            let value = literal_value(literal);
            quote!(.#column()#by_name.#comparison(#value))
        }
    }
}

fn literal_value(literal: &model::Literal) -> TokenStream {
    match literal {
        model::Literal::Text(text) => quote!(#text),
        model::Literal::Integer(number) => {
            let number = Literal::i128_unsuffixed(*number);
            quote!(#number)
        }
        model::Literal::Bool(flag) => quote!(#flag),
    }
}

fn order(order: &Order) -> TokenStream {
    let constant = identifier(&match &order.column {
        ColumnRef::Base(base) => base.name().to_ascii_uppercase(),
        ColumnRef::Extracted(name) => constant(name),
    });
    match order.direction {
        Direction::Ascending => quote!(.order_by(constants::#constant).asc()),
        Direction::Descending => quote!(.order_by(constants::#constant).desc()),
    }
}

fn column(column: &ColumnRef) -> Ident {
    match column {
        ColumnRef::Base(base) => identifier(base.name()),
        ColumnRef::Extracted(name) => identifier(&method(name)),
    }
}

fn column_type(column: &ColumnRef, kind: &Kind) -> ColumnType {
    match column {
        ColumnRef::Extracted(name) => {
            let column = kind.column(name);
            column.expect("lower resolves columns").ty.clone()
        }
        ColumnRef::Base(base) => match base {
            BaseColumn::Uid | BaseColumn::GroupVer | BaseColumn::Namespace | BaseColumn::Name => ColumnType::Text,
            BaseColumn::ResVersion => ColumnType::Int64,
            BaseColumn::CreateTime | BaseColumn::UpdateTime | BaseColumn::DeleteTime | BaseColumn::EvictedTime => {
                ColumnType::Timestamp
            }
            BaseColumn::Proto | BaseColumn::Json | BaseColumn::ContentHash | BaseColumn::Seq => {
                unreachable!("lower refuses conditions on payloads and places")
            }
        },
    }
}
