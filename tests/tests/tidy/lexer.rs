//! Rust text split into what compiles and what explains: strings and comments are
//! blanked out of the one, everything but comments out of the other. Lines and
//! columns stay where they were. Knows no rule.

/// One source text, twice.
pub(super) struct Split {
    /// Without comments and the contents of literals.
    pub(super) code: String,
    /// Only the comments, their slashes included.
    pub(super) comments: String,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    String,
    RawString { hashes: usize },
}

/// Splits a text. Good enough for formatted code that compiles.
pub(super) fn split(text: &str) -> Split {
    let mut parts = Split {
        code: String::new(),
        comments: String::new(),
    };
    let mut state = State::Code;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, next) = step(state, rest, first);
        for c in rest[..length].chars() {
            let blank = if c == '\n' { '\n' } else { ' ' };
            let in_comment = matches!(state, State::LineComment | State::BlockComment { .. })
                || matches!(next, State::LineComment | State::BlockComment { .. });
            let in_code = !in_comment && matches!(state, State::Code);
            parts.code.push(if in_code { c } else { blank });
            parts.comments.push(if in_comment { c } else { blank });
        }
        rest = &rest[length..];
        state = next;
    }
    parts
}

/// How many bytes belong together, and the state after them.
fn step(state: State, rest: &str, first: char) -> (usize, State) {
    match state {
        State::Code => step_in_code(rest, first),
        State::LineComment if first == '\n' => (1, State::Code),
        State::LineComment => (first.len_utf8(), state),
        State::BlockComment { depth } if rest.starts_with("/*") => (2, State::BlockComment { depth: depth + 1 }),
        State::BlockComment { depth: 1 } if rest.starts_with("*/") => (2, State::Code),
        State::BlockComment { depth } if rest.starts_with("*/") => (2, State::BlockComment { depth: depth - 1 }),
        State::BlockComment { .. } => (first.len_utf8(), state),
        State::String if rest.starts_with("\\\\") || rest.starts_with("\\\"") => (2, state),
        State::String if first == '"' => (1, State::Code),
        State::String => (first.len_utf8(), state),
        State::RawString { hashes } => {
            let end = format!("\"{}", "#".repeat(hashes));
            if rest.starts_with(&end) {
                (end.len(), State::Code)
            } else {
                (first.len_utf8(), state)
            }
        }
    }
}

fn step_in_code(rest: &str, first: char) -> (usize, State) {
    if rest.starts_with("//") {
        return (2, State::LineComment);
    }
    if rest.starts_with("/*") {
        return (2, State::BlockComment { depth: 1 });
    }
    if first == '"' {
        return (1, State::String);
    }
    if first == '\'' {
        return (char_literal(rest).unwrap_or(1), State::Code);
    }
    if first == '_' || first.is_alphabetic() {
        let word = rest
            .find(|c: char| c != '_' && !c.is_alphanumeric())
            .unwrap_or(rest.len());
        let hashes = rest[word..].bytes().take_while(|byte| *byte == b'#').count();
        let raw = matches!(&rest[..word], "r" | "br" | "cr") && rest[word + hashes..].starts_with('"');
        return if raw {
            (word + hashes + 1, State::RawString { hashes })
        } else {
            (word, State::Code)
        };
    }
    (first.len_utf8(), State::Code)
}

/// Length of `'x'` or `'\n'`; `None` where the quote starts a lifetime.
fn char_literal(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        chars.next()?;
        return rest[3..].find('\'').map(|end| 3 + end + 1);
    }
    match chars.next()? {
        (at, '\'') => Some(at + 1),
        _ => None,
    }
}

#[test]
fn strings_and_comments_are_told_from_code() {
    let text = concat!(
        "let a = \"// no \\\" comment\"; // yes: \"quoted\"\n",
        "let b = r#\"fn f() { \" }\"#; /* one /* two */ still */ let c = '\"'; let d: &'a str;\n",
        "let e = '\\''; let f = b\"x\"; for_r(\"y\");\n",
    );
    let parts = split(text);
    let code: Vec<String> = parts.code.lines().map(squeeze).collect();
    assert_eq!(code[0], "let a = \" ;");
    assert_eq!(code[1], "let b = r#\" ; let c = '\"'; let d: &'a str;");
    assert_eq!(code[2], "let e = '\\''; let f = b\" ; for_r(\" );");
    let comments: Vec<String> = parts.comments.lines().map(squeeze).collect();
    assert_eq!(comments[0].trim(), "// yes: \"quoted\"");
    assert_eq!(comments[1].trim(), "/* one /* two */ still */");
    assert_eq!(parts.code.len(), text.len());
}

#[cfg(test)]
fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
