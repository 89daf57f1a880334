//! Patterns in the syntax of Go's regexp package into those of the regex crate. The engines are siblings (RE2);
//! what differs is that Go's `\d`, `\w`, `\s` and `\b` are ASCII, that a class has no set operations, and that a
//! brace which repeats nothing stands for itself. Knows nothing of where a pattern comes from.

use regex::{Regex, RegexBuilder};

/// The most memory that one compiled pattern may take.
pub(super) const COMPILED_BYTES_MAX: usize = 10 * 1024 * 1024;
/// The longest `{least,most}` that can be a repetition, and the longest `[:class:]`: no more is looked through, so
/// that a pattern of braces or brackets alone takes no time.
const NOTATION_BYTES_MAX: usize = 32;

/// Compiles `pattern` with Go's meaning.
pub(super) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    compile_within(pattern, COMPILED_BYTES_MAX)
}

/// Compiles `pattern` if the result takes at most so many bytes.
pub(super) fn compile_within(pattern: &str, bytes_max: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&translate(pattern)).size_limit(bytes_max).build()
}

/// The beginning of a text in which a notation must end.
fn notation(text: &str) -> &str {
    &text[..text.floor_char_boundary(NOTATION_BYTES_MAX)]
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut in_class = false;
    let mut class_begins = false;
    while let Some(character) = rest.chars().next() {
        let at_class_start = std::mem::take(&mut class_begins);
        let mut taken = character.len_utf8();
        match character {
            '\\' => taken = escape(rest, in_class, &mut out),
            '[' if !in_class => {
                in_class = true;
                class_begins = true;
                out.push('[');
                if rest[1..].starts_with('^') {
                    taken = 2;
                    out.push('^');
                }
            }
            '[' if rest.starts_with("[:") && notation(rest).contains(":]") => {
                taken = rest.find(":]").expect("just found") + 2;
                out.push_str(&rest[..taken]);
            }
            ']' if in_class && !at_class_start => {
                in_class = false;
                out.push(']');
            }
            '[' | ']' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(character);
            }
            '-' if in_class && rest[1..].starts_with('-') => out.push_str("\\-"),
            '{' if !in_class && !repeats(rest) => out.push_str("\\{"),
            '}' if !in_class && !closes_repetition(&out) => out.push_str("\\}"),
            other => out.push(other),
        }
        rest = &rest[taken..];
    }
    out
}

/// Translates the escape at the start of `rest`; gives its length.
fn escape(rest: &str, in_class: bool, out: &mut String) -> usize {
    let Some(letter) = rest[1..].chars().next() else {
        out.push('\\');
        return 1;
    };
    if letter == 'Q' {
        let text = &rest[2..];
        let end = text.find("\\E").unwrap_or(text.len());
        out.push_str(&regex::escape(&text[..end]));
        return (2 + end + 2).min(rest.len());
    }
    let (class, negated) = match letter {
        'd' => ("0-9", false),
        'D' => ("0-9", true),
        'w' => ("0-9A-Za-z_", false),
        'W' => ("0-9A-Za-z_", true),
        's' => (r"\t\n\x0c\r ", false),
        'S' => (r"\t\n\x0c\r ", true),
        'b' if !in_class => {
            out.push_str(r"(?-u:\b)");
            return 2;
        }
        'p' | 'P' | 'x' if rest[2..].starts_with('{') => {
            let taken = rest.find('}').map_or(rest.len(), |end| end + 1);
            out.push_str(&rest[..taken]);
            return taken;
        }
        other => {
            out.push('\\');
            out.push(other);
            return 1 + other.len_utf8();
        }
    };
    match (in_class, negated) {
        (true, false) => out.push_str(class),
        (_, true) => out.extend(["[^", class, "]"]),
        (false, false) => out.extend(["[", class, "]"]),
    }
    2
}

/// Whether the brace at the start of `rest` is a repetition: `{2}`, `{2,}`, `{2,5}`.
fn repeats(rest: &str) -> bool {
    let Some((inside, _)) = notation(&rest[1..]).split_once('}') else {
        return false;
    };
    let (least, most) = inside.split_once(',').unwrap_or((inside, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

/// Whether a closing brace after `out` ends a repetition that `out` has opened.
fn closes_repetition(out: &str) -> bool {
    match out.rfind(['{', '}']) {
        Some(at) => out[at..].starts_with('{') && !out[..at].ends_with('\\'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern).unwrap().is_match(text)
    }

    #[test]
    fn digits_words_and_spaces_are_ascii() {
        assert!(matches(r"^\d+[\d_]$", "12_"));
        assert!(!matches(r"^\d$", "٣"));
        assert!(!matches(r"^[\w-]+$", "é"));
        assert!(matches(r"^[^\s]\S\W$", "ab\u{e9}"));
        assert!(!matches(r"^\s$", "\u{a0}"));
        assert!(matches(r"^[\D]$", "x"));
    }

    #[test]
    fn a_class_has_no_set_operations_and_no_nesting() {
        assert!(matches("^[a-z&&b]+$", "c&b"));
        assert!(matches("^[[a]+$", "[a["));
        assert!(matches("^[]a]+$", "]a"));
        assert!(matches("^[^]a]$", "b"));
        assert!(matches("^[[:alpha:]~]+$", "ab~"));
    }

    #[test]
    fn a_brace_that_repeats_nothing_stands_for_itself() {
        assert!(matches("^a{2}$", "aa"));
        assert!(matches("^a{,2}$", "a{,2}"));
        assert!(matches("^{a}$", "{a}"));
        assert!(matches(r"^\x{41}\p{Lu}a{1,}$", "AÉaa"));
    }

    #[test]
    fn a_brace_or_a_class_is_looked_for_nearby() {
        // Looking through the whole rest for each of them would take minutes.
        assert!(matches(&format!("^{}$", "{".repeat(100_000)), &"{".repeat(100_000)));
        assert!(matches(&format!("^[{}x]$", "[:".repeat(100_000)), ":"));
        assert_eq!(notation(&"é".repeat(100_000)).len(), NOTATION_BYTES_MAX);
    }

    #[test]
    fn quoted_text_is_literal() {
        assert!(matches(r"^\Qa.b\E.$", "a.bc"));
        assert!(!matches(r"^\Qa.b\E$", "axb"));
    }

    #[test]
    fn dns_names_as_kubernetes_writes_them() {
        let pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
        assert!(matches(pattern, "a-b.c"));
        assert!(!matches(pattern, "a-.c"));
    }
}
