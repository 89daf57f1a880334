//! Rules about one value alone: its type, its choices, the limits of texts and numbers. Does not look inside lists and
//! objects.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::words::{path_or_nil, type_name};
use crate::schema::go_text;
use crate::schema::problem::{FieldError, Path};
use crate::schema::structural::{Rules, Structural, Type};

/// Integers up to here are exact as floating point numbers.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// Checks the JSON type. Gives 1 when it fits.
pub(super) fn kind(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) -> u32 {
    let found = type_name(value);
    if value.is_null() {
        let takes_null = schema.nullable || (schema.kind.is_none() && !schema.int_or_string);
        return if takes_null {
            1
        } else {
            wrong_type(&wanted(schema), found, path, errors)
        };
    }
    let format = schema.rules.format.as_ref().map(|(name, _)| name.as_str());
    let format = format.or(schema.rules.number_format.as_deref());
    let numeric = schema.int_or_string || matches!(schema.kind, Some(Type::Integer | Type::Number));
    let takes = takes_type(schema, value, found);
    match (value, format) {
        // A text with a format is the format's matter.
        (Value::String(_) | Value::Array(_), Some(_)) if !numeric => 1,
        (Value::Bool(_) | Value::Number(_) | Value::Object(_), Some(format)) if !takes => {
            let found = match found {
                "integer" => "int64",
                "number" => "float64",
                _ => "",
            };
            wrong_type(format, found, path, errors)
        }
        _ if takes => 1,
        _ => wrong_type(&wanted(schema), found, path, errors),
    }
}

fn takes_type(schema: &Structural, value: &Value, found: &str) -> bool {
    if schema.int_or_string {
        return found == "string" || found == "integer" || is_whole(value);
    }
    match schema.kind {
        Some(Type::Integer) => found == "integer" || is_whole(value),
        Some(Type::Number) => value.is_number(),
        Some(kind) => kind.name() == found,
        None => false,
    }
}

fn is_whole(value: &Value) -> bool {
    value
        .as_f64()
        .is_some_and(|float| float.fract() == 0.0 && float.abs() <= EXACT_INTEGER_MAX)
}

fn wanted(schema: &Structural) -> String {
    if schema.int_or_string {
        "integer,string".to_owned()
    } else {
        schema.kind.map_or("", Type::name).to_owned()
    }
}

fn wrong_type(wanted: &str, found: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) -> u32 {
    let detail = format!("{path} in body must be of type {wanted}: {}", go_text::quote(found));
    errors.push(FieldError::type_invalid(path_or_nil(path), found, &detail));
    0
}

/// Checks `enum`.
pub(super) fn choices(rules: &Rules, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(choices) = &rules.choices
        && (value.is_null() || !choices.iter().any(|choice| same(choice, value)))
    {
        errors.push(FieldError::not_supported(path_or_nil(path), value, choices));
    }
}

fn same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && a.as_f64() == b.as_f64())
}

/// Checks a text: length, pattern, format. Gives the number of checks passed.
pub(super) fn text(rules: &Rules, text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) -> u32 {
    if let Some(error) = text_limit(rules, text, path) {
        errors.push(error);
    }
    let Some((name, format)) = &rules.format else {
        return 1;
    };
    if !format.accepts(text) {
        let detail = format!("{path} in body must be of type {name}: {}", go_text::quote(text));
        errors.push(FieldError::type_invalid(path_or_nil(path), text, &detail));
    }
    2
}

/// The first limit that a text breaks.
fn text_limit(rules: &Rules, text: &str, path: &Path<'_>) -> Option<FieldError> {
    // Bytes are an upper bound of characters, so that most texts are never counted.
    let characters = || text.chars().count() as u64;
    if let Some(most) = rules
        .max_length
        .filter(|most| text.len() as u64 > *most && characters() > *most)
    {
        return Some(FieldError::too_long(path_or_nil(path), most));
    }
    let detail = if let Some(least) = rules.min_length.filter(|least| characters() < *least) {
        format!("{path} in body should be at least {least} chars long")
    } else {
        let pattern = rules.pattern.as_ref().filter(|pattern| !pattern.regex.is_match(text))?;
        format!("{path} in body should match '{}'", pattern.text)
    };
    Some(FieldError::invalid(
        path_or_nil(path),
        &Value::String(text.to_owned()),
        &detail,
    ))
}

/// Checks the limits of a number. Gives the number of checks passed.
pub(super) fn number(schema: &Structural, number: &Number, path: &Path<'_>, errors: &mut Vec<FieldError>) -> u32 {
    let rules = &schema.rules;
    let integer = schema.kind == Some(Type::Integer) && !schema.int_or_string;
    let limits = [
        ("Checked", number.as_f64()),
        ("MultipleOf", rules.multiple_of),
        ("Minimum boundary", rules.minimum.map(|bound| bound.value)),
        ("Maximum boundary", rules.maximum.map(|bound| bound.value)),
    ];
    for (what, limit) in limits {
        if integer && limit.is_some_and(|limit| !is_integer(limit, rules.number_format.as_deref())) {
            errors.push(not_an_integer(what, rules.number_format.as_deref(), path));
        }
    }
    if let Some(pair) = rules.multiple_of.map(|factor| Pair::of(number, factor, integer)) {
        errors.extend(not_a_multiple(number, &pair, path));
    }
    let broken = [
        rules
            .minimum
            .and_then(|bound| below(&Pair::of(number, bound.value, integer), bound.exclusive)),
        rules
            .maximum
            .and_then(|bound| above(&Pair::of(number, bound.value, integer), bound.exclusive)),
    ];
    for rule in broken.into_iter().flatten() {
        let detail = format!("{path} in body should be {rule}");
        errors.push(FieldError::invalid(
            path_or_nil(path),
            &Value::Number(number.clone()),
            &detail,
        ));
    }
    2
}

/// The API server names no field for these; the path is in the text.
fn not_an_integer(what: &str, format: Option<&str>, path: &Path<'_>) -> FieldError {
    let format = format.map_or("(default format)".to_owned(), |format| format!("with format {format}"));
    let detail = format!("{what} value must be of type integer {format} in {path}");
    FieldError::invalid("<nil>", &Value::String(String::new()), &detail)
}

fn is_integer(value: f64, format: Option<&str>) -> bool {
    let fits = |value: f64| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value);
    is_int64(value) && (format != Some("int32") || fits(value))
}

fn is_int64(value: f64) -> bool {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    value.fract() == 0.0 && (-LIMIT..LIMIT).contains(&value)
}

/// A number and a limit as the API server compares them: an integer with the limit cut to an integer, unless the
/// schema's type is integer and its limit is not.
enum Pair {
    Integers(i64, i64),
    Floats(f64, f64),
}

impl Pair {
    fn of(number: &Number, limit: f64, integer: bool) -> Self {
        match number.as_i64() {
            Some(value) if !integer || is_int64(limit) => Self::Integers(value, limit as i64),
            _ => Self::Floats(number.as_f64().unwrap_or_default(), limit),
        }
    }

    fn order(&self) -> Option<Ordering> {
        match self {
            Self::Integers(value, limit) => Some(value.cmp(limit)),
            Self::Floats(value, limit) => value.partial_cmp(limit),
        }
    }

    fn limit(&self) -> Value {
        match self {
            Self::Integers(_, limit) => Value::from(*limit),
            Self::Floats(_, limit) => Value::from(*limit),
        }
    }

    fn limit_text(&self) -> String {
        match self {
            Self::Integers(_, limit) => limit.to_string(),
            Self::Floats(_, limit) => go_text::float(*limit),
        }
    }
}

fn below(pair: &Pair, exclusive: bool) -> Option<String> {
    match (pair.order()?, exclusive) {
        (Ordering::Less | Ordering::Equal, true) => Some(format!("greater than {}", pair.limit_text())),
        (Ordering::Less, false) => Some(format!("greater than or equal to {}", pair.limit_text())),
        (Ordering::Equal | Ordering::Greater, false) | (Ordering::Greater, true) => None,
    }
}

fn above(pair: &Pair, exclusive: bool) -> Option<String> {
    match (pair.order()?, exclusive) {
        (Ordering::Greater | Ordering::Equal, true) => Some(format!("less than {}", pair.limit_text())),
        (Ordering::Greater, false) => Some(format!("less than or equal to {}", pair.limit_text())),
        (Ordering::Equal | Ordering::Less, false) | (Ordering::Less, true) => None,
    }
}

fn not_a_multiple(number: &Number, pair: &Pair, path: &Path<'_>) -> Option<FieldError> {
    let factor = pair.limit_text();
    let (positive, whole) = match *pair {
        Pair::Integers(value, factor) => (factor >= 1, factor >= 1 && value % factor == 0),
        Pair::Floats(value, factor) if factor >= 1.0 => (true, (value / factor).fract() == 0.0),
        Pair::Floats(value, factor) => (factor > 0.0, (value * (1.0 / factor)).fract() == 0.0),
    };
    if !positive {
        let detail = format!("factor MultipleOf declared for {path} must be positive: {factor}");
        return Some(FieldError::invalid(path_or_nil(path), &pair.limit(), &detail));
    }
    let detail = format!("{path} in body should be a multiple of {factor}");
    (!whole).then(|| FieldError::invalid(path_or_nil(path), &Value::Number(number.clone()), &detail))
}
