//! What a label's key and value may be, and how the API server says what is wrong with one.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set>
//! Knows no selector and no SQL.

const NAME_CHARS_MAX: usize = 63;
const PREFIX_CHARS_MAX: usize = 253;

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const PREFIX_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// What is wrong with a key, joined as the API server joins it; `None` where nothing is.
pub(super) fn problem_of_key(key: &str) -> Option<String> {
    let mut problems = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            problems.extend(problems_of_prefix(prefix));
            name
        }
        _ => {
            let rule = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return Some(format!("a qualified name {NAME_RULE} {rule}"));
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_CHARS_MAX {
        problems.push(format!("name part {}", too_long(NAME_CHARS_MAX)));
    }
    if !is_name(name) {
        problems.push(format!("name part {NAME_RULE}"));
    }
    joined(&problems)
}

/// What is wrong with a value; `None` where nothing is.
pub(super) fn problem_of_value(value: &str) -> Option<String> {
    let mut problems = Vec::new();
    if value.len() > NAME_CHARS_MAX {
        problems.push(too_long(NAME_CHARS_MAX));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(VALUE_RULE.to_owned());
    }
    joined(&problems)
}

fn problems_of_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut problems = Vec::new();
    if prefix.len() > PREFIX_CHARS_MAX {
        problems.push(format!("prefix part {}", too_long(PREFIX_CHARS_MAX)));
    }
    if !prefix.split('.').all(is_dns_label) {
        problems.push(format!("prefix part {PREFIX_RULE}"));
    }
    problems
}

fn too_long(chars_max: usize) -> String {
    format!("must be no more than {chars_max} characters")
}

fn joined(problems: &[String]) -> Option<String> {
    (!problems.is_empty()).then(|| problems.join("; "))
}

fn is_name(text: &str) -> bool {
    let inside = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    framed(text, |c| c.is_ascii_alphanumeric(), inside)
}

fn is_dns_label(text: &str) -> bool {
    let end = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    framed(text, end, |c| end(c) || c == b'-')
}

/// Begins and ends with a character of one sort and has those of another between.
fn framed(text: &str, end: impl Fn(u8) -> bool, inside: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => end(*first) && end(*last) && bytes.iter().all(|c| inside(*c)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_that_kubernetes_takes_are_taken() {
        for key in ["a", "A-b_c.9", "example.com/a", "a.b-c.d/E_f", &"k".repeat(63)] {
            assert_eq!(problem_of_key(key), None, "{key}");
        }
        for value in ["", "a", "1", "a-b", "A_.b", &"v".repeat(63)] {
            assert_eq!(problem_of_value(value), None, "{value}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_key_is_said_in_the_servers_words() {
        let said = |key: &str| problem_of_key(key).expect(key);
        assert!(said("-a").starts_with("name part must consist of alphanumeric characters"));
        assert!(said("").starts_with("name part must be non-empty; name part must consist of"));
        assert_eq!(said(&"k".repeat(64)), "name part must be no more than 63 characters");
        assert!(said("/a").starts_with("prefix part must be non-empty"));
        assert!(said("Example.com/a").starts_with("prefix part a lowercase RFC 1123 subdomain must consist of"));
        assert!(said(&format!("{}/a", "p".repeat(254))).starts_with("prefix part must be no more than 253 characters"));
        assert!(said("a/b/c").ends_with("prefix and '/' (e.g. 'example.com/MyName')"));
        assert!(said("a'b;--").contains("regex used for validation is"));
    }

    #[test]
    fn what_is_wrong_with_a_value_is_said_in_the_servers_words() {
        let said = |value: &str| problem_of_value(value).expect(value);
        assert_eq!(said(&"v".repeat(64)), "must be no more than 63 characters");
        for value in ["a b", "a/b", ".a", "a'", "ä"] {
            assert!(said(value).starts_with("a valid label must be an empty string or consist of"));
        }
    }
}
