//! Those that an object waits for in the end, in the room that a message has for them: each with its age, and with the
//! objects through which it holds the one that waits.

use jiff::Timestamp;

use crate::object::Key;
use crate::roots::Root;

/// How many of them are named, and how many objects on the way to each.
const NAMES_MAX: usize = 5;
/// How much of a message they have.
const BYTES_MAX: usize = 400;
const COMMA: &str = ", ";
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Names with ages, as many as there is room for. The ways to them have the room that is left: whom to act on matters
/// more.
pub(super) fn shown(roots: &[Root], now: Timestamp) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut left = BYTES_MAX;
    for root in roots.iter().take(NAMES_MAX) {
        let text = one(root, 0, now);
        let comma = if texts.is_empty() { 0 } else { COMMA.len() };
        let Some(rest) = left.checked_sub(comma + text.len()) else {
            break;
        };
        left = rest;
        texts.push(text);
    }
    for (text, root) in texts.iter_mut().zip(roots) {
        let room = text.len() + left;
        let named_max = root.through.len().min(NAMES_MAX);
        let mut with_way = (1..=named_max).rev().map(|named| one(root, named, now));
        if let Some(fitted) = with_way.find(|with_way| with_way.len() <= room) {
            left = room - fitted.len();
            *text = fitted;
        }
    }
    let text = texts.join(COMMA);
    match (texts.len(), roots.len() - texts.len()) {
        (_, 0) => text,
        (0, more) => format!("{more} with long names"),
        (_, more) => format!("{text} and {more} more"),
    }
}

/// `a (2h, via b, c and 3 more)`, with so many names of the way.
fn one(root: &Root, named: usize, now: Timestamp) -> String {
    let age = root.since.map(|since| age(since, now));
    let details: Vec<_> = age.into_iter().chain(way(&root.through, named)).collect();
    match details.is_empty() {
        true => root.name.clone(),
        false => format!("{} ({})", root.name, details.join(COMMA)),
    }
}

fn way(through: &[Key], named: usize) -> Option<String> {
    let names: Vec<_> = through.iter().take(named).map(ToString::to_string).collect();
    let more = match through.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("via {}{more}", names.join(COMMA)))
}

/// `2h`: in the largest unit of which it has one. Clocks may differ.
fn age(since: Timestamp, now: Timestamp) -> String {
    match now.duration_since(since).as_secs().max(0) {
        seconds @ 0..MINUTE => format!("{seconds}s"),
        seconds @ MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{}h", seconds / HOUR),
        seconds => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::key;

    fn root(name: &str, since: Option<i64>, through: &[Key]) -> Root {
        Root {
            name: name.to_owned(),
            since: since.map(|second| Timestamp::from_second(second).expect("a time")),
            through: through.into(),
        }
    }

    fn said(roots: &[Root]) -> String {
        shown(roots, Timestamp::from_second(2 * HOUR).expect("a time"))
    }

    #[test]
    fn the_objects_on_the_way_to_an_end_are_named() {
        let [b, c] = ["b", "c"].map(|name| key("Node", name));
        let through = [b.clone(), c.clone()];
        let roots = [
            root("x", Some(0), &through),
            root("y", None, &through[..1]),
            root("z", None, &[]),
        ];
        assert_eq!(said(&roots), format!("x (2h, via {b}, {c}), y (via {b}), z"));
    }

    #[test]
    fn of_a_long_way_the_first_names_are_shown_and_no_way_takes_the_room_of_a_name() {
        let many: Vec<_> = (0..NAMES_MAX + 2)
            .map(|number| key("Node", &number.to_string()))
            .collect();
        let text = said(&[root("x", None, &many)]);
        assert!(
            text.ends_with(&format!("{} and 2 more)", many[NAMES_MAX - 1])),
            "{text}"
        );
        let long = key("Node", &"n".repeat(BYTES_MAX));
        assert_eq!(said(&[root("x", Some(0), &[long])]), "x (2h)");
        let names: Vec<_> = (0..NAMES_MAX).map(|number| number.to_string().repeat(70)).collect();
        let roots: Vec<_> = names.iter().map(|name| root(name, None, &many)).collect();
        let text = said(&roots);
        assert!(names.iter().all(|name| text.contains(name.as_str())), "{text}");
        for bytes in 0..BYTES_MAX {
            let text = said(&[root(&"x".repeat(bytes), Some(0), &many), root("y", None, &many)]);
            assert!(text.len() <= BYTES_MAX + " and 1 more".len(), "{bytes}: {text}");
        }
    }
}
