//! Texts in no more room than a message has.

use crate::object::Key;

/// Names that a path has at either end where there is no room for all.
const ENDS_MAX: usize = 6;
const HELD_BY: &str = " is held by ";

/// So much of a text, in whole characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The path of a cycle back to its beginning; of a long one, as much of both ends as there is room for.
pub(super) fn fitted_path(path: &[Key], bytes: usize) -> String {
    // No name is shorter than what is between two of them.
    let may_fit = path.len() <= bytes / HELD_BY.len();
    let all: Vec<_> = path.iter().chain(path.first()).collect();
    let whole = may_fit.then(|| joined(&all)).filter(|whole| whole.len() <= bytes);
    let ends_max = ENDS_MAX.min((all.len() - 1) / 2);
    let mut ends = (1..=ends_max).rev().map(|ends| of_ends(&all, ends));
    let fitted = whole.or_else(|| ends.find(|text| text.len() <= bytes));
    fitted.unwrap_or_else(|| cut(&joined(&all[..1]), bytes).to_owned())
}

fn of_ends(all: &[&Key], ends: usize) -> String {
    let last = all.len() - ends;
    let (begin, end) = (joined(&all[..ends]), joined(&all[last..]));
    format!("{begin} (and {} more in between){HELD_BY}{end}", last - ends)
}

fn joined(names: &[&Key]) -> String {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    names.join(HELD_BY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::key;

    fn path(length: usize) -> Vec<Key> {
        (0..length).map(|number| key("Node", &format!("n{number}"))).collect()
    }

    #[test]
    fn a_path_that_is_too_long_has_as_many_names_at_either_end_as_there_is_room_for() {
        let n = |number: usize| key("Node", &format!("n{number}")).to_string();
        let whole = [n(0), n(1), n(2), n(0)].join(HELD_BY);
        assert_eq!(fitted_path(&path(3), whole.len()), whole);
        let ends = format!("{} (and 2 more in between) is held by {}", n(0), n(0));
        assert_eq!(fitted_path(&path(3), whole.len() - 1), ends, "it has no shorter middle");
        let long = fitted_path(&path(1000), 1000);
        let begins = (0..ENDS_MAX).map(n).collect::<Vec<_>>().join(HELD_BY);
        assert!(
            long.starts_with(&format!("{begins} (and 989 more in between) is held by {}", n(995))),
            "{long}"
        );
        assert!(long.ends_with(&format!("{} is held by {}", n(999), n(0))), "{long}");
        for bytes in 0..1000 {
            assert!(fitted_path(&path(30), bytes).len() <= bytes, "{bytes}");
        }
    }

    #[test]
    fn one_that_holds_itself_is_its_own_path() {
        let itself = fitted_path(&path(1), 1000);
        assert_eq!(
            itself,
            "node.x.example.com default/n0 is held by node.x.example.com default/n0"
        );
        assert_eq!(fitted_path(&path(1), 10), "node.x.exa");
    }
}
