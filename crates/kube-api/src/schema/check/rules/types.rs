//! The types of an expression's parts, as the schema gives them. Compared are values of which JSON says the same as the
//! API server: it reads dates and durations, and does not ask for the order of sets.

use std::cell::Cell;

use crate::schema::cel::{Comparison, Expression, Refusal};
use crate::schema::structural::{Additional, ListType, Structural, Type as Kind};

/// Formats of strings that CEL does not read as strings.
const READ_FORMATS: [&str; 6] = ["binary", "byte", "date", "date-time", "datetime", "duration"];

/// How many schemas are looked at for all comparisons together.
const STEPS_MAX: u32 = 1_000_000;

#[derive(Clone, Copy)]
enum Type<'a> {
    Bool,
    Int,
    Text,
    /// A list, a map or an object.
    Value(&'a Structural),
    /// An object with the metadata of a resource.
    Resource(&'a Structural),
    /// The name and the generateName of a resource.
    Metadata,
}

/// Checks that `expression` is a question about a value of `schema`, which is a resource at the root.
pub(super) fn check(
    expression: &Expression,
    schema: &Structural,
    is_root: bool,
    steps: &Cell<u32>,
) -> Result<(), Refusal> {
    let own = match is_root {
        true => Type::Resource(schema),
        false => of_schema(schema)?,
    };
    match of(expression, Scope { own, steps })? {
        Type::Bool => Ok(()),
        Type::Int | Type::Text | Type::Value(_) | Type::Resource(_) | Type::Metadata => {
            wrong("must evaluate to a bool")
        }
    }
}

fn wrong<T>(why: &str) -> Result<T, Refusal> {
    Err(Refusal::Wrong(why.to_owned()))
}

fn unsupported<T>(what: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Unsupported(what.into()))
}

fn of_schema(schema: &Structural) -> Result<Type<'_>, Refusal> {
    if schema.embedded_resource {
        return Ok(Type::Resource(schema));
    }
    match schema.kind {
        Some(Kind::Object | Kind::Array) => Ok(Type::Value(schema)),
        Some(Kind::Boolean) => Ok(Type::Bool),
        Some(Kind::Integer) => Ok(Type::Int),
        Some(Kind::String) => match &schema.rules.format {
            Some((name, _)) if READ_FORMATS.contains(&name.as_str()) => {
                unsupported(format!("a string of format {name}"))
            }
            Some(_) | None => Ok(Type::Text),
        },
        Some(Kind::Number) => unsupported("a value of type number"),
        None => unsupported("a value of any type"),
    }
}

/// What an expression is about.
#[derive(Clone, Copy)]
struct Scope<'a> {
    own: Type<'a>,
    steps: &'a Cell<u32>,
}

fn of<'a>(expression: &Expression, scope: Scope<'a>) -> Result<Type<'a>, Refusal> {
    let is = |expression: &Expression, wanted: fn(Type<'a>) -> bool| match of(expression, scope) {
        Ok(found) if wanted(found) => Ok(()),
        Ok(_) => wrong("found no matching overload"),
        Err(refusal) => Err(refusal),
    };
    let bool = |expression: &Expression| is(expression, |found| matches!(found, Type::Bool));
    let text = |expression: &Expression| is(expression, |found| matches!(found, Type::Text));
    Ok(match expression {
        Expression::Bool(_) => Type::Bool,
        Expression::Int(_) => Type::Int,
        Expression::Text(_) => Type::Text,
        Expression::Variable(_) => scope.own,
        Expression::Field(object, name) => match field(of(object, scope)?, name)? {
            Field::Known(found) => found,
            Field::Declared(schema) if schema.nullable => {
                return unsupported(format!("the nullable field '{name}'"));
            }
            Field::Declared(schema) => of_schema(schema)?,
        },
        Expression::Has(object, name) => {
            let _there = field(of(object, scope)?, name)?;
            Type::Bool
        }
        Expression::Size(value) => {
            is(value, |found| match found {
                Type::Text => true,
                Type::Value(schema) => schema.items.is_some() || matches!(schema.additional, Additional::Schema(_)),
                Type::Bool | Type::Int | Type::Resource(_) | Type::Metadata => false,
            })?;
            Type::Int
        }
        Expression::Test(_, value, part) => {
            text(value)?;
            text(part)?;
            Type::Bool
        }
        Expression::Not(value) => {
            bool(value)?;
            Type::Bool
        }
        Expression::And(all) | Expression::Or(all) => {
            all.iter().try_for_each(bool)?;
            Type::Bool
        }
        Expression::Compare(comparison, left, right) => {
            compared(*comparison, of(left, scope)?, of(right, scope)?, scope.steps)?;
            Type::Bool
        }
        Expression::Sum(all) => {
            let found = all.iter().map(|one| of(one, scope)).collect::<Result<Vec<_>, _>>()?;
            sum(&found)?
        }
        Expression::If(parts) => {
            let [condition, then, otherwise] = &**parts;
            bool(condition)?;
            match (of(then, scope)?, of(otherwise, scope)?) {
                (Type::Bool, Type::Bool) => Type::Bool,
                (Type::Int, Type::Int) => Type::Int,
                (Type::Text, Type::Text) => Type::Text,
                _ => return unsupported("a condition between other values than strings, integers and booleans"),
            }
        }
    })
}

/// Integers are added, strings joined.
fn sum<'a>(all: &[Type<'a>]) -> Result<Type<'a>, Refusal> {
    if all.iter().all(|one| matches!(one, Type::Int)) {
        Ok(Type::Int)
    } else if all.iter().all(|one| matches!(one, Type::Text)) {
        Ok(Type::Text)
    } else {
        wrong("found no matching overload for '_+_'")
    }
}

/// A field: of a resource, or as its schema declares it.
enum Field<'a> {
    Known(Type<'a>),
    Declared(&'a Structural),
}

fn field<'a>(object: Type<'a>, name: &str) -> Result<Field<'a>, Refusal> {
    let schema = match object {
        Type::Resource(_) if name == "metadata" => return Ok(Field::Known(Type::Metadata)),
        Type::Resource(_) if name == "apiVersion" || name == "kind" => return Ok(Field::Known(Type::Text)),
        Type::Metadata if name == "name" || name == "generateName" => return Ok(Field::Known(Type::Text)),
        Type::Value(schema) | Type::Resource(schema) => schema,
        Type::Metadata => return wrong(&format!("undefined field '{name}'")),
        Type::Bool | Type::Int | Type::Text => {
            return wrong(&format!("the value of '{name}' has no fields"));
        }
    };
    match (schema.properties.get(name), &schema.additional) {
        (Some(field), _) => Ok(Field::Declared(field)),
        (None, Additional::Schema(_)) => unsupported("a field of a map"),
        (None, Additional::Absent | Additional::Refused | Additional::Any) => {
            wrong(&format!("undefined field '{name}'"))
        }
    }
}

fn compared(comparison: Comparison, left: Type<'_>, right: Type<'_>, steps: &Cell<u32>) -> Result<(), Refusal> {
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::Unequal);
    match (left, right) {
        (Type::Int, Type::Int) | (Type::Text, Type::Text) => Ok(()),
        (Type::Bool, Type::Bool) if is_equality => Ok(()),
        (Type::Bool, Type::Bool) => unsupported("an order of booleans"),
        (Type::Value(left), Type::Value(right)) if is_equality && std::ptr::eq(left, right) => comparable(left, steps),
        (Type::Value(_), Type::Value(_)) if is_equality => unsupported("a comparison of different objects or lists"),
        (Type::Resource(_) | Type::Metadata, Type::Resource(_) | Type::Metadata) if is_equality => {
            unsupported("a comparison of whole resources")
        }
        _ => wrong("found no matching overload"),
    }
}

/// Refuses what JSON may hold in different forms that are equal in CEL.
fn comparable(schema: &Structural, steps: &Cell<u32>) -> Result<(), Refusal> {
    steps.set(steps.get() + 1);
    if steps.get() > STEPS_MAX {
        return unsupported("so large a schema in so many comparisons");
    }
    let says = |what: &str| unsupported(format!("a comparison of values that hold {what}"));
    if schema.nullable {
        return says("nullable fields");
    }
    if schema.preserve_unknown {
        return says("unknown fields");
    }
    match of_schema(schema)? {
        Type::Bool | Type::Int | Type::Text => return Ok(()),
        Type::Resource(_) | Type::Metadata => return says("resources"),
        Type::Value(_) => {}
    }
    if schema.kind == Some(Kind::Array) && schema.list_type != ListType::Atomic {
        return says("lists of type set or map");
    }
    match &schema.additional {
        Additional::Schema(inner) => comparable(inner, steps)?,
        Additional::Any => return says("unknown fields"),
        Additional::Absent | Additional::Refused => {}
    }
    let mut inner = schema.items.as_deref().into_iter().chain(schema.properties.values());
    inner.try_for_each(|inner| comparable(inner, steps))
}
