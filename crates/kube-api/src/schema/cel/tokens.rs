//! The words of an expression.

use super::expression::Refusal;

/// A rule of more words is refused: what walks it recurses no deeper than this.
const TOKENS_MAX: usize = 512;
/// Longest first, so that `<=` is not read as `<`.
const SIGNS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}",
];

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Int(i64),
    Text(String),
    Sign(&'static str),
}

/// The words of `source`.
pub(super) fn tokens(source: &str) -> Result<Vec<Token>, Refusal> {
    let mut found = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        if found.len() == TOKENS_MAX {
            return Err(Refusal::Unsupported(format!("a rule of more than {TOKENS_MAX} words")));
        }
        let (token, after) = if first == '\'' || first == '"' {
            text(rest, first)?
        } else if first.is_ascii_digit() {
            number(rest)?
        } else if first.is_ascii_alphabetic() || first == '_' {
            name(rest)?
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| Refusal::Wrong(format!("syntax error at {first:?}")))?;
            (Token::Sign(sign), &rest[sign.len()..])
        };
        found.push(token);
        rest = after.trim_start();
    }
    Ok(found)
}

fn name(rest: &str) -> Result<(Token, &str), Refusal> {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
    if after.starts_with(['\'', '"']) {
        return Err(Refusal::Unsupported(format!("the string prefix {word:?}")));
    }
    Ok((Token::Name(word.to_owned()), after))
}

fn number(rest: &str) -> Result<(Token, &str), Refusal> {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
    match word.parse() {
        Ok(number) => Ok((Token::Int(number), after)),
        Err(_) => Err(Refusal::Unsupported(format!("the number {word}"))),
    }
}

/// A string in one kind of quotes. Escapes are few: those that are written the same in every language.
fn text(rest: &str, mark: char) -> Result<(Token, &str), Refusal> {
    if rest.starts_with("'''") || rest.starts_with("\"\"\"") {
        return Err(Refusal::Unsupported("a string in three quotes".to_owned()));
    }
    let open = || Refusal::Wrong("syntax error: a string has no end".to_owned());
    let mut out = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == mark => return Ok((Token::Text(out), &rest[at + letter.len_utf8()..])),
            '\n' | '\r' => return Err(open()),
            '\\' => match letters.next().ok_or_else(open)?.1 {
                escaped @ ('\\' | '\'' | '"') => out.push(escaped),
                other => return Err(Refusal::Unsupported(format!("the escape \\{other}"))),
            },
            _ => out.push(letter),
        }
    }
    Err(open())
}
