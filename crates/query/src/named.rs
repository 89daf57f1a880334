//! The named queries of crds.toml at run time: a template and its parameters become a query.
//! Parameters are checked by the type of the column that they are compared with, and bound.
//! Knows no spelling of SQL and no store.

use std::collections::BTreeMap;

use kindex_model::kind::{NamedQuery, Operand, Registry};
use kindex_model::value::{Unreadable, Value};

use crate::select::{Condition, Direction, Order, Select};

/// Why a named query cannot run with these parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// crds.toml has no query of that name.
    #[error("there is no query {name:?}: {known}")]
    Unknown {
        /// As it was asked for.
        name: String,
        /// The known ones.
        known: String,
    },
    /// A parameter without a value.
    #[error("query {query}: parameter {parameter} is missing")]
    Missing {
        /// The query.
        query: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// A value without a parameter.
    #[error("query {query} has no parameter {parameter:?}: {known}")]
    NoParameter {
        /// The query.
        query: &'static str,
        /// As it was given.
        parameter: String,
        /// What there is.
        known: String,
    },
    /// A value of another type.
    #[error("query {query}: parameter {parameter}: {source}")]
    Value {
        /// The query.
        query: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What its values look like.
        #[source]
        source: Unreadable,
    },
}

/// The query of that name.
///
/// # Errors
/// [`TemplateError::Unknown`] names the known ones.
pub fn named_query(registry: &Registry, name: &str) -> Result<&'static NamedQuery, TemplateError> {
    let found = registry.queries.iter().copied().find(|query| query.name == name);
    found.ok_or_else(|| TemplateError::Unknown {
        name: name.to_owned(),
        known: one_of(registry.queries.iter().map(|query| query.name)),
    })
}

impl Select {
    /// A named query with its parameters. Like every named query it sees rows that are not deleted.
    ///
    /// # Errors
    /// A parameter that is missing, unknown or of another type.
    pub fn named(query: &'static NamedQuery, parameters: &BTreeMap<String, String>) -> Result<Self, TemplateError> {
        let known = query.parameters();
        if let Some(parameter) = parameters.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(TemplateError::NoParameter {
                query: query.name,
                parameter: parameter.clone(),
                known: one_of(known),
            });
        }
        let mut select = Self::all(query.kind);
        for condition in query.conditions {
            let value = match condition.operand {
                Operand::Text(text) => Value::Text(text.to_owned()),
                Operand::Integer(number) => Value::Int(number),
                Operand::Unsigned(number) => Value::UInt(number),
                Operand::Bool(flag) => Value::Bool(flag),
                Operand::Parameter(parameter) => {
                    let query = query.name;
                    let given = parameters.get(parameter);
                    let text = given.ok_or(TemplateError::Missing { query, parameter })?;
                    Value::read(text, condition.ty).map_err(|source| TemplateError::Value {
                        query,
                        parameter,
                        source,
                    })?
                }
            };
            select.conditions.push(Condition::Compare {
                column: condition.column,
                comparison: condition.comparison,
                value,
            });
        }
        select.conditions.push(Condition::Null { column: "delete_time" });
        select.order.extend(query.order.iter().map(|order| Order {
            column: order.column,
            ty: order.ty,
            direction: if order.descending {
                Direction::Descending
            } else {
                Direction::Ascending
            },
        }));
        select.limit = query.limit;
        Ok(select)
    }
}

fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names[..] {
        [] => "there are none".to_owned(),
        _ => format!("one of {}", names.join(", ")),
    }
}
