//! Whether a schema may stand in a CustomResourceDefinition: well-formed, structural, with defaults that fit. The
//! rules and messages are those of the API server (`apiextensions.k8s.io/v1`). Refuses to compile anything.

mod inner;

mod complete;
mod keywords;
mod patterns;
mod rules;
mod shape;
mod structure;

use serde_json::Value;

use super::metadata;
use super::problem::{FieldError, Path};
use super::prune::prune_inner;
use super::structural::Structural;
use super::validate::validate;

/// Checks everything about `schema` and gives it compiled by `compile`.
pub(super) fn checked(
    schema: &Value,
    at: &str,
    compile: impl FnOnce(&Value) -> Structural,
) -> Result<Structural, Vec<FieldError>> {
    let path = if at.is_empty() {
        Path::Root
    } else {
        Path::Field(&Path::Root, at)
    };
    let mut errors = Vec::new();
    shape::check(schema, &path, &mut errors);
    patterns::check(schema, &path, &mut errors);
    if !errors.is_empty() {
        return Err(sorted(errors));
    }
    let compiled = compile(schema);
    if keywords::are_supported(schema, &path) {
        structure::check(schema, structure::Level::Root, &path, &mut errors);
        complete::check(schema, &path, &mut errors);
        if errors.is_empty() {
            check_defaults(&compiled, &path, &mut errors);
        }
    }
    keywords::check(schema, &keywords::Position::root(), &path, &mut errors);
    if errors.is_empty() {
        rules::check(schema, &compiled, &path, &mut errors);
    }
    if errors.is_empty() {
        Ok(compiled)
    } else {
        Err(sorted(errors))
    }
}

fn sorted(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    errors.sort_by(|a, b| (&a.field, &a.message).cmp(&(&b.field, &b.message)));
    errors.dedup();
    errors
}

/// Checks that each default has no unknown fields and is valid itself.
fn check_defaults(schema: &Structural, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(default) = &schema.default {
        let here = Path::Field(path, "default");
        let mut pruned = default.clone();
        if !prune_inner(schema, &mut pruned).is_empty() {
            errors.push(FieldError::invalid(
                here.to_string(),
                default,
                "must not have unknown fields",
            ));
        }
        let mut problems = Vec::new();
        metadata::check_embedded(schema, default, &Path::Root, &mut problems);
        if problems.is_empty() {
            problems = validate(schema, default);
        }
        for problem in problems {
            let field = match problem.field.as_str() {
                "" | "<nil>" => here.to_string(),
                inner => format!("{here}.{inner}"),
            };
            errors.push(FieldError { field, ..problem });
        }
    }
    if let Some(items) = &schema.items {
        check_defaults(items, &Path::Field(path, "items"), errors);
    }
    let properties = Path::Field(path, "properties");
    for (name, property) in &schema.properties {
        check_defaults(property, &Path::Key(&properties, name), errors);
    }
}

#[cfg(test)]
mod tests;
