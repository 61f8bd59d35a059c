//! Reads expressions: a scanner and a parser by precedence.

use super::CelError;

/// Levels of nesting, at most.
const DEEPEST: usize = 100;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(String),
    Name(String),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Member(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    /// A function, with what stands before the dot.
    Call(Option<Box<Expr>>, String, Vec<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Int(i64),
    Double(f64),
    Str(String),
    Name(String),
    Sign(&'static str),
    End,
}

/// Longer ones first.
const SIGNS: [&str; 26] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}", "=", ";",
];

pub(super) fn parse(text: &str) -> Result<Expr, CelError> {
    let tokens = scan(text)?;
    let mut parser = Parser {
        tokens,
        next: 0,
        depth: 0,
    };
    let expression = parser.choice()?;
    match parser.peek() {
        Token::End => Ok(expression),
        other => Err(parser.wrong(format!("unexpected {other:?}"))),
    }
}

fn scan(text: &str) -> Result<Vec<(usize, Token)>, CelError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        if letter.is_whitespace() {
            at += letter.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if letter.is_ascii_digit() {
            let (token, length) = number(rest).map_err(|problem| CelError::Syntax { at, problem })?;
            tokens.push((at, token));
            at += length;
        } else if letter == '"'
            || letter == '\''
            || (matches!(letter, 'r' | 'R') && rest[1..].starts_with(['"', '\'']))
        {
            let (string, length) = string(rest).map_err(|problem| CelError::Syntax { at, problem })?;
            tokens.push((at, Token::Str(string)));
            at += length;
        } else if letter.is_ascii_alphabetic() || letter == '_' {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let end = end.unwrap_or(rest.len());
            tokens.push((at, Token::Name(rest[..end].to_owned())));
            at += end;
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push((at, Token::Sign(sign)));
            at += sign.len();
        } else {
            let problem = format!("unexpected {letter:?}");
            return Err(CelError::Syntax { at, problem });
        }
    }
    tokens.push((at, Token::End));
    Ok(tokens)
}

fn number(text: &str) -> Result<(Token, usize), String> {
    if let Some(hex) = text.strip_prefix("0x") {
        let length = hex
            .find(|letter: char| !letter.is_ascii_hexdigit())
            .unwrap_or(hex.len());
        let value = i64::from_str_radix(&hex[..length], 16).map_err(|error| error.to_string())?;
        return Ok((Token::Int(value), length + 2));
    }
    let digits = |text: &str| {
        text.find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let mut length = digits(text);
    let mut is_double = false;
    if text[length..].starts_with('.')
        && text[length + 1..].starts_with(|letter: char| letter.is_ascii_digit())
    {
        length += 1 + digits(&text[length + 1..]);
        is_double = true;
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[length + 1 + sign..]);
        if exponent > 0 {
            length += 1 + sign + exponent;
            is_double = true;
        }
    }
    let wrong = || format!("{:?} is not a number", &text[..length]);
    if is_double {
        return Ok((
            Token::Double(text[..length].parse().map_err(|_| wrong())?),
            length,
        ));
    }
    let value = text[..length].parse().map_err(|_| wrong())?;
    let suffix = usize::from(text[length..].starts_with(['u', 'U']));
    Ok((Token::Int(value), length + suffix))
}

fn string(text: &str) -> Result<(String, usize), String> {
    let is_raw = text.starts_with(['r', 'R']);
    let start = usize::from(is_raw);
    let quote = text[start..].chars().next().unwrap_or('"');
    let triple = quote.to_string().repeat(3);
    let (mark, start) = match text[start..].starts_with(&triple) {
        true => (triple.as_str(), start + 3),
        false => (&triple[..1], start + 1),
    };
    let mut out = String::new();
    let mut at = start;
    loop {
        let rest = &text[at..];
        if rest.starts_with(mark) {
            return Ok((out, at + mark.len()));
        }
        let Some(letter) = rest.chars().next() else {
            return Err("a text without an end".to_owned());
        };
        at += letter.len_utf8();
        if letter != '\\' || is_raw {
            out.push(letter);
            continue;
        }
        let escaped = text[at..].chars().next().ok_or("a text without an end")?;
        at += escaped.len_utf8();
        let code = |digits: usize, radix: u32, from: usize| {
            let digits = text.get(from..from + digits).unwrap_or_default();
            let code = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
            code.ok_or_else(|| format!("\\{escaped}{digits} is no letter"))
        };
        match escaped {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'v' => out.push('\u{b}'),
            'x' | 'X' => {
                out.push(code(2, 16, at)?);
                at += 2;
            }
            'u' => {
                out.push(code(4, 16, at)?);
                at += 4;
            }
            'U' => {
                out.push(code(8, 16, at)?);
                at += 8;
            }
            '\\' | '"' | '\'' | '`' | '?' => out.push(escaped),
            other => return Err(format!("unknown escape \\{other}")),
        }
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn advance(&mut self) -> Token {
        let token = self.tokens[self.next].1.clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn wrong(&self, problem: String) -> CelError {
        let at = self.tokens[self.next].0;
        CelError::Syntax { at, problem }
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), CelError> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(self.wrong(format!("expected {sign:?}"))),
        }
    }

    fn choice(&mut self) -> Result<Expr, CelError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(format!("more than {DEEPEST} levels")));
        }
        let condition = self.binary(0)?;
        let parsed = if self.takes("?") {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.choice()?;
            Expr::Choice(condition.into(), yes.into(), no.into())
        } else {
            condition
        };
        self.depth -= 1;
        Ok(parsed)
    }

    fn operator(&self) -> Option<(Operator, u8)> {
        Some(match self.peek() {
            Token::Sign("||") => (Operator::Or, 0),
            Token::Sign("&&") => (Operator::And, 1),
            Token::Sign("==") => (Operator::Equal, 2),
            Token::Sign("!=") => (Operator::Unequal, 2),
            Token::Sign("<") => (Operator::Less, 2),
            Token::Sign("<=") => (Operator::AtMost, 2),
            Token::Sign(">") => (Operator::Greater, 2),
            Token::Sign(">=") => (Operator::AtLeast, 2),
            Token::Name(name) if name == "in" => (Operator::In, 2),
            Token::Sign("+") => (Operator::Add, 3),
            Token::Sign("-") => (Operator::Subtract, 3),
            Token::Sign("*") => (Operator::Multiply, 4),
            Token::Sign("/") => (Operator::Divide, 4),
            Token::Sign("%") => (Operator::Remainder, 4),
            _ => return None,
        })
    }

    fn binary(&mut self, least: u8) -> Result<Expr, CelError> {
        let mut left = self.unary()?;
        while let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= least) {
            self.advance();
            let right = self.binary(strength + 1)?;
            left = Expr::Binary(operator, left.into(), right.into());
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, CelError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(format!("more than {DEEPEST} levels")));
        }
        let parsed = if self.takes("!") {
            Expr::Not(self.unary()?.into())
        } else if self.takes("-") {
            Expr::Negative(self.unary()?.into())
        } else {
            self.member()?
        };
        self.depth -= 1;
        Ok(parsed)
    }

    fn member(&mut self) -> Result<Expr, CelError> {
        let mut value = self.primary()?;
        loop {
            if self.takes(".") {
                let Token::Name(name) = self.advance() else {
                    return Err(self.wrong("expected a name after the dot".to_owned()));
                };
                value = if self.takes("(") {
                    let arguments = self.list(")")?;
                    Expr::Call(Some(value.into()), name, arguments)
                } else {
                    Expr::Member(value.into(), unescaped(name))
                };
            } else if self.takes("[") {
                let index = self.choice()?;
                self.expect("]")?;
                value = Expr::Index(value.into(), index.into());
            } else {
                return Ok(value);
            }
        }
    }

    fn list(&mut self, end: &str) -> Result<Vec<Expr>, CelError> {
        let mut items = Vec::new();
        while !self.takes(end) {
            items.push(self.choice()?);
            if !self.takes(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(items)
    }

    fn primary(&mut self) -> Result<Expr, CelError> {
        let at = self.next;
        Ok(match self.advance() {
            Token::Int(value) => Expr::Int(value),
            Token::Double(value) => Expr::Double(value),
            Token::Str(text) => Expr::Str(text),
            Token::Name(name) => match name.as_str() {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "null" => Expr::Null,
                _ if self.takes("(") => {
                    let arguments = self.list(")")?;
                    Expr::Call(None, name, arguments)
                }
                _ => Expr::Name(name),
            },
            Token::Sign("(") => {
                let inner = self.choice()?;
                self.expect(")")?;
                inner
            }
            Token::Sign("[") => Expr::List(self.list("]")?),
            Token::Sign("{") => {
                let mut entries = Vec::new();
                while !self.takes("}") {
                    let key = self.choice()?;
                    self.expect(":")?;
                    entries.push((key, self.choice()?));
                    if !self.takes(",") {
                        self.expect("}")?;
                        break;
                    }
                }
                Expr::Map(entries)
            }
            other => {
                self.next = at;
                return Err(self.wrong(format!("unexpected {other:?}")));
            }
        })
    }
}

/// Names of fields that are no names in CEL are escaped in rules of CRDs: `x__dash__y`.
fn unescaped(name: String) -> String {
    if !name.contains("__") {
        return name;
    }
    let name = name
        .replace("__dash__", "-")
        .replace("__dot__", ".")
        .replace("__slash__", "/");
    let keyword = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"));
    keyword
        .map(str::to_owned)
        .unwrap_or(name)
        .replace("__underscores__", "__")
}
