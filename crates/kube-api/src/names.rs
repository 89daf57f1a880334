//! The rules for names, label keys and label values. Each function returns the API server's messages about what is
//! wrong, and none where the text is right. How a name is made where none is given.

/// Longest subdomain.
const SUBDOMAIN_MAX: usize = 253;
/// Longest label, of DNS and of Kubernetes.
const LABEL_MAX: usize = 63;
/// The letters in which a generated name ends.
pub const SUFFIX_LENGTH: usize = 5;
/// From which they are taken: none that could form words.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Lengths are counted in bytes; what they are called depends on what is too long.
fn too_long(max: usize, unit: &str) -> String {
    format!("must be no more than {max} {unit}")
}

fn is_dns_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_qualified(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let inner = |c: char| edge(c) || matches!(c, '-' | '_' | '.');
    text.starts_with(edge) && text.ends_with(edge) && text.chars().all(inner)
}

/// Names of most objects: an RFC 1123 subdomain.
pub fn subdomain_problem(text: &str) -> Option<String> {
    subdomain_problem_in(text, "characters")
}

fn subdomain_problem_in(text: &str, unit: &str) -> Option<String> {
    if text.len() > SUBDOMAIN_MAX {
        return Some(too_long(SUBDOMAIN_MAX, unit));
    }
    if text.split('.').all(is_dns_label) {
        return None;
    }
    Some(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end \
         with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned(),
    )
}

/// Names of namespaces: an RFC 1123 label.
pub fn dns_label_problem(text: &str) -> Option<String> {
    if text.len() > LABEL_MAX {
        return Some(too_long(LABEL_MAX, "characters"));
    }
    if is_dns_label(text) {
        return None;
    }
    Some(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
         alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            .to_owned(),
    )
}

/// A name that must also start with a letter: an RFC 1035 label.
pub fn rfc1035_label_problem(text: &str) -> Option<String> {
    if text.len() > LABEL_MAX {
        return Some(too_long(LABEL_MAX, "characters"));
    }
    if is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    Some(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and \
         end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
         '[a-z]([-a-z0-9]*[a-z0-9])?')"
            .to_owned(),
    )
}

/// The name of an object that has only a `metadata.generateName`: as much of that as leaves the name a label, and a
/// letter for each random byte.
pub fn generated(base: &str, random: [u8; SUFFIX_LENGTH]) -> String {
    let kept = base
        .char_indices()
        .take_while(|(at, c)| at + c.len_utf8() <= LABEL_MAX - SUFFIX_LENGTH)
        .map(|(_, c)| c);
    let suffix = random.map(|byte| char::from(SUFFIX_ALPHABET[usize::from(byte) % SUFFIX_ALPHABET.len()]));
    kept.chain(suffix).collect()
}

/// Keys of labels and annotations, finalizers: `[prefix/]name`. All that is wrong, in the order of the API server.
pub fn qualified_name_problems(text: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut problems = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, rest)) if rest.contains('/') => {
            let form = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {RULE} {form}")];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                let of_prefix = subdomain_problem_in(prefix, "bytes").into_iter();
                problems.extend(of_prefix.map(|problem| format!("prefix part {problem}")));
            }
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        problems.push(format!("name part {}", too_long(LABEL_MAX, "bytes")));
    }
    if !is_qualified(name) {
        problems.push(format!("name part {RULE}"));
    }
    problems
}

/// Values of labels. All that is wrong, in the order of the API server.
pub fn label_value_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LABEL_MAX {
        problems.push(too_long(LABEL_MAX, "bytes"));
    }
    if !text.is_empty() && !is_qualified(text) {
        problems.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rfc() {
        for good in ["a", "a-1.b", "0", "michelangelo.api"] {
            assert_eq!(subdomain_problem(good), None, "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a..b", "a_b", "ä", "a.", &"a".repeat(254)] {
            assert!(subdomain_problem(bad).is_some(), "{bad}");
        }
        assert_eq!(dns_label_problem("123-abc"), None);
        assert!(dns_label_problem("a.b").is_some());
        assert!(dns_label_problem(&"a".repeat(64)).is_some());
        assert!(rfc1035_label_problem("1a").is_some());
    }

    #[test]
    fn a_generated_name_is_a_label_with_the_base_as_far_as_it_fits() {
        assert_eq!(generated("run-", [0, 1, 26, 27, 255]), "run-bc9bq");
        assert_eq!(generated("", [0; SUFFIX_LENGTH]), "bbbbb");
        assert_eq!(
            generated(&"a".repeat(70), [0; SUFFIX_LENGTH]),
            format!("{}bbbbb", "a".repeat(58))
        );
        // A character is not cut in half.
        assert_eq!(
            generated(&format!("{}ä", "a".repeat(57)), [0; SUFFIX_LENGTH]),
            format!("{}bbbbb", "a".repeat(57))
        );
    }

    #[test]
    fn keys_and_values_that_kubernetes_takes_are_taken() {
        for key in ["a", "A-b_c.9", "example.com/a", "a.b-c.d/E_f", "x.y/z", &"k".repeat(63)] {
            assert_eq!(qualified_name_problems(key), [""; 0], "{key}");
        }
        for value in ["", "a", "1", "a-b", "A_.b", &"v".repeat(63)] {
            assert_eq!(label_value_problems(value), [""; 0], "{value}");
        }
    }

    #[test]
    fn an_invalid_key_has_the_message_of_the_api_server() {
        let message = |key: &str| qualified_name_problems(key).join("; ");
        assert!(message("-a").starts_with("name part must consist of alphanumeric characters"));
        assert!(message("").starts_with("name part must be non-empty; name part must consist of"));
        assert!(message("a/").starts_with("name part must be non-empty; name part must consist of"));
        assert_eq!(message(&"k".repeat(64)), "name part must be no more than 63 bytes");
        assert_eq!(message("/a"), "prefix part must be non-empty");
        assert!(message("Example.com/a").starts_with("prefix part a lowercase RFC 1123 subdomain must consist of"));
        assert!(message(&format!("{}/a", "p".repeat(254))).starts_with("prefix part must be no more than 253 bytes"));
        assert!(message("a/b/c").ends_with("prefix and '/' (e.g. 'example.com/MyName')"));
        assert!(message("a'b;--").contains("regex used for validation is"));
    }

    #[test]
    fn an_invalid_value_has_the_message_of_the_api_server() {
        let message = |value: &str| label_value_problems(value).join("; ");
        assert_eq!(message(&"v".repeat(64)), "must be no more than 63 bytes");
        for value in ["a b", "a/b", ".a", "a'", "ä"] {
            assert!(message(value).starts_with("a valid label must be an empty string or consist of"));
        }
    }
}
