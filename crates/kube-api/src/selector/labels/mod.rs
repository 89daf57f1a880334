//! The label selector grammar of Kubernetes: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, `a>1`,
//! `a<1`, joined by commas, with the meaning and the errors of the API server.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>

mod tokens;

use std::collections::BTreeSet;

use serde_json::Value;

use self::tokens::{Token, Tokens};
use super::{SelectorError, TERMS_MAX, VALUES_MAX};
use crate::names;

/// What follows a key that is neither alone nor negated.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// All of its requirements must hold; without any it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// What is asked of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// What its value has to be.
    pub test: Test,
}

/// What is asked of a label's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// One of these.
    In(BTreeSet<String>),
    /// None of these, or no such label at all.
    NotIn(BTreeSet<String>),
    /// There is such a label.
    Exists,
    /// There is no such label.
    DoesNotExist,
    /// A decimal integer of 64 bits above this one. A value that is none is not selected.
    GreaterThan(i64),
    /// A decimal integer of 64 bits below this one. A value that is none is not selected.
    LessThan(i64),
}

impl LabelSelector {
    /// Reads a selector; the empty text selects everything.
    ///
    /// # Errors
    /// What the API server refuses is refused with its words. Beyond that, more than [`TERMS_MAX`] requirements and
    /// sets of more than [`VALUES_MAX`] values are.
    ///
    /// # Example
    /// ```
    /// use kindex_kube_api::selector::LabelSelector;
    ///
    /// let selector = LabelSelector::parse("team in (fraud,risk),rank>6")?;
    /// let of = |team, rank| selector.matches(move |key| if key == "team" { Some(team) } else { Some(rank) });
    /// assert!(of("risk", "7"));
    /// assert!(!of("risk", "6") && !of("risk", "high"));
    /// # Ok::<_, kindex_kube_api::selector::SelectorError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut tokens = Tokens::of(text);
        let mut requirements: Vec<Requirement> = Vec::new();
        loop {
            match tokens.peek() {
                Token::Word(_) | Token::Not => {
                    requirements.push(requirement(&mut tokens)?);
                    if requirements.len() > TERMS_MAX {
                        return Err(SelectorError::TooMany);
                    }
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

    /// Whether it asks for anything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// What it asks for, in the order of its text.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object is selected whose labels have the values that `value_of` gives for their keys.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        let holds = |Requirement { key, test }: &Requirement| test.holds(value_of(key));
        self.requirements.iter().all(holds)
    }

    /// The same for labels as an object's JSON has them: a map of texts, or nothing.
    pub fn matches_json(&self, labels: &Value) -> bool {
        self.matches(|key| labels.get(key).and_then(Value::as_str))
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Why one requirement cannot be read.
enum Misread {
    /// In the API server's words.
    Text(String),
    TooMany,
}

impl From<String> for Misread {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, SelectorError> {
    parsed(tokens).map_err(|why| match why {
        Misread::Text(why) => refusal(format!("unable to parse requirement: {why}")),
        Misread::TooMany => SelectorError::TooMany,
    })
}

fn parsed(tokens: &mut Tokens<'_>) -> Result<Requirement, Misread> {
    let negated = tokens.take_if(Token::Not);
    let key = match tokens.take() {
        Token::Word(key) => key.to_owned(),
        other => return Err(expected(other, "identifier").into()),
    };
    let problems = names::qualified_name_problems(&key);
    if !problems.is_empty() {
        return Err(format!("<nil>: Invalid value: {key:?}: {}", problems.join("; ")).into());
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
        Token::Equal(_) => Test::In([checked_one(&key, one(tokens)?)?].into()),
        Token::NotEqual => Test::NotIn([checked_one(&key, one(tokens)?)?].into()),
        Token::Word("in") => Test::In(checked_set(&key, set(tokens)?)?),
        Token::Word("notin") => Test::NotIn(checked_set(&key, set(tokens)?)?),
        Token::Greater => Test::GreaterThan(bound(&key, &one(tokens)?)?),
        Token::Less => Test::LessThan(bound(&key, &one(tokens)?)?),
        other => return Err(expected(other, OPERATORS).into()),
    };
    Ok(Requirement { key, test })
}

/// Refuses what the grammar lets through: values that no label can have.
fn checked_set(key: &str, values: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    let numbered = values.iter().enumerate();
    all_of(
        numbered
            .filter_map(|(index, value)| problem_of_value(key, index, value))
            .collect(),
    )?;
    Ok(values)
}

fn checked_one(key: &str, value: String) -> Result<String, String> {
    all_of(problem_of_value(key, 0, &value).into_iter().collect())?;
    Ok(value)
}

/// The number of `>` and `<`. A sign is read, and then refused as no label's value.
fn bound(key: &str, value: &str) -> Result<i64, String> {
    let number = value.parse();
    let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
    let misfit = number
        .is_err()
        .then(|| format!("values[0]: Invalid value: {value:?}: {rule}"));
    all_of(misfit.into_iter().chain(problem_of_value(key, 0, value)).collect())?;
    Ok(number.unwrap_or_default())
}

fn problem_of_value(key: &str, index: usize, value: &str) -> Option<String> {
    let problems = names::label_value_problems(value);
    let said = || {
        format!(
            "values[{index}][{key}]: Invalid value: {value:?}: {}",
            problems.join("; ")
        )
    };
    (!problems.is_empty()).then(said)
}

fn all_of(problems: Vec<String>) -> Result<(), String> {
    match &problems[..] {
        [] => Ok(()),
        [problem] => Err(problem.clone()),
        problems => Err(format!("[{}]", problems.join(", "))),
    }
}

/// The value after an operator, which may be left out.
fn one(tokens: &mut Tokens<'_>) -> Result<String, String> {
    if matches!(tokens.peek(), Token::End | Token::Comma) {
        return Ok(String::new());
    }
    match tokens.take() {
        Token::Word(value) => Ok(value.to_owned()),
        other => Err(expected(other, "identifier")),
    }
}

/// The values after `in`; between two commas, and between one and a parenthesis, there is an empty one.
fn set(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, Misread> {
    match tokens.take() {
        Token::Open => {}
        other => return Err(format!("found '{}' expected: '('", other.literal()).into()),
    }
    let mut values = BTreeSet::new();
    match tokens.peek() {
        Token::Word(_) | Token::Comma => {}
        // Nothing between the parentheses is the empty value.
        Token::Close => {
            tokens.take();
            return Ok([String::new()].into());
        }
        other => return Err(expected(other, "',', ')' or identifier").into()),
    }
    let mut read = 0;
    loop {
        read += 1;
        // Between two values there is a comma.
        if read > 2 * VALUES_MAX {
            return Err(Misread::TooMany);
        }
        match tokens.take() {
            Token::Word(value) => {
                values.insert(value.to_owned());
                match tokens.peek() {
                    Token::Comma => {}
                    Token::Close => break,
                    other => return Err(expected(other, "',' or ')'").into()),
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
            other => return Err(expected(other, "',', or identifier").into()),
        }
    }
    tokens.take();
    Ok(values)
}

fn refusal(message: String) -> SelectorError {
    SelectorError::Labels(message)
}

fn expected(found: Token<'_>, wanted: &str) -> String {
    format!("found '{}', expected: {wanted}", found.literal())
}

#[cfg(test)]
mod tests;
