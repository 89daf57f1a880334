//! The file `differences.txt`: which requests are answered differently, at which paths, and for what reason.
//!
//! ```text
//! == name-of-a-reason: A sentence.
//! script/request path path
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::difference::Differences;

const TEXT: &str = include_str!("differences.txt");

/// Reasons with their sentences, in the order of the file.
pub(super) fn reasons() -> Vec<(&'static str, &'static str)> {
    let heads = TEXT.lines().filter_map(|line| line.strip_prefix("== "));
    heads
        .map(|head| head.split_once(": ").expect("a name and a sentence"))
        .collect()
}

/// The listed paths of each request, `script/request`.
pub(super) fn requests() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut requests: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let is_entry = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("==");
    for line in TEXT.lines().filter(is_entry) {
        let mut words = line.split_whitespace();
        let request = words.next().expect("the line is not empty");
        let paths = requests.entry(request).or_default();
        for path in words {
            assert!(paths.insert(path), "{request} lists {path} twice");
        }
    }
    requests
}

/// What is wrong with the list, given what was found: a line each.
pub(super) fn judge(request: &str, found: &Differences) -> Vec<String> {
    let none = BTreeSet::new();
    let all = requests();
    let listed = all.get(request).unwrap_or(&none);
    let covers = |pattern: &str, path: &str| {
        path.strip_prefix(pattern)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let unlisted = found
        .iter()
        .filter(|(path, _)| !listed.iter().any(|pattern| covers(pattern, path)));
    let unlisted = unlisted.map(|(path, (ours, theirs))| {
        let short = |value: &serde_json::Value| value.to_string().chars().take(600).collect::<String>();
        format!(
            "{request} {path}\n    embedded  {}\n    apiserver {}",
            short(ours),
            short(theirs)
        )
    });
    let stale = listed
        .iter()
        .filter(|pattern| !found.keys().any(|path| covers(pattern, path)));
    let stale = stale.map(|pattern| format!("{request} {pattern} is listed and does not differ"));
    unlisted.chain(stale).collect()
}
