//! Words and punctuation of Rust code, without comments and the contents of literals: enough to see which names a
//! text uses, and where its items begin and end.

/// A word or a mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token<'a> {
    /// As it stands in the text.
    pub text: &'a str,
    /// Counted from 1.
    pub line: usize,
    /// A name or a keyword.
    pub is_word: bool,
}

/// The tokens of a text. `::` is one token; literals are left out.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut found = Vec::new();
    while let Some(next) = lexer.rest().chars().next() {
        let rest = lexer.rest();
        let skipped = lexer.skipped(next);
        if skipped > 0 {
            lexer.advance(skipped);
            continue;
        }
        let length = match next {
            c if is_word_character(c) => word_length(rest),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let is_word = is_word_character(next) && !next.is_ascii_digit();
        if is_word || !is_word_character(next) {
            found.push(Token {
                text: &rest[..length],
                line: lexer.line,
                is_word,
            });
        }
        lexer.advance(length);
    }
    found
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn advance(&mut self, length: usize) {
        self.line += self.text[self.at..self.at + length].matches('\n').count();
        self.at += length;
    }

    /// Length of white space, a comment or a literal at this place; 0 when there is none.
    fn skipped(&self, next: char) -> usize {
        let rest = self.rest();
        match next {
            c if c.is_whitespace() => c.len_utf8(),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment_length(rest),
            '"' => string_length(rest),
            '\'' => character_length(rest),
            'b' | 'c' | 'r' => prefixed_string_length(rest),
            _ => 0,
        }
    }
}

fn is_word_character(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn word_length(rest: &str) -> usize {
    rest.find(|c| !is_word_character(c)).unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// A string with escapes, from its quote on.
fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `b"…"`, `c"…"`, `r"…"`, `br#"…"#` and the like; 0 when it is a word.
fn prefixed_string_length(rest: &str) -> usize {
    let prefix = rest.find(|c| !matches!(c, 'b' | 'c' | 'r')).unwrap_or(rest.len());
    if prefix > 2 {
        return 0;
    }
    let (prefix, behind) = rest.split_at(prefix);
    if !prefix.contains('r') {
        return if behind.starts_with('"') {
            prefix.len() + string_length(behind)
        } else {
            0
        };
    }
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    let Some(inside) = behind[hashes..].strip_prefix('"') else {
        return 0;
    };
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    prefix.len() + hashes + 1 + length
}

/// A character literal, from its quote on; 1 for the quote of a lifetime.
fn character_length(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            let behind_escaped = characters.nth(1).map_or(rest.len(), |(at, _)| at);
            rest[behind_escaped..]
                .find('\'')
                .map_or(rest.len(), |at| behind_escaped + at + 1)
        }
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_and_marks_come_with_their_lines() {
        let found = tokens("use std::fmt;\nfn f() {}");
        let lines: Vec<_> = found.iter().map(|token| (token.text, token.line)).collect();
        let expected = [
            ("use", 1),
            ("std", 1),
            ("::", 1),
            ("fmt", 1),
            (";", 1),
            ("fn", 2),
            ("f", 2),
            ("(", 2),
            (")", 2),
            ("{", 2),
            ("}", 2),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn literals_and_comments_are_left_out() {
        assert_eq!(
            texts(r##"a "s \" t" b r#"x " y"# c b"z" d br"q" e"##),
            ["a", "b", "c", "d", "e"]
        );
        assert_eq!(
            texts("a 'x' b '\\'' c '\"' d '\\u{1F600}' e '\\\\' f"),
            ["a", "b", "c", "d", "e", "f"]
        );
        assert_eq!(texts("a /* b /* c */ d */ e // f\ng"), ["a", "e", "g"]);
        assert_eq!(texts("x + 12_u64"), ["x", "+"]);
    }

    #[test]
    fn lifetimes_and_raw_names_are_not_literals() {
        assert_eq!(texts("&'a str"), ["&", "a", "str"]);
        assert_eq!(texts("r#type b c"), ["r", "#", "type", "b", "c"]);
        assert_eq!(texts("crab br"), ["crab", "br"]);
    }

    #[test]
    fn lines_go_on_behind_literals_of_several_lines() {
        assert_eq!(tokens("\"a\nb\" c")[0].line, 2);
    }
}
