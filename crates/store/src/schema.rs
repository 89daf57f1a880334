//! The schema text as statements, and what a database says about the schema it has.
//! Pure; the store executes.

use sha2::{Digest, Sha256};

/// The version of the tables' common form: base columns, side tables, bookkeeping. Another kind or
/// a column of a kind does not change it.
pub(super) const VERSION: i64 = 1;

/// What is recorded of a schema text.
pub(super) fn checksum(text: &str) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(text);
    digest.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes any text");
        hex
    })
}

/// Why a database of that version cannot be used, if it cannot.
pub(super) fn refusal(found: i64) -> Option<String> {
    use std::cmp::Ordering;
    match found.cmp(&VERSION) {
        Ordering::Equal => None,
        Ordering::Less => Some(format!(
            "the database has schema version {found}, this program writes version {VERSION}: \
             apply the files of schema/migrations, or use an empty database"
        )),
        Ordering::Greater => Some(format!(
            "the database has schema version {found}, this program writes version {VERSION}: \
             use the newer program that migrated it"
        )),
    }
}

/// What there is to say where a database of the right version was made from another text, if it was.
pub(super) fn notice(recorded: &str, ours: &str) -> Option<String> {
    (recorded != ours).then(|| {
        format!(
            "the tables of the database were made from another schema text (checksum {recorded}) than this program's \
             ({ours}): what is missing is made now, and `kindex migrate` renews the checks of what is there"
        )
    })
}

/// Splits a script at the semicolons that end statements: not those in quotes, names and comments.
pub(super) fn statements(script: &str) -> Vec<&str> {
    let bytes = script.as_bytes();
    let mut found = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut something = false;
    while at < bytes.len() {
        let rest = &script[at..];
        let skipped = comment_bytes(rest);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => {
                something = true;
                at += quoted_bytes(rest, quote);
            }
            b';' => {
                if something {
                    found.push(script[start..at].trim());
                }
                at += 1;
                (start, something) = (at, false);
            }
            byte => {
                something |= !byte.is_ascii_whitespace();
                at += char_bytes(rest);
            }
        }
    }
    if something {
        found.push(script[start..].trim());
    }
    found
}

/// Bytes of the comment that begins here, 0 where none does.
fn comment_bytes(text: &str) -> usize {
    let end = if text.starts_with("/*") {
        text.find("*/").map(|end| end + 2)
    } else if text.starts_with("--") || text.starts_with('#') {
        text.find('\n').map(|end| end + 1)
    } else {
        return 0;
    };
    end.unwrap_or(text.len())
}

/// Bytes of the quoted text that begins here. A doubled quote reads as two texts side by side,
/// which ends at the same place.
fn quoted_bytes(text: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quote != b'`' => escaped = true,
            byte if byte == quote => return index + 1,
            _ => {}
        }
    }
    text.len()
}

fn char_bytes(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_only_where_a_statement_ends() {
        let script = "-- first; not an end\nCREATE TABLE `a;b` (x TEXT DEFAULT ';\\';'); # it's\n\
                      /* ; */ INSERT INTO t VALUES ('it''s; é', \";\");\n;\n-- last\n";
        assert_eq!(
            statements(script),
            [
                "-- first; not an end\nCREATE TABLE `a;b` (x TEXT DEFAULT ';\\';')",
                "# it's\n/* ; */ INSERT INTO t VALUES ('it''s; é', \";\")",
            ]
        );
    }

    #[test]
    fn a_last_statement_needs_no_semicolon() {
        assert_eq!(statements("SELECT 1; SELECT 'open"), ["SELECT 1", "SELECT 'open"]);
    }

    #[test]
    fn another_text_of_the_same_version_is_noticed() {
        assert_eq!(notice("a", "a"), None);
        let given = notice("a", "b").expect("another text");
        assert!(given.contains("checksum a") && given.contains("(b)"), "{given}");
    }

    #[test]
    fn another_version_is_reported_with_a_remedy() {
        assert_eq!(refusal(VERSION), None);
        assert!(refusal(VERSION + 1).expect("refused").contains("newer program"));
        assert!(refusal(VERSION - 1).expect("refused").contains("schema/migrations"));
    }
}
