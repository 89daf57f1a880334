//! Reads the text of `where` and `order_by` into words with their places. What the words refer to is checked in
//! `queries`.

use std::ops::Range;

use crate::model::{Comparison, Direction, Literal};

/// A condition as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConditionText {
    pub(super) column: Range<usize>,
    pub(super) comparison: Comparison,
    pub(super) operand: OperandText,
    /// Of the operand.
    pub(super) range: Range<usize>,
}

/// The right side of a condition as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OperandText {
    /// `:name`, without the colon.
    Parameter(String),
    Literal(Literal),
}

/// What was expected and not found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unexpected {
    pub(super) range: Range<usize>,
    pub(super) wanted: &'static str,
}

/// `condition and condition …`
pub(super) fn conditions(text: &str) -> Result<Vec<ConditionText>, Unexpected> {
    let mut words = words(text)?.into_iter();
    let mut conditions = Vec::new();
    loop {
        conditions.push(condition(text, &mut words)?);
        match words.next() {
            None => return Ok(conditions),
            Some(word) if text[word.clone()].eq_ignore_ascii_case("and") => {}
            Some(range) => {
                return Err(Unexpected { range, wanted: "`and`" });
            }
        }
    }
}

fn condition(text: &str, words: &mut impl Iterator<Item = Range<usize>>) -> Result<ConditionText, Unexpected> {
    let end = text.len()..text.len();
    let column = words.next().unwrap_or(end.clone());
    if !is_name(&text[column.clone()]) {
        return Err(Unexpected {
            range: column,
            wanted: "a column",
        });
    }
    let operator = words.next().unwrap_or(end.clone());
    let Some(comparison) = Comparison::parse(&text[operator.clone()]) else {
        return Err(Unexpected {
            range: operator,
            wanted: "one of = != < <= > >=",
        });
    };
    let range = words.next().unwrap_or(end);
    let Some(operand) = operand(&text[range.clone()]) else {
        let wanted = "`:parameter`, `'text'`, a number, `true` or `false`";
        return Err(Unexpected { range, wanted });
    };
    Ok(ConditionText {
        column,
        comparison,
        operand,
        range,
    })
}

fn operand(word: &str) -> Option<OperandText> {
    if let Some(name) = word.strip_prefix(':') {
        return is_name(name).then(|| OperandText::Parameter(name.to_owned()));
    }
    if let Some(inner) = word.strip_prefix('\'') {
        let inner = inner.strip_suffix('\'')?;
        return Some(OperandText::Literal(Literal::Text(inner.replace("''", "'"))));
    }
    let literal = match word {
        "true" => Literal::Bool(true),
        "false" => Literal::Bool(false),
        number => Literal::Integer(number.parse().ok()?),
    };
    Some(OperandText::Literal(literal))
}

/// `column [asc|desc], …`
pub(super) fn orders(text: &str) -> Result<Vec<(Range<usize>, Direction)>, Unexpected> {
    let mut orders = Vec::new();
    let mut start = 0;
    for step in text.split(',') {
        let words = words(step)?;
        let shifted = |range: &Range<usize>| start + range.start..start + range.end;
        let whole = shifted(&(0..step.len()));
        let (column, direction) = match words.as_slice() {
            [column] => (column, Direction::Ascending),
            [column, word] => match step[word.clone()].to_ascii_lowercase().as_str() {
                "asc" => (column, Direction::Ascending),
                "desc" => (column, Direction::Descending),
                _ => {
                    return Err(Unexpected {
                        range: shifted(word),
                        wanted: "`asc` or `desc`",
                    });
                }
            },
            _ => {
                return Err(Unexpected {
                    range: whole,
                    wanted: "a column and `asc` or `desc`",
                });
            }
        };
        if !is_name(&step[column.clone()]) {
            return Err(Unexpected {
                range: shifted(column),
                wanted: "a column",
            });
        }
        orders.push((shifted(column), direction));
        start += step.len() + 1;
    }
    Ok(orders)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Splits at spaces, around operators, and keeps quoted text whole.
fn words(text: &str) -> Result<Vec<Range<usize>>, Unexpected> {
    let bytes = text.as_bytes();
    let is_operator = |byte: u8| matches!(byte, b'=' | b'!' | b'<' | b'>');
    let mut words = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if bytes[at] == b'\'' {
            at = quoted_end(text, start)?;
        } else if is_operator(bytes[at]) {
            while at < bytes.len() && is_operator(bytes[at]) {
                at += 1;
            }
        } else {
            let ends = |byte: u8| byte.is_ascii_whitespace() || is_operator(byte) || byte == b'\'';
            while at < bytes.len() && !ends(bytes[at]) {
                at += 1;
            }
        }
        words.push(start..at);
    }
    Ok(words)
}

/// One past the closing quote; a doubled quote stands for itself.
fn quoted_end(text: &str, start: usize) -> Result<usize, Unexpected> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    while at < bytes.len() {
        if bytes[at] == b'\'' {
            if bytes.get(at + 1) != Some(&b'\'') {
                return Ok(at + 1);
            }
            at += 1;
        }
        at += 1;
    }
    Err(Unexpected {
        range: start..text.len(),
        wanted: "a closing quote",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_need_no_spaces_around_operators() {
        let text = "state=:state AND tier >= 3 and name != 'it''s'";
        let read = conditions(text).expect("legible");
        let columns: Vec<&str> = read.iter().map(|c| &text[c.column.clone()]).collect();
        assert_eq!(columns, ["state", "tier", "name"]);
        assert_eq!(read[0].operand, OperandText::Parameter("state".to_owned()));
        assert_eq!(read[1].comparison, Comparison::GreaterOrEqual);
        let literal = Literal::Text("it's".to_owned());
        assert_eq!(read[2].operand, OperandText::Literal(literal));
    }

    #[test]
    fn what_is_missing_is_named_with_its_place() {
        for (text, range, wanted) in [
            ("", 0..0, "a column"),
            ("state", 5..5, "one of = != < <= > >="),
            ("state = ", 8..8, "`:parameter`, `'text'`, a number, `true` or `false`"),
            ("state == 1", 6..8, "one of = != < <= > >="),
            ("state = 1 or a = 2", 10..12, "`and`"),
            ("state = 'open", 8..13, "a closing quote"),
        ] {
            assert_eq!(conditions(text), Err(Unexpected { range, wanted }), "{text}");
        }
    }

    #[test]
    fn orders_name_columns_and_directions() {
        let text = "update_time desc, name";
        let read = orders(text).expect("legible");
        assert_eq!(read, [(0..11, Direction::Descending), (18..22, Direction::Ascending)]);
        let wrong = orders("name down").expect_err("no direction");
        assert_eq!(wrong.range, 5..9);
    }
}
