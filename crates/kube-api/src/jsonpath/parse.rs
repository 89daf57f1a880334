//! The text of a JSONPath into its steps. Knows nothing of values.

use serde_json::Value;

use super::{Comparison, End, Filter, JsonPath, Operand, Step, Test};

/// A path that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// A bracket is not closed.
    #[error("unterminated array")]
    UnclosedBracket,
    /// A filter is not closed.
    #[error("unterminated filter")]
    UnclosedFilter,
    /// What is in brackets is neither a key nor an index nor a slice.
    #[error("invalid array index {0}")]
    InvalidIndex(String),
    /// A literal of a filter cannot be read.
    #[error("cannot parse {0}")]
    InvalidOperand(String),
    /// A character that begins no step.
    #[error("unrecognized character in action: {0:?}")]
    UnexpectedCharacter(char),
    /// Something that JSONPath has and this reader does not.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

/// Reads a path. At most three filters stand inside each other, so that this calls itself no more often: the first
/// closing parenthesis outside of quotes ends a filter, and what hides it from two filters around it shows it to a
/// third.
pub(super) fn path(text: &str) -> Result<JsonPath, PathError> {
    let text = text.trim();
    let text = text
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'))
        .unwrap_or(text);
    let mut steps = Vec::new();
    let mut rest = text.trim_start_matches(['$', '@']);
    if rest.starts_with(|first: char| first.is_alphanumeric() || first == '_') {
        rest = field(rest, &mut steps);
    }
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '.' if rest.starts_with("..") => {
                return Err(PathError::Unsupported("recursive descent"));
            }
            '.' if rest.len() == 1 => "",
            '.' if rest.starts_with(".[") => &rest[1..],
            '.' => field(&rest[1..], &mut steps),
            '[' if rest.starts_with("[?(") => filter(&rest[3..], &mut steps)?,
            '[' => bracket(&rest[1..], &mut steps)?,
            ' ' | '@' | '$' => &rest[1..],
            other => return Err(PathError::UnexpectedCharacter(other)),
        };
    }
    Ok(JsonPath { steps })
}

/// Reads a field name up to the next step; a backslash takes the character after it as it is.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> &'a str {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' | ' ' | '\t' | '\r' | '\n' => {
                end = at;
                break;
            }
            other => name.push(other),
        }
    }
    steps.push(if name == "*" { Step::Wildcard } else { Step::Field(name) });
    &text[end..]
}

/// Reads what follows `[`: a quoted key, `*`, an index or a slice.
fn bracket<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, PathError> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
    if let Some(quote) = quote {
        let (key, after) = quoted(&text[1..], quote).ok_or(PathError::UnclosedBracket)?;
        if after.starts_with(',') {
            return Err(PathError::Unsupported("a union"));
        }
        steps.push(Step::Field(key));
        return after.strip_prefix(']').ok_or(PathError::UnclosedBracket);
    }
    let (inside, after) = text.split_once(']').ok_or(PathError::UnclosedBracket)?;
    if inside.contains(',') {
        return Err(PathError::Unsupported("a union"));
    }
    steps.push(slice(inside)?);
    Ok(after)
}

/// Reads up to the closing quote; gives the text and what follows the quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => out.push(characters.next()?.1),
            _ if character == quote => return Some((out, &text[at + 1..])),
            other => out.push(other),
        }
    }
    None
}

fn slice(inside: &str) -> Result<Step, PathError> {
    let invalid = || PathError::InvalidIndex(inside.to_owned());
    let index = |text: &str| match text {
        "" => Ok(None),
        digits => digits.parse::<i64>().map(Some).map_err(|_| invalid()),
    };
    if inside == "*" {
        return Ok(Step::Slice {
            start: None,
            end: End::Last,
            step: 1,
        });
    }
    let mut parts = inside.split(':');
    let start = index(parts.next().unwrap_or_default())?;
    let end = match parts.next() {
        None if start.is_none() => return Err(invalid()),
        None => End::AfterStart,
        Some(text) => index(text)?.map_or(End::Last, End::At),
    };
    let step = index(parts.next().unwrap_or_default())?.unwrap_or(1);
    let step = usize::try_from(step)
        .ok()
        .filter(|step| *step > 0)
        .ok_or_else(invalid)?;
    if parts.next().is_some() {
        return Err(invalid());
    }
    Ok(Step::Slice { start, end, step })
}

/// Reads what follows `[?(`.
fn filter<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, PathError> {
    let end = filter_end(text).ok_or(PathError::UnclosedFilter)?;
    let inside = &text[..end];
    let after = text[end + 1..].strip_prefix(']').ok_or(PathError::UnclosedFilter)?;
    let operator_at = inside.find(['=', '!', '<', '>']);
    let test_and_left = match operator_at {
        None => (Test::Exists, inside),
        Some(at) => {
            let length = inside[at..]
                .find(|c| !matches!(c, '=' | '!' | '<' | '>'))
                .unwrap_or(inside.len() - at);
            let comparison = match &inside[at..at + length] {
                "==" => Comparison::Equal,
                "!=" => Comparison::NotEqual,
                "<" => Comparison::Less,
                "<=" => Comparison::LessOrEqual,
                ">" => Comparison::Greater,
                ">=" => Comparison::GreaterOrEqual,
                _ => return Err(PathError::Unsupported("this filter operator")),
            };
            (
                Test::Compare(comparison, operand(inside[at + length..].trim())?),
                &inside[..at],
            )
        }
    };
    let (test, left) = test_and_left;
    steps.push(Step::Filter(Filter {
        left: path(left)?,
        test,
    }));
    Ok(after)
}

/// Where the filter's closing parenthesis is; one within quotes does not count.
fn filter_end(text: &str) -> Option<usize> {
    let mut open_quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match (open_quote, character) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (None, '\'' | '"') => open_quote = Some(character),
            (Some(quote), _) if character == quote => open_quote = None,
            (None, ')') => return Some(at),
            _ => {}
        }
    }
    None
}

fn operand(text: &str) -> Result<Operand, PathError> {
    let invalid = || PathError::InvalidOperand(text.to_owned());
    match text.chars().next().ok_or_else(invalid)? {
        quote @ ('\'' | '"') => match quoted(&text[1..], quote) {
            Some((literal, "")) => Ok(Operand::Literal(Value::String(literal))),
            _ => Err(invalid()),
        },
        '@' | '$' | '.' => Ok(Operand::Path(path(text)?)),
        _ => match serde_json::from_str(text.trim_start_matches('+')) {
            Ok(literal @ (Value::Bool(_) | Value::Number(_))) => Ok(Operand::Literal(literal)),
            _ => Err(invalid()),
        },
    }
}
