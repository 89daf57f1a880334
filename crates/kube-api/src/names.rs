//! The rules for names, label keys and label values. Each function answers with the API server's text of what is
//! wrong, or nothing. Refuses to know where a name stands.

/// Longest subdomain.
const SUBDOMAIN_MAX: usize = 253;
/// Longest label, of DNS and of Kubernetes.
const LABEL_MAX: usize = 63;

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
pub fn subdomain(text: &str) -> Option<String> {
    subdomain_of(text, "characters")
}

fn subdomain_of(text: &str, unit: &str) -> Option<String> {
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
pub fn dns_label(text: &str) -> Option<String> {
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
pub fn rfc1035_label(text: &str) -> Option<String> {
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

/// Keys of labels and annotations, finalizers: `[prefix/]name`.
pub fn qualified_name(text: &str) -> Option<String> {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) => (Some(prefix), name),
    };
    match prefix {
        Some("") => return Some("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            if let Some(problem) = subdomain_of(prefix, "bytes") {
                return Some(format!("prefix part {problem}"));
            }
        }
        None => {}
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > LABEL_MAX {
        return Some(format!("name part {}", too_long(LABEL_MAX, "bytes")));
    }
    if is_qualified(name) {
        return None;
    }
    Some(
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
         (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            .to_owned(),
    )
}

/// Values of labels.
pub fn label_value(text: &str) -> Option<String> {
    if text.len() > LABEL_MAX {
        return Some(too_long(LABEL_MAX, "bytes"));
    }
    if text.is_empty() || is_qualified(text) {
        return None;
    }
    Some(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end \
         with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
         '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rfc() {
        for good in ["a", "a-1.b", "0", "michelangelo.api"] {
            assert_eq!(subdomain(good), None, "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a..b", "a_b", "ä", "a.", &"a".repeat(254)] {
            assert!(subdomain(bad).is_some(), "{bad}");
        }
        assert_eq!(dns_label("123-abc"), None);
        assert!(dns_label("a.b").is_some());
        assert!(dns_label(&"a".repeat(64)).is_some());
        assert!(rfc1035_label("1a").is_some());
    }

    #[test]
    fn label_keys_have_an_optional_prefix() {
        for good in ["a", "example.com/A_b.c", "x.y/z"] {
            assert_eq!(qualified_name(good), None, "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "A.b/c", "-a", &format!("x/{}", "a".repeat(64))] {
            assert!(qualified_name(bad).is_some(), "{bad}");
        }
        assert_eq!(label_value(""), None);
        assert!(label_value("a b").is_some());
    }
}
