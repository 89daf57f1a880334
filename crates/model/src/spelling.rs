//! "Did you mean": the known word that a mistyped one is nearest to.

/// What is longer is no slip of the hand.
const WORD_BYTES_MAX: usize = 256;

/// The known word that is meant, where one is near enough: a third of the letters may differ, or one of a short word.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The work grows with the length, and nobody mistypes so much.
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let distances = known
        .into_iter()
        .map(|known| (distance(&lower, &known.to_lowercase()), known));
    let (distance, near) = distances.min()?;
    (distance <= word.chars().count().max(3) / 3).then_some(near)
}

/// How many slips lie between two words: a letter too many, one too few, another one, or two that changed places.
fn distance(one: &str, two: &str) -> usize {
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    let mut above = vec![0; two.len() + 1];
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in two.iter().enumerate() {
            let replaced = row[j] + usize::from(a != b);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && (one[i - 1], *a) == (*b, two[j - 1]) {
                least = least.min(above[j - 1] + 1);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
    }
    row[two.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_word_and_another_word_finds_none() {
        let known = ["models", "modelfamilys", "pipelineruns", "rayjobs"];
        for (typed, meant) in [
            ("modles", Some("models")),
            ("Model", Some("models")),
            ("pipelinrun", Some("pipelineruns")),
            ("rayjob", Some("rayjobs")),
            ("modesl", Some("models")),
            ("pods", None),
            ("all", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
        assert_eq!(nearest("model", []), None);
        assert_eq!(
            nearest("gte", ["get", "diff"]),
            Some("get"),
            "two letters that changed places"
        );
    }
}
