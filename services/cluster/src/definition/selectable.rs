//! The fields that a version lets itself be selected by: few, each a scalar that its schema declares, and none twice.
//! From paths and a compiled schema to what is wrong; knows nothing of the form of selectors.

use kindex_kube_api::schema::{Additional, Structural, Type};
use kindex_kube_api::status::FieldProblem;
use serde_json::Value;

/// The most of them, as kube-apiserver has it.
const FIELDS_MAX: usize = 8;
const SCALARS: &str = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats \
     are allowed.";

/// Checks the fields of one version, which stand at `path`. Too many are left to a definition that had them `before`.
pub(super) fn check(
    fields: &Value,
    before: Option<&Value>,
    schema: &Structural,
    path: &str,
    found: &mut Vec<FieldProblem>,
) {
    let mut known: Vec<Vec<&str>> = Vec::new();
    for (at, field) in fields.as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}[{at}].jsonPath");
        let text = field["jsonPath"].as_str().unwrap_or_default();
        if text.is_empty() {
            found.push(FieldProblem::required(path, ""));
            continue;
        }
        let (names, leaf) = match resolve(text, schema) {
            Ok(resolved) => resolved,
            Err(why) => {
                found.push(FieldProblem::invalid(path, text, &format!("is an invalid path: {why}")));
                continue;
            }
        };
        if names.first() == Some(&"metadata") {
            found.push(FieldProblem::invalid(
                &path,
                text,
                "must not point to fields in metadata",
            ));
        }
        if !matches!(leaf.kind, Some(Type::String | Type::Boolean | Type::Integer)) {
            found.push(FieldProblem::invalid(&path, text, SCALARS));
        }
        if known.contains(&names) {
            found.push(FieldProblem::duplicate(path, text));
        } else {
            known.push(names);
        }
    }
    if known.len() > FIELDS_MAX && before != Some(fields) {
        found.push(FieldProblem::too_many(path, known.len(), FIELDS_MAX));
    }
}

/// The names in a path like `.spec.color`, and the schema that it leads to.
fn resolve<'a>(path: &'a str, schema: &'a Structural) -> Result<(Vec<&'a str>, &'a Structural), String> {
    let (mut rest, mut schema, mut names) = (path, schema, Vec::new());
    while !rest.is_empty() {
        if rest.starts_with('[') {
            return Err("array notation is not allowed".to_owned());
        }
        let (delimiter, after) = token(rest);
        if delimiter != "." {
            return Err(format!("expected [ or . but got: {delimiter}"));
        }
        if after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let (name, after) = token(after);
        let inner = match (schema.properties.is_empty(), &schema.additional) {
            (false, _) => schema.properties.get(name),
            (true, Additional::Schema(inner)) => Some(&**inner),
            (true, Additional::Absent | Additional::Refused | Additional::Any) => None,
        };
        schema = inner.ok_or("does not refer to a valid field")?;
        names.push(name);
        rest = after;
    }
    Ok((names, schema))
}

/// The first token, and what follows it: a delimiter, a quoted text, or all up to a delimiter.
fn token(text: &str) -> (&str, &str) {
    let delimiters = ['.', '[', ']'];
    let length = if text.starts_with(delimiters) {
        1
    } else if let Some(quoted) = text.strip_prefix('\'') {
        let ends = |(at, _): &(usize, &str)| !quoted[..*at].ends_with('\\');
        quoted
            .match_indices('\'')
            .find(ends)
            .map_or(text.len(), |(at, _)| at + 2)
    } else {
        text.find(delimiters).unwrap_or(text.len())
    };
    text.split_at(length)
}
