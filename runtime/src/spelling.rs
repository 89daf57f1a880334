//! "Did you mean": the known word that a mistyped one is nearest to.

/// The known word that is meant, where one is near enough: a third of the letters may differ, or one of a short word.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let distances = known
        .into_iter()
        .map(|known| (distance(&lower, &known.to_lowercase()), known));
    let (distance, near) = distances.min()?;
    (distance <= word.chars().count().max(3) / 3).then_some(near)
}

/// Levenshtein's distance, one row at a time.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in two.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
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
            ("pods", None),
            ("all", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
        assert_eq!(nearest("model", []), None);
    }
}
