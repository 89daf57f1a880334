//! Paths in backquotes on the pages at the root of the checkout: each leads to a file or a folder. Knows nothing of
//! links, nor of paths that begin below a crate.

use super::expect_none;
use super::files::{File, all, root};

const PAGES: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

/// What stands for a part of a name, or makes it a command.
const PLACEHOLDERS: [char; 4] = ['*', '<', '…', ' '];

/// Whether a text in backquotes is a path that begins with a folder of the checkout.
fn is_path(text: &str) -> bool {
    let folder = text.split_once('/').map_or("", |(folder, _)| folder);
    !folder.is_empty() && !text.contains(PLACEHOLDERS) && root().join(folder).is_dir()
}

/// The paths of a page that lead nowhere. Blocks of code are what they are elsewhere.
fn missing(page: &File) -> Vec<String> {
    let mut findings = Vec::new();
    let mut in_code = false;
    for (number, line) in page.text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        let quoted = line.split('`').skip(1).step_by(2).filter(|_| !in_code);
        let gone = quoted.filter(|text| is_path(text) && !root().join(text).exists());
        findings.extend(gone.map(|path| page.finding(number, &format!("`{path}` does not exist"))));
    }
    findings
}

#[test]
fn paths_on_the_pages_of_the_root_lead_somewhere() {
    let pages = all(&[".md"]);
    let pages: Vec<&File> = pages
        .iter()
        .filter(|page| PAGES.contains(&page.path.as_str()))
        .collect();
    assert_eq!(pages.len(), PAGES.len());
    expect_none(pages.into_iter().flat_map(missing).collect());
}

/// A check that reads only links, or only the first path of a line, would miss this one.
#[test]
fn a_path_that_leads_nowhere_is_found() {
    let text = concat!(
        "`tests/tests/tidy/mod.rs` and `tests/tests/tidy/gone.rs`, `tests/src/`\n",
        "`tests/<name>.rs`, `/readyz`, `nowhere/x`, `tests/run it`\n",
        "```\n`tests/gone`\n```\n",
        "| `runtime/replicas` | a row |\n",
    );
    let page = File {
        path: "p.md".to_owned(),
        text: text.to_owned(),
    };
    assert_eq!(
        missing(&page),
        [
            "p.md:1: `tests/tests/tidy/gone.rs` does not exist",
            "p.md:6: `runtime/replicas` does not exist"
        ]
    );
}
