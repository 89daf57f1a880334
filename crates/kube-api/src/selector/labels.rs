//! The label selector grammar of Kubernetes: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, `a>1`,
//! `a<1`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{SelectorError, TERMS_MAX};
use crate::names;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

/// All of its requirements must hold; without any it matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<(String, Test)>,
}

impl LabelSelector {
    /// Parses the value of `labelSelector`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut tokens = Tokens { rest: text }.peekable();
        let mut requirements = Vec::new();
        while tokens.peek().is_some() {
            requirements.push(requirement(&mut tokens)?);
            if requirements.len() > TERMS_MAX {
                return Err(SelectorError::TooMany);
            }
            match tokens.next() {
                None => break,
                Some(Token::Comma) => {
                    if tokens.peek().is_none() {
                        return Err(expected("", "identifier after ','"));
                    }
                }
                Some(other) => return Err(expected(other.text(), "',' or 'end of string'")),
            }
        }
        Ok(Self { requirements })
    }

    /// Whether it asks for anything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels (a map of strings, or null) is selected.
    pub fn matches(&self, labels: &Value) -> bool {
        self.requirements.iter().all(|(key, test)| {
            let value = labels.get(key).and_then(Value::as_str);
            match test {
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::Above(bound) => number(value).is_some_and(|number| number > *bound),
                Test::Below(bound) => number(value).is_some_and(|number| number < *bound),
            }
        })
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Comma,
    Open,
    Close,
    Not,
    Equal,
    NotEqual,
    Above,
    Below,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(word) => word,
            Self::Comma => ",",
            Self::Open => "(",
            Self::Close => ")",
            Self::Not => "!",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Above => ">",
            Self::Below => "<",
        }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        const SYMBOLS: [(&str, Token<'static>); 9] = [
            ("!=", Token::NotEqual),
            ("==", Token::Equal),
            ("=", Token::Equal),
            ("!", Token::Not),
            (",", Token::Comma),
            ("(", Token::Open),
            (")", Token::Close),
            (">", Token::Above),
            ("<", Token::Below),
        ];
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return None;
        }
        for (symbol, token) in SYMBOLS {
            if let Some(rest) = self.rest.strip_prefix(symbol) {
                self.rest = rest;
                return Some(token);
            }
        }
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || "=!(),<>".contains(c))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(Token::Word(word))
    }
}

type Peekable<'a> = std::iter::Peekable<Tokens<'a>>;

fn expected(found: &str, wanted: &str) -> SelectorError {
    SelectorError::Labels(format!("found '{found}', expected: {wanted}"))
}

fn requirement(tokens: &mut Peekable<'_>) -> Result<(String, Test), SelectorError> {
    if tokens.next_if_eq(&Token::Not).is_some() {
        return Ok((key(tokens)?, Test::Absent));
    }
    let key = key(tokens)?;
    let test = match tokens.peek().copied() {
        None | Some(Token::Comma) => return Ok((key, Test::Exists)),
        Some(token) => {
            tokens.next();
            match token {
                Token::Equal => Test::In([value(&key, tokens)?].into()),
                Token::NotEqual => Test::NotIn([value(&key, tokens)?].into()),
                Token::Word("in") => Test::In(values(&key, tokens)?),
                Token::Word("notin") => Test::NotIn(values(&key, tokens)?),
                Token::Above => Test::Above(bound(&key, tokens)?),
                Token::Below => Test::Below(bound(&key, tokens)?),
                Token::Word(_) | Token::Comma | Token::Open | Token::Close | Token::Not => {
                    return Err(expected(token.text(), "in, notin, =, ==, !=, gt, lt"));
                }
            }
        }
    };
    Ok((key, test))
}

fn key(tokens: &mut Peekable<'_>) -> Result<String, SelectorError> {
    match tokens.next() {
        Some(Token::Word(word)) => match names::qualified_name(word) {
            None => Ok(word.to_owned()),
            Some(problem) => Err(SelectorError::Labels(format!(
                "<nil>: Invalid value: {word:?}: {problem}"
            ))),
        },
        Some(other) => Err(expected(other.text(), "identifier")),
        None => Err(expected("", "identifier")),
    }
}

/// A value may be empty: `a=` and `a=,b`.
fn value(key: &str, tokens: &mut Peekable<'_>) -> Result<String, SelectorError> {
    match tokens.peek().copied() {
        None | Some(Token::Comma) => Ok(String::new()),
        Some(Token::Word(word)) => {
            tokens.next();
            checked(key, word)
        }
        Some(other) => Err(expected(other.text(), "identifier")),
    }
}

fn values(key: &str, tokens: &mut Peekable<'_>) -> Result<BTreeSet<String>, SelectorError> {
    match tokens.next() {
        Some(Token::Open) => {}
        other => return Err(expected(other.map_or("", Token::text), "'('")),
    }
    let (mut found, mut count) = (BTreeSet::new(), 0);
    loop {
        let word = match tokens.peek().copied() {
            Some(Token::Word(word)) => {
                tokens.next();
                checked(key, word)?
            }
            _ => String::new(),
        };
        found.insert(word);
        count += 1;
        if count > TERMS_MAX {
            return Err(SelectorError::TooMany);
        }
        match tokens.next() {
            Some(Token::Comma) => {}
            Some(Token::Close) => return Ok(found),
            other => return Err(expected(other.map_or("", Token::text), "',' or ')'")),
        }
    }
}

fn bound(key: &str, tokens: &mut Peekable<'_>) -> Result<i64, SelectorError> {
    let word = value(key, tokens)?;
    word.parse().map_err(|_| {
        SelectorError::Labels(format!(
            "values[0]: Invalid value: {word:?}: for 'Gt', 'Lt' operators, the value must be an integer"
        ))
    })
}

fn checked(key: &str, word: &str) -> Result<String, SelectorError> {
    match names::label_value(word) {
        None => Ok(word.to_owned()),
        Some(problem) => Err(SelectorError::Labels(format!(
            "values[0][{key}]: Invalid value: {word:?}: {problem}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(selector: &str, labels: &Value) -> bool {
        LabelSelector::parse(selector).unwrap().matches(labels)
    }

    #[test]
    fn each_operator_decides_as_kubernetes_does() {
        let labels = json!({"app": "web", "tier": "", "rank": "7"});
        let truths = [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            ("app = web , rank", true),
            ("app!=web", false),
            ("other!=x", true),
            ("app in (db, web)", true),
            ("app in (db)", false),
            ("app notin (db)", true),
            ("other notin (db)", true),
            ("app notin (web)", false),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("tier=", true),
            ("tier=,app", true),
            ("tier in ()", true),
            ("rank>6", true),
            ("rank>7", false),
            ("rank<8", true),
            ("app>1", false),
            ("in=x", false),
        ];
        for (selector, truth) in truths {
            assert_eq!(matches(selector, &labels), truth, "{selector}");
        }
        assert!(matches("!a", &Value::Null));
    }

    #[test]
    fn a_selector_has_a_thousand_terms_at_most() {
        let terms = |count: usize| vec!["a!=b"; count].join(",");
        let values = |count: usize| format!("a in ({})", vec!["b"; count].join(","));
        for text in [terms(TERMS_MAX), values(TERMS_MAX)] {
            assert!(LabelSelector::parse(&text).is_ok());
        }
        for text in [
            terms(TERMS_MAX + 1),
            values(TERMS_MAX + 1),
            terms(100_000),
            values(100_000),
        ] {
            assert_eq!(LabelSelector::parse(&text), Err(SelectorError::TooMany));
        }
    }

    #[test]
    fn what_is_outside_the_grammar_is_refused() {
        for selector in [
            "a=b=c", "a in b", "a in (b", "=x", ",a", "a,", "a b", "a>x", "a(b)", "-a=b", "a=b!", "()",
        ] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
