//! "Did you mean": the nearest of some candidates by edit distance.

/// The candidate that is most like `wrong`, if one is like it at all: at most a third of its letters differ. Among
/// equals the first wins.
pub(super) fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = wrong.chars().count().max(3) / 3;
    let folded = wrong.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = distance(&folded, &candidate.to_lowercase());
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Damerau-Levenshtein distance with adjacent transpositions, which are what typing errors mostly are.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut current = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substitution = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = substitution.min(previous[j] + 1).min(current[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            current[j] = least;
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn a_typing_error_finds_its_word() {
        let candidates = ["algorithm", "owner", "description"];
        assert_eq!(nearest("algoritm", candidates), Some("algorithm"));
        assert_eq!(nearest("onwer", candidates), Some("owner"));
        assert_eq!(nearest("Owner", candidates), Some("owner"));
    }

    #[test]
    fn an_unlike_word_finds_nothing() {
        assert_eq!(nearest("state", ["owner", "kind"]), None);
        assert_eq!(nearest("x", ["uid"]), None);
    }

    #[test]
    fn a_transposition_counts_once() {
        assert_eq!(distance("sate", "saet"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
