//! The hash by which a batch that comes again is told from another one under the same id: over what was sent, not over
//! what was kept, and the same for both transports. Every part has its length before it, so that nothing can move from
//! one part to the next.

use sha2::{Digest, Sha256};

use crate::wire::MetricColumns;

/// Names and values in the order of the request.
pub(super) type Pairs<'a> = &'a [(String, String)];

/// Of points in the order of the request, and of the parameters and tags that came with them.
pub(super) fn of(columns: &MetricColumns, params: Pairs<'_>, tags: Pairs<'_>) -> [u8; 32] {
    const POINT_BYTES: usize = 4 + 8 + 8 + 13;
    let mut text = Vec::with_capacity(columns.len() * POINT_BYTES + 1024);
    count(&mut text, columns.names().len());
    for name in columns.names() {
        string(&mut text, name);
    }
    count(&mut text, columns.len());
    for place in columns.name_of() {
        text.extend(place.to_le_bytes());
    }
    for step in columns.steps() {
        text.extend(step.to_le_bytes());
    }
    for value in columns.values() {
        text.extend(value.to_le_bytes());
    }
    for time in columns.times() {
        match time {
            None => text.push(0),
            Some(time) => {
                text.push(1);
                text.extend(time.seconds.to_le_bytes());
                text.extend(time.nanos.to_le_bytes());
            }
        }
    }
    for pairs in [params, tags] {
        count(&mut text, pairs.len());
        for (name, value) in pairs {
            string(&mut text, name);
            string(&mut text, value);
        }
    }
    Sha256::digest(&text).into()
}

fn count(text: &mut Vec<u8>, count: usize) {
    text.extend((count as u64).to_le_bytes());
}

fn string(text: &mut Vec<u8>, string: &str) {
    count(text, string.len());
    text.extend(string.as_bytes());
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

    fn pair(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    fn point(name: &str, step: i64, value: f64, time: Option<Timestamp>) -> MetricColumns {
        let mut columns = MetricColumns::default();
        columns.push(name, step, value, time);
        columns
    }

    #[test]
    fn the_hash_separates_shifted_names_and_timestamps() {
        let time = |seconds, nanos| Some(Timestamp { seconds, nanos });
        let nothing = MetricColumns::default();
        let mut two = point("a", 1, 1.0, None);
        two.push("b", 1, 1.0, None);
        let mut turned = point("b", 1, 1.0, None);
        turned.push("a", 1, 1.0, None);
        let mut hashes = vec![
            of(&nothing, &pair("ab", "c"), &[]),
            of(&nothing, &pair("a", "bc"), &[]),
            of(&nothing, &[], &pair("a", "bc")),
            of(&nothing, &[], &[]),
            of(&two, &[], &[]),
            of(&turned, &[], &[]),
        ];
        for point in [
            point("a", 1, 1.0, None),
            point("a", 1, 1.0, time(0, 0)),
            point("a", 1, 1.0, time(0, 1)),
            point("a", 1, 1.0, time(1, 0)),
            point("a", 2, 1.0, None),
            point("b", 1, 1.0, None),
            point("a", 1, 0.0, None),
            point("a", 1, -0.0, None),
            point("a", 1, f64::NAN, None),
            point("a", 1, f64::from_bits(f64::NAN.to_bits() + 1), None),
        ] {
            hashes.push(of(&point, &[], &[]));
        }
        let number = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), number);
    }
}
