//! Parses conditions that people type: comparisons joined by `and`, `or` and `not`, with parentheses. An error has its
//! position. Names are looked up in the kind's static tables and values are bound, so that no input becomes SQL.

use kindex_model::kind::{ColumnType, Kind};
use kindex_model::value::Value;

use super::criteria::{CriterionOperator, check_depth, compared};
use super::text::{TextError, operand, resolve};
use crate::Select;
use crate::select::{Condition, QuerySize};

/// An operator comes before those that are its prefix.
const OPERATORS: [(&str, CriterionOperator); 8] = [
    ("!=", CriterionOperator::NotEqual),
    ("<>", CriterionOperator::NotEqual),
    ("<=", CriterionOperator::LessThanOrEqualTo),
    (">=", CriterionOperator::GreaterThanOrEqualTo),
    ("==", CriterionOperator::Equal),
    ("=", CriterionOperator::Equal),
    ("<", CriterionOperator::LessThan),
    (">", CriterionOperator::GreaterThan),
];
const COMPARISONS: &str =
    "expected one of =, !=, <, <=, >, >=, in (…), like, is null, is not null, not in (…), not like after the column";

impl Select {
    /// Only rows for which a condition holds, with SQL's meaning: a row without a value matches no
    /// comparison, and none that is negated. Comparisons are `column OP value` with `=`, `!=`, `<`, `<=`,
    /// `>` or `>=`, `column in (value, …)`, `column like value` and `column is null`, with `not` before `in`,
    /// `like` and `null`. They are joined by `and`, `or`, `not` and parentheses; `and` binds more
    /// strongly than `or`. A value may stand in single or double quotes, in which two stand for one.
    ///
    /// # Errors
    /// [`TextError::Expression`], with the position.
    pub fn filter_by(&mut self, text: &str) -> Result<(), TextError> {
        let mut parser = Parser {
            kind: self.kind(),
            text,
            at: 0,
            size: self.size,
        };
        let read = parser.alternatives(1).and_then(|condition| match parser.take()? {
            (_, Token::End) => Ok(condition),
            (at, Token::Close) => Err(SyntaxError::new(at, "closing parenthesis without an opening one")),
            (at, _) => Err(SyntaxError::new(at, "expected `and`, `or` or the end of the condition")),
        });
        let condition = read.map_err(|error| error.shown(text))?;
        self.size = parser.size;
        self.require(condition);
        Ok(())
    }
}

/// A syntax error, and the byte at which it is.
struct SyntaxError {
    at: usize,
    message: String,
}

impl SyntaxError {
    fn new(at: usize, message: impl ToString) -> Self {
        Self {
            at,
            message: message.to_string(),
        }
    }

    fn of(at: usize, error: &TextError) -> Self {
        Self::new(at, error)
    }

    fn shown(self, text: &str) -> TextError {
        let line = |text: &str| text.replace(|c: char| c.is_control(), " ");
        TextError::Expression {
            message: self.message,
            text: line(text),
            caret: " ".repeat(text[..self.at].chars().count()) + "^",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// Without quotes, up to a space or a special character.
    Word(&'a str),
    Quoted(String),
    Operator(CriterionOperator),
    Open,
    Close,
    Comma,
    End,
}

impl Token<'_> {
    fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

/// The parser of one condition.
struct Parser<'a> {
    kind: &'static Kind,
    text: &'a str,
    at: usize,
    size: QuerySize,
}

impl<'a> Parser<'a> {
    fn alternatives(&mut self, depth: usize) -> Result<Condition, SyntaxError> {
        self.joined(depth, "or", Condition::Any, Self::conjunction)
    }

    fn conjunction(&mut self, depth: usize) -> Result<Condition, SyntaxError> {
        self.joined(depth, "and", Condition::All, Self::term)
    }

    /// Parts with a keyword between them. A single part is not wrapped in a group.
    fn joined(
        &mut self,
        depth: usize,
        word: &str,
        group: fn(Vec<Condition>) -> Condition,
        part: fn(&mut Self, usize) -> Result<Condition, SyntaxError>,
    ) -> Result<Condition, SyntaxError> {
        let mut parts = vec![part(self, depth)?];
        while self.accept(word)? {
            parts.push(part(self, depth)?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => group(parts),
        })
    }

    fn term(&mut self, depth: usize) -> Result<Condition, SyntaxError> {
        let (at, token) = self.take()?;
        let inner = || check_depth(depth + 1).map_err(|error| SyntaxError::of(at, &error));
        match token {
            Token::Open => {
                inner()?;
                let condition = self.alternatives(depth + 1)?;
                match self.take()? {
                    (_, Token::Close) => Ok(condition),
                    (at, Token::End) => Err(SyntaxError::new(at, "missing closing parenthesis")),
                    (at, _) => Err(SyntaxError::new(at, "expected `and`, `or` or a closing parenthesis")),
                }
            }
            ref not if not.is("not") => {
                inner()?;
                Ok(Condition::Not(Box::new(self.term(depth + 1)?)))
            }
            Token::Word(column) => self.comparison(at, column),
            Token::Quoted(_) | Token::Operator(_) | Token::Close | Token::Comma | Token::End => Err(SyntaxError::new(
                at,
                "expected a column, as in state=VALUE, `not` or an opening parenthesis",
            )),
        }
    }

    fn comparison(&mut self, at: usize, column: &str) -> Result<Condition, SyntaxError> {
        let (column, ty) = resolve(self.kind, column).map_err(|error| SyntaxError::of(at, &error))?;
        let (operator_at, token) = self.take()?;
        let negated = token.is("not");
        let (word_at, word) = if negated { self.take()? } else { (operator_at, token) };
        let (operator, values) = match word {
            Token::Operator(operator) if !negated => (operator, vec![self.value(column, ty)?]),
            word if word.is("in") => (CriterionOperator::In, self.values(column, ty)?),
            // The comparison checks that the column holds text, not the pattern.
            word if word.is("like") => (
                CriterionOperator::Like,
                vec![self.value(column, ColumnType::Text { chars: 0 })?],
            ),
            word if word.is("is") && !negated => {
                let operator = match self.accept("not")? {
                    true => CriterionOperator::IsNotNull,
                    false => CriterionOperator::IsNull,
                };
                let (null_at, null) = self.take()?;
                if !null.is("null") {
                    return Err(SyntaxError::new(null_at, "expected null or not null after `is`"));
                }
                (operator, Vec::new())
            }
            _ => return Err(SyntaxError::new(word_at, COMPARISONS)),
        };
        let grown = self.size.grow(values.len()).map_err(TextError::Group);
        let condition = grown.and_then(|()| compared(column, ty, operator, values));
        let condition = condition.map_err(|error| SyntaxError::of(at, &error))?;
        Ok(match negated {
            true => Condition::Not(Box::new(condition)),
            false => condition,
        })
    }

    /// A value: any word, or any quoted text.
    fn value(&mut self, column: &'static str, ty: ColumnType) -> Result<Value, SyntaxError> {
        let (at, token) = self.take()?;
        let text = match token {
            Token::Word(word) => word.to_owned(),
            Token::Quoted(text) => text,
            Token::Operator(_) | Token::Open | Token::Close | Token::Comma | Token::End => {
                let message =
                    "expected a value; write '' for the empty text, and quote a value with special characters";
                return Err(SyntaxError::new(at, message));
            }
        };
        operand(column, ty, &text).map_err(|error| SyntaxError::of(at, &error))
    }

    fn values(&mut self, column: &'static str, ty: ColumnType) -> Result<Vec<Value>, SyntaxError> {
        let (at, open) = self.take()?;
        if open != Token::Open {
            let message = "expected values in parentheses after `in`, as in state in (A, B)";
            return Err(SyntaxError::new(at, message));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value(column, ty)?);
            match self.take()? {
                (_, Token::Comma) => {}
                (_, Token::Close) => return Ok(values),
                (at, _) => return Err(SyntaxError::new(at, "expected a comma or a closing parenthesis")),
            }
        }
    }

    /// Takes a keyword, if it is the next token.
    fn accept(&mut self, keyword: &str) -> Result<bool, SyntaxError> {
        let before = self.at;
        let accepted = self.take()?.1.is(keyword);
        if !accepted {
            self.at = before;
        }
        Ok(accepted)
    }

    /// The next token, and where it begins.
    fn take(&mut self) -> Result<(usize, Token<'a>), SyntaxError> {
        let text: &'a str = self.text;
        let rest = text[self.at..].trim_start();
        let at = text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            self.at = text.len();
            return Ok((at, Token::End));
        };
        let operator = OPERATORS.into_iter().find(|(sign, _)| rest.starts_with(sign));
        let (length, token) = match first {
            '(' => (1, Token::Open),
            ')' => (1, Token::Close),
            ',' => (1, Token::Comma),
            '\'' | '"' => {
                let quoted = quoted(rest, first);
                let (length, text) = quoted.ok_or_else(|| SyntaxError::new(at, "missing closing quote"))?;
                (length, Token::Quoted(text))
            }
            _ => match operator {
                Some((sign, operator)) => (sign.len(), Token::Operator(operator)),
                None => {
                    let ends = |c: char| c.is_whitespace() || "(),'\"=<>".contains(c);
                    let length = rest.find(ends).unwrap_or(rest.len());
                    // `a!=b` needs no spaces; a `!` elsewhere belongs to the word.
                    let length = match rest[..length].strip_suffix('!') {
                        Some(word) if rest[length..].starts_with('=') && !word.is_empty() => word.len(),
                        Some(_) | None => length,
                    };
                    (length, Token::Word(&rest[..length]))
                }
            },
        };
        self.at = at + length;
        Ok((at, token))
    }
}

/// The length of a quoted text with its quotes, and the text between them.
fn quoted(text: &str, quote: char) -> Option<(usize, String)> {
    let (mut value, mut characters) = (String::new(), text.char_indices().skip(1).peekable());
    while let Some((at, character)) = characters.next() {
        if character != quote {
            value.push(character);
        } else if characters.next_if(|(_, next)| *next == quote).is_some() {
            value.push(quote);
        } else {
            return Some((at + quote.len_utf8(), value));
        }
    }
    None
}
