//! From the text of a rule to its expression, by recursive descent along CEL's precedence: `? :`, `||`, `&&`,
//! comparison, `+`, `!`, and the fields and methods of a value.

use super::expression::{Comparison, Expression, Refusal, TextTest, Variable};
use super::tokens::{Token, tokens};

/// How deep parentheses, conditions and negations may stand in each other.
const DEPTH_MAX: usize = 32;
/// Words that CEL keeps for itself.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The expression that `source` is.
///
/// # Errors
/// What is wrong with it, or not supported.
pub(in crate::schema) fn parse(source: &str) -> Result<Expression, Refusal> {
    let mut reader = Reader {
        tokens: tokens(source)?.into_iter().peekable(),
        depth: 0,
    };
    let expression = reader.expression()?;
    match reader.tokens.next() {
        None => Ok(expression),
        Some(token) => Err(unexpected(Some(&token))),
    }
}

struct Reader {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    depth: usize,
}

fn unexpected(token: Option<&Token>) -> Refusal {
    match token {
        None => Refusal::Wrong("syntax error: the rule ends too early".to_owned()),
        Some(Token::Sign(sign @ ("-" | "*" | "/" | "%"))) => unsupported("operator", sign),
        Some(Token::Sign("[" | "]")) => Refusal::Unsupported("a list or an index".to_owned()),
        Some(Token::Sign("{" | "}")) => Refusal::Unsupported("a map or a message".to_owned()),
        Some(Token::Name(name)) if name == "in" => unsupported("operator", name),
        Some(Token::Name(name) | Token::Text(name)) => Refusal::Wrong(format!("syntax error at {name:?}")),
        Some(Token::Int(number)) => Refusal::Wrong(format!("syntax error at {number}")),
        Some(Token::Sign(sign)) => Refusal::Wrong(format!("syntax error at {sign:?}")),
    }
}

fn unsupported(what: &str, name: &str) -> Refusal {
    Refusal::Unsupported(format!("{what} '{name}'"))
}

impl Reader {
    fn next_is(&mut self, sign: &str) -> bool {
        let is = matches!(self.tokens.peek(), Some(Token::Sign(found)) if *found == sign);
        if is {
            self.tokens.next();
        }
        is
    }

    fn expect(&mut self, sign: &str) -> Result<(), Refusal> {
        match self.next_is(sign) {
            true => Ok(()),
            false => Err(unexpected(self.tokens.peek())),
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Refusal>) -> Result<T, Refusal> {
        if self.depth == DEPTH_MAX {
            return Err(Refusal::Unsupported(format!(
                "a rule nested deeper than {DEPTH_MAX} levels"
            )));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn expression(&mut self) -> Result<Expression, Refusal> {
        self.deeper(|reader| {
            let condition = reader.either()?;
            if !reader.next_is("?") {
                return Ok(condition);
            }
            let then = reader.either()?;
            reader.expect(":")?;
            let otherwise = reader.expression()?;
            Ok(Expression::If(Box::new([condition, then, otherwise])))
        })
    }

    /// Operands with the same sign between them.
    fn joined(
        &mut self,
        sign: &str,
        read: fn(&mut Self) -> Result<Expression, Refusal>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, Refusal> {
        let first = read(self)?;
        if !self.next_is(sign) {
            return Ok(first);
        }
        let mut all = vec![first, read(self)?];
        while self.next_is(sign) {
            all.push(read(self)?);
        }
        Ok(join(all))
    }

    fn either(&mut self) -> Result<Expression, Refusal> {
        self.joined("||", Self::both, Expression::Or)
    }

    fn both(&mut self) -> Result<Expression, Refusal> {
        self.joined("&&", Self::relation, Expression::And)
    }

    fn relation(&mut self) -> Result<Expression, Refusal> {
        let mut left = self.sum()?;
        while let Some(comparison) = self.comparison() {
            left = Expression::Compare(comparison, Box::new(left), Box::new(self.sum()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.tokens.peek()? {
            Token::Sign("==") => Comparison::Equal,
            Token::Sign("!=") => Comparison::Unequal,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterOrEqual,
            Token::Sign(_) | Token::Name(_) | Token::Int(_) | Token::Text(_) => return None,
        };
        self.tokens.next();
        Some(comparison)
    }

    fn sum(&mut self) -> Result<Expression, Refusal> {
        self.joined("+", Self::unary, Expression::Sum)
    }

    fn unary(&mut self) -> Result<Expression, Refusal> {
        match self.next_is("!") {
            true => self.deeper(|reader| Ok(Expression::Not(Box::new(reader.unary()?)))),
            false => self.member(),
        }
    }

    fn member(&mut self) -> Result<Expression, Refusal> {
        let mut value = self.primary()?;
        while self.next_is(".") {
            let name = match self.tokens.next() {
                Some(Token::Name(name)) => name,
                other => return Err(unexpected(other.as_ref())),
            };
            value = match self.next_is("(") {
                true => self.method(value, &name)?,
                // Fields of such names are written with an escape, which no field of a supported rule needs.
                false if RESERVED.contains(&name.as_str()) || name.contains("__") => {
                    return Err(unsupported("field", &name));
                }
                false => Expression::Field(Box::new(value), name),
            };
        }
        Ok(value)
    }

    fn method(&mut self, value: Expression, name: &str) -> Result<Expression, Refusal> {
        let test = match name {
            "size" => {
                self.expect(")")?;
                return Ok(Expression::Size(Box::new(value)));
            }
            "startsWith" => TextTest::StartsWith,
            "endsWith" => TextTest::EndsWith,
            "contains" => TextTest::Contains,
            other => return Err(unsupported("function", other)),
        };
        let part = self.expression()?;
        self.expect(")")?;
        Ok(Expression::Test(test, Box::new(value), Box::new(part)))
    }

    fn primary(&mut self) -> Result<Expression, Refusal> {
        match self.tokens.next() {
            Some(Token::Int(number)) => Ok(Expression::Int(number)),
            Some(Token::Text(text)) => Ok(Expression::Text(text)),
            Some(Token::Sign("(")) => {
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Token::Name(name)) => match self.next_is("(") {
                true => self.function(&name),
                false => variable(&name),
            },
            other => Err(unexpected(other.as_ref())),
        }
    }

    fn function(&mut self, name: &str) -> Result<Expression, Refusal> {
        if name != "has" && name != "size" {
            return Err(unsupported("function", name));
        }
        let argument = self.expression()?;
        self.expect(")")?;
        match (name, argument) {
            ("size", argument) => Ok(Expression::Size(Box::new(argument))),
            (_, Expression::Field(of, field)) => Ok(Expression::Has(of, field)),
            _ => Err(Refusal::Wrong("invalid argument to has() macro".to_owned())),
        }
    }
}

fn variable(name: &str) -> Result<Expression, Refusal> {
    match name {
        "self" => Ok(Expression::Variable(Variable::New)),
        "oldSelf" => Ok(Expression::Variable(Variable::Old)),
        "true" => Ok(Expression::Bool(true)),
        "false" => Ok(Expression::Bool(false)),
        "null" => Err(Refusal::Unsupported("null".to_owned())),
        other => Err(Refusal::Wrong(format!("undeclared reference to '{other}'"))),
    }
}
