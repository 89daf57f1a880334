//! Label selectors as text, with the grammar, the meaning and the errors of the API server:
//! `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, joined by commas.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>
//! Knows no SQL but the conditions of a query.

mod rules;

use std::collections::{BTreeMap, BTreeSet};

use self::rules::{problem_of_key, problem_of_value};
use crate::Select;

/// What follows a key that is neither alone nor negated.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";
/// Requirements of one selector, at most: each is a part of a statement, and engines limit those.
const REQUIREMENTS_MAX: usize = 100;
/// Values of one selector, at most.
const VALUES_MAX: usize = 2_000;

/// A label selector that Kubernetes would take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// Why a text is no label selector, in the words of the API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LabelSelectorError(String);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// Reads a selector; the empty text selects everything.
    ///
    /// # Errors
    /// What the API server refuses is refused with its words. Beyond that `a>1` and `a<1` are refused:
    /// SQL holds the values of labels as texts, and has no key that puts them in the order of numbers. So are more
    /// than a hundred requirements, and more than two thousand values.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let mut tokens = Tokens::of(text);
        let mut requirements: Vec<Requirement> = Vec::new();
        let mut values = 0;
        loop {
            match tokens.peek() {
                Token::Word(_) | Token::Not => {
                    let read = requirement(&mut tokens);
                    let read = read.map_err(|why| refusal(format!("unable to parse requirement: {why}")))?;
                    values += read.test.values();
                    requirements.push(read);
                    check_size(requirements.len(), values)?;
                }
                Token::End => return Ok(Self { requirements }),
                other => return Err(refusal(expected(other, "!, identifier, or 'end of string'"))),
            }
            match tokens.take() {
                Token::End => return Ok(Self { requirements }),
                Token::Comma => match tokens.peek() {
                    Token::Word(_) | Token::Not => {}
                    other => return Err(refusal(expected(other, "identifier after ','"))),
                },
                other => return Err(refusal(expected(other, "',' or 'end of string'"))),
            }
        }
    }
}

impl Test {
    fn values(&self) -> usize {
        match self {
            Self::In(values) | Self::NotIn(values) => values.len(),
            Self::Exists | Self::DoesNotExist => 0,
        }
    }
}

fn check_size(requirements: usize, values: usize) -> Result<(), LabelSelectorError> {
    let refused = |most, what| Err(refusal(format!("a selector has at most {most} {what}")));
    if requirements > REQUIREMENTS_MAX {
        return refused(
            REQUIREMENTS_MAX,
            "requirements: put the values of one label into `in (…)`, or ask several times",
        );
    }
    if values > VALUES_MAX {
        return refused(VALUES_MAX, "values: ask several times, each time with some of them");
    }
    Ok(())
}

impl LabelSelector {
    /// Whether labels are selected, with the meaning that [`Select::filter_by_labels`] has.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|Requirement { key, test }| {
            let value = labels.get(key);
            match test {
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Test::Exists => value.is_some(),
                Test::DoesNotExist => value.is_none(),
            }
        })
    }
}

impl Select {
    /// Only objects whose labels a selector matches. As in Kubernetes, `!=` and `notin` match objects
    /// that have no such label at all.
    pub fn filter_by_labels(&mut self, selector: &LabelSelector) {
        for Requirement { key, test } in &selector.requirements {
            match test {
                Test::In(values) => self.label_one_of(key, &borrowed(values)),
                Test::NotIn(values) => self.side_label(key, &borrowed(values), false),
                Test::Exists => self.side_label(key, &[], true),
                Test::DoesNotExist => self.side_label(key, &[], false),
            }
        }
    }
}

fn borrowed(values: &BTreeSet<String>) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let negated = tokens.take_if(Token::Not);
    let key = match tokens.take() {
        Token::Word(key) => key.to_owned(),
        other => return Err(expected(other, "identifier")),
    };
    if let Some(problem) = problem_of_key(&key) {
        return Err(format!("<nil>: Invalid value: {key:?}: {problem}"));
    }
    if negated {
        let test = Test::DoesNotExist;
        return Ok(Requirement { key, test });
    }
    if matches!(tokens.peek(), Token::End | Token::Comma) {
        let test = Test::Exists;
        return Ok(Requirement { key, test });
    }
    let test = match tokens.take() {
        Token::Equal(_) => Test::In(one(tokens)?),
        Token::NotEqual => Test::NotIn(one(tokens)?),
        Token::Word("in") => Test::In(set(tokens)?),
        Token::Word("notin") => Test::NotIn(set(tokens)?),
        operator @ (Token::Greater | Token::Less) => {
            let operator = operator.literal();
            return Err(format!(
                "{key}: '{operator}' compares labels as numbers, and SQL holds them as texts"
            ));
        }
        other => return Err(expected(other, OPERATORS)),
    };
    checked(key, test)
}

/// Refuses what the grammar lets through: a set of nothing, and values that no label can have.
fn checked(key: String, test: Test) -> Result<Requirement, String> {
    let mut problems = Vec::new();
    if let Test::In(values) | Test::NotIn(values) = &test {
        if values.is_empty() {
            let rule = "for 'in', 'notin' operators, values set can't be empty";
            problems.push(format!("values: Invalid value: []: {rule}"));
        }
        for (index, value) in values.iter().enumerate() {
            if let Some(problem) = problem_of_value(value) {
                problems.push(format!("values[{index}][{key}]: Invalid value: {value:?}: {problem}"));
            }
        }
    }
    match &problems[..] {
        [] => Ok(Requirement { key, test }),
        [problem] => Err(problem.clone()),
        problems => Err(format!("[{}]", problems.join(", "))),
    }
}

/// The value after `=`, which may be left out.
fn one(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, String> {
    if matches!(tokens.peek(), Token::End | Token::Comma) {
        return Ok(BTreeSet::from([String::new()]));
    }
    match tokens.take() {
        Token::Word(value) => Ok(BTreeSet::from([value.to_owned()])),
        other => Err(expected(other, "identifier")),
    }
}

/// The values after `in`; between two commas, and between one and a parenthesis, there is an empty one.
fn set(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, String> {
    match tokens.take() {
        Token::Open => {}
        other => return Err(format!("found '{}' expected: '('", other.literal())),
    }
    let mut values = BTreeSet::new();
    match tokens.peek() {
        Token::Word(_) | Token::Comma => {}
        Token::Close => {
            tokens.take();
            return Ok(values);
        }
        other => return Err(expected(other, "',', ')' or identifier")),
    }
    loop {
        match tokens.take() {
            Token::Word(value) => {
                values.insert(value.to_owned());
                match tokens.peek() {
                    Token::Comma => {}
                    Token::Close => break,
                    other => return Err(expected(other, "',' or ')'")),
                }
            }
            Token::Comma => {
                if values.is_empty() || matches!(tokens.peek(), Token::Comma | Token::Close) {
                    values.insert(String::new());
                }
                if matches!(tokens.peek(), Token::Close) {
                    break;
                }
            }
            other => return Err(expected(other, "',', or identifier")),
        }
    }
    tokens.take();
    Ok(values)
}

fn refusal(message: String) -> LabelSelectorError {
    LabelSelectorError(message)
}

fn expected(found: Token<'_>, wanted: &str) -> String {
    format!("found '{}', expected: {wanted}", found.literal())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A key, a value, `in` or `notin`: their place decides.
    Word(&'a str),
    Not,
    /// `=` or `==`.
    Equal(&'a str),
    NotEqual,
    Comma,
    Open,
    Close,
    Greater,
    Less,
    End,
}

impl<'a> Token<'a> {
    fn literal(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Equal(text) => text,
            Self::Not => "!",
            Self::NotEqual => "!=",
            Self::Comma => ",",
            Self::Open => "(",
            Self::Close => ")",
            Self::Greater => ">",
            Self::Less => "<",
            Self::End => "",
        }
    }
}

/// What is left of the text, without blanks before it.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
    const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];

    fn of(text: &'a str) -> Self {
        let rest = text.trim_start_matches(Self::BLANKS);
        Self { rest }
    }

    fn peek(&self) -> Token<'a> {
        let rest = self.rest;
        let pair = rest.get(..2).unwrap_or_default();
        match rest.chars().next() {
            None => Token::End,
            Some('=') if pair == "==" => Token::Equal(pair),
            Some('=') => Token::Equal(&rest[..1]),
            Some('!') if pair == "!=" => Token::NotEqual,
            Some('!') => Token::Not,
            Some('(') => Token::Open,
            Some(')') => Token::Close,
            Some(',') => Token::Comma,
            Some('>') => Token::Greater,
            Some('<') => Token::Less,
            Some(_) => {
                let ends = |c: char| Self::BLANKS.contains(&c) || Self::SYMBOLS.contains(&c);
                Token::Word(&rest[..rest.find(ends).unwrap_or(rest.len())])
            }
        }
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.rest = self.rest[token.literal().len()..].trim_start_matches(Self::BLANKS);
        token
    }

    fn take_if(&mut self, wanted: Token<'_>) -> bool {
        let found = self.peek() == wanted;
        if found {
            self.take();
        }
        found
    }
}

#[cfg(test)]
mod tests;
