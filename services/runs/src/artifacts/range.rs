//! Which bytes of a file a request asks for. <https://www.rfc-editor.org/rfc/rfc9110#section-14>

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// The bytes from the first to the last, both included.
    Bytes { first: u64, last: u64 },
    /// Nothing: there are no such bytes.
    Unsatisfiable,
}

/// The part of a file of this size. Several ranges, other units and what cannot be read are the whole, as they may be.
pub(super) fn part(header: Option<&str>, size: u64) -> Part {
    let range = header.and_then(|header| header.trim().strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return Part::Whole;
    };
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More than any file has.
        true if !text.is_empty() => Some(text.parse().unwrap_or(u64::MAX)),
        _ => None,
    };
    let (first, last) = match (first.trim(), last.trim()) {
        ("", count) => match number(count) {
            Some(0) => return Part::Unsatisfiable,
            Some(count) => (size.saturating_sub(count), u64::MAX),
            None => return Part::Whole,
        },
        (first, "") => match number(first) {
            Some(first) => (first, u64::MAX),
            None => return Part::Whole,
        },
        (first, last) => match number(first).zip(number(last)) {
            Some((first, last)) if first <= last => (first, last),
            _ => return Part::Whole,
        },
    };
    match first < size {
        true => Part::Bytes {
            first,
            last: last.min(size - 1),
        },
        false => Part::Unsatisfiable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_the_protocol_has_it() {
        let bytes = |first, last| Part::Bytes { first, last };
        for (header, expected) in [
            ("bytes=0-0", bytes(0, 0)),
            ("bytes=2-5", bytes(2, 5)),
            ("bytes=9-", bytes(9, 9)),
            ("bytes=0-", bytes(0, 9)),
            ("bytes=5-1000", bytes(5, 9)),
            ("bytes=5-99999999999999999999999", bytes(5, 9)),
            ("bytes=-3", bytes(7, 9)),
            ("bytes=-1000", bytes(0, 9)),
            ("bytes=-0", Part::Unsatisfiable),
            ("bytes=10-", Part::Unsatisfiable),
            ("bytes=10-12", Part::Unsatisfiable),
            ("bytes=5-2", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=0-1,4-5", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("bytes", Part::Whole),
        ] {
            assert_eq!(part(Some(header), 10), expected, "{header}");
        }
        assert_eq!(part(None, 10), Part::Whole);
        assert_eq!(part(Some("bytes=0-"), 0), Part::Unsatisfiable);
    }
}
