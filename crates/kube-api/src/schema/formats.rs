//! The string formats that the API server checks in custom resources. Formats that it does not know, `int32` and
//! `int64` among them, are ignored there and so have no entry here. Knows nothing of schemas.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;

/// A format that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
}

impl Format {
    /// The format of that name; dashes do not count (`date-time`, `datetime`).
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "datetime" => Self::DateTime,
            _ => return None,
        })
    }

    /// Whether `text` has this format.
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => is_hex(text, 24),
            Self::Uri => is_uri(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => is_ipv4(text),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Mac => is_mac(text),
            Self::Uuid => is_uuid(text, None),
            Self::Uuid3 => is_uuid(text, Some(b'3')),
            Self::Uuid4 => is_uuid(text, Some(b'4')),
            Self::Uuid5 => is_uuid(text, Some(b'5')),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::CreditCard => is_credit_card(text),
            Self::Ssn => text.len() == 11 && SSN.is_match(text),
            Self::HexColor => is_hex_color(text),
            Self::RgbColor => RGB_COLOR.is_match(text),
            Self::Byte => is_base64(text),
            Self::Password => true,
            Self::Date => is_date(text),
            Self::Duration => is_duration(text),
            Self::DateTime => is_date_time(text),
        }
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is part of the program")
}

static SSN: LazyLock<Regex> = LazyLock::new(|| pattern("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"(?:0|[1-9][0-9]?|1[0-9]{0,2}|2[0-4][0-9]|25[0-5])";
    pattern(&format!(r"^rgb\(\s*{part}\s*,\s*{part}\s*,\s*{part}\s*\)$"))
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern("^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let letter = r"[a-zA-Z0-9\p{S}\p{L}]";
    let inner = r"[a-zA-Z0-9\-\p{S}\p{L}]{0,61}";
    let single = format!(r"{letter}-?(?:[a-zA-Z0-9\p{{S}}\p{{L}}]{{0,62}})");
    pattern(&format!(
        r"^(?:{single}|(?:{letter}(?:{inner}{letter})?\.)+[a-zA-Z\p{{L}}]{{2,63}})$"
    ))
});
static GO_DURATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$"));
static WORDY_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)[0-9]+\s*(?:(?:nano|micro|milli|sec|min|hour|day|week)[a-zµ]*|(?:ns|us|µs|ms|s|m|h|hr|d|w|wk)(?:[^a-zµ]|$))",
    )
});

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An absolute URI or an absolute path, as an HTTP request line takes it.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
        return false;
    }
    let absolute = text.starts_with('/') || text == "*";
    let scheme = text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
            && rest.starts_with('/')
    });
    (absolute || scheme) && percent_escapes_are_whole(text)
}

fn percent_escapes_are_whole(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|after| after.len() >= 2 && after.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

/// `local@domain`, or `Name <local@domain>`.
fn is_email(text: &str) -> bool {
    let address = match text.trim().strip_suffix('>') {
        Some(before) => before.rsplit_once('<').map_or("", |(_, address)| address),
        None => text.trim(),
    };
    let is_atom = |part: &str| {
        !part.is_empty()
            && part.split('.').all(|atom| {
                !atom.is_empty()
                    && atom.chars().all(|letter| {
                        !letter.is_ascii() || letter.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(letter)
                    })
            })
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
        (quoted || is_atom(local)) && is_atom(domain)
    })
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && HOSTNAME.is_match(text) && text.split('.').all(|label| label.len() <= 63)
}

/// Four numbers up to 255; zeros in front are taken.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<_> = text.split('.').collect();
    let is_part =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u8>().is_ok();
    let mapped = || text.contains(':') && text.contains('.') && text.parse::<Ipv6Addr>().is_ok();
    (parts.len() == 4 && parts.iter().all(is_part)) || mapped() || text.parse::<Ipv4Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = if address.contains(':') { 128 } else { 32 };
    let known = if most == 32 {
        is_ipv4(address)
    } else {
        address.parse::<Ipv6Addr>().is_ok()
    };
    known && bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

/// 6, 8 or 20 bytes in pairs with `:` or `-`, or in fours with `.`.
fn is_mac(text: &str) -> bool {
    let whole = |separator: char, digits: usize| {
        let groups: Vec<_> = text.split(separator).collect();
        matches!(groups.len() * digits, 12 | 16 | 40) && groups.iter().all(|group| is_hex(group, digits))
    };
    whole(':', 2) || whole('-', 2) || whole('.', 4)
}

/// 32 hex digits in groups of 8, 4, 4, 4 and 12, each dash optional.
fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(group) = rest.get(..length).filter(|group| is_hex(group, length)) else {
            return false;
        };
        digits.push_str(group);
        rest = &rest[length..];
    }
    let bytes = digits.as_bytes();
    let variant = || matches!(bytes[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b');
    rest.is_empty()
        && match version {
            None => true,
            Some(b'3') => bytes[12] == b'3',
            Some(version) => bytes[12] == version && variant(),
        }
}

fn without_spaces_and_dashes(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_whitespace() && *letter != '-')
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_spaces_and_dashes(text);
    let Some((body, last)) = digits.split_at_checked(9) else {
        return false;
    };
    let last = match last {
        "X" => Some(10),
        other if other.len() == 1 => other.parse::<u32>().ok(),
        _ => None,
    };
    let body: Option<Vec<u32>> = body.chars().map(|digit| digit.to_digit(10)).collect();
    let (Some(body), Some(last)) = (body, last) else {
        return false;
    };
    let sum: u32 = (1..).zip(body).map(|(weight, digit): (u32, u32)| weight * digit).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = without_spaces_and_dashes(text)
        .chars()
        .map(|digit| digit.to_digit(10))
        .collect();
    digits.is_some_and(|digits| {
        digits.len() == 13
            && [1, 3]
                .into_iter()
                .cycle()
                .zip(digits)
                .map(|(w, d): (u32, u32)| w * d)
                .sum::<u32>()
                % 10
                == 0
    })
}

/// A number of 13 to 16 digits in the ranges of the known issuers, with a right Luhn sum.
fn is_credit_card(text: &str) -> bool {
    static ISSUERS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}\
             |3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
        )
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn: u32 = digits
        .bytes()
        .rev()
        .map(|digit| u32::from(digit - b'0'))
        .enumerate()
        .map(|(index, digit)| {
            if index % 2 == 1 {
                digit * 2 / 10 + digit * 2 % 10
            } else {
                digit
            }
        })
        .sum();
    ISSUERS.is_match(&digits) && luhn.is_multiple_of(10)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    is_hex(digits, 3) || is_hex(digits, 6)
}

/// Standard base64 with padding, at least one group.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && Date::strptime("%Y-%m-%d", text).is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    matches!((parts.next(), parts.next()), (Some(date), Some(time)) if is_date(date) && TIME.is_match(time))
}

/// `1h30m` as Go writes durations, or words (`2 days`).
fn is_duration(text: &str) -> bool {
    GO_DURATION.is_match(text) || WORDY_DURATION.is_match(text)
}

#[cfg(test)]
mod tests;
