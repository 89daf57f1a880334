//! The tokens of a label selector.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
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
    /// As it was typed.
    pub(super) fn literal(self) -> &'a str {
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
pub(super) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
    const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];

    pub(super) fn of(text: &'a str) -> Self {
        let rest = text.trim_start_matches(Self::BLANKS);
        Self { rest }
    }

    pub(super) fn peek(&self) -> Token<'a> {
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

    pub(super) fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.rest = self.rest[token.literal().len()..].trim_start_matches(Self::BLANKS);
        token
    }

    pub(super) fn take_if(&mut self, wanted: Token<'_>) -> bool {
        let found = self.peek() == wanted;
        if found {
            self.take();
        }
        found
    }
}
