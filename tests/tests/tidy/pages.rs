//! The written pages: links lead to files and headings that exist, the book lists every page, and what is copied into
//! a page is what it was copied from. Knows nothing of what the pages say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::expect_none;
use super::files::{File, all, is_emitted, root};

/// The targets of `[text](target)` and `{{#include target}}` with their lines.
fn targets(page: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in page.text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        let links = line.split("](").skip(1).filter(|_| !in_code);
        let includes = line.split("{{#include ").skip(1);
        let ends = links.filter_map(|rest| rest.split_once(')'));
        let ends = ends.chain(includes.filter_map(|rest| rest.split_once("}}")));
        found.extend(ends.map(|(target, _)| (number, target.trim().to_owned())));
    }
    found
}

fn is_elsewhere(target: &str) -> bool {
    target.starts_with("http") || target.starts_with('#')
}

#[test]
fn every_link_leads_somewhere() {
    let mut findings = Vec::new();
    for page in all(&[".md"]) {
        let directory = root().join(&page.path);
        let directory = directory.parent().expect("a page is in a directory");
        for (number, target) in targets(&page) {
            let file = target.split('#').next().unwrap_or("");
            if !is_elsewhere(&target) && !directory.join(file).exists() {
                findings.push(page.finding(number, &format!("`{target}` does not exist")));
            }
        }
    }
    expect_none(findings);
}

/// What follows the `#` of a link to a heading, as mdbook and GitHub make it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    let small = kept.flat_map(char::to_lowercase);
    small.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// Those of a page, and of what it includes.
fn anchors(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let mut found: Vec<String> = headings.map(|line| anchor(line.trim_start_matches('#'))).collect();
    for rest in text.split("{{#include ").skip(1) {
        let included = rest.split_once("}}").map_or(rest, |(file, _)| file);
        found.extend(anchors(&path.with_file_name(included)));
    }
    found
}

#[test]
fn every_link_to_a_heading_finds_one() {
    let mut findings = Vec::new();
    for page in all(&[".md"]) {
        let path = root().join(&page.path);
        for (number, target) in targets(&page) {
            // A template's links are complete in what is made of it.
            let elsewhere = target.starts_with("http") || target.contains("{{");
            let Some((file, heading)) = target.split_once('#').filter(|_| !elsewhere) else {
                continue;
            };
            let file = match file {
                "" => path.clone(),
                _ => path.parent().expect("a page is in a directory").join(file),
            };
            if !anchors(&file).iter().any(|known| known == heading) {
                findings.push(page.finding(number, &format!("`{target}`: the page has no such heading")));
            }
        }
    }
    expect_none(findings);
}

/// Directives of mdbook are text to who reads the page elsewhere.
#[test]
fn the_page_of_crds_toml_has_the_whole_reference() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("the file is in the checkout");
    let (page, reference) = (
        read("docs/src/reference/crds-toml.md"),
        read("codegen/src/reference.toml"),
    );
    let lines = |text: &str| -> Vec<String> {
        let reported = text.lines().filter(|line| !line.is_empty());
        reported
            .map(|line| line.trim_end_matches('-').trim_end().to_owned())
            .collect()
    };
    let mut in_code = false;
    let shown = page.lines().filter_map(|line| {
        let fence = line.starts_with("```");
        in_code ^= fence;
        let heading = line.strip_prefix("## ").map(|heading| format!("# --- {heading}"));
        if in_code && !fence {
            Some(line.to_owned())
        } else {
            heading
        }
    });
    let shown = lines(&shown.skip(1).collect::<Vec<_>>().join("\n"));
    let at = lines(&reference)
        .iter()
        .zip(&shown)
        .position(|(there, here)| there != here);
    let differs = at.map_or("only one of them goes on", |at| &shown[at]);
    assert!(
        lines(&reference) == shown,
        "docs/src/reference/crds-toml.md differs from codegen/src/reference.toml: {differs}"
    );
}

#[test]
fn the_book_lists_every_page() {
    let pages = all(&[".md"]);
    let book: Vec<&File> = pages.iter().filter(|page| page.path.starts_with("docs/src/")).collect();
    let summary = book.iter().find(|page| page.path.ends_with("/SUMMARY.md"));
    let summary = summary.expect("the book has a summary");
    let listed: Vec<PathBuf> = targets(summary).into_iter().map(|(_, target)| target.into()).collect();
    let mut findings = Vec::new();
    for page in book.iter().filter(|page| page.path != summary.path) {
        let path = Path::new(page.path.trim_start_matches("docs/src/"));
        if !listed.iter().any(|listed| listed == path) {
            findings.push(page.finding(0, "SUMMARY.md does not list this page"));
        }
    }
    expect_none(findings);
}

/// `module::test`, with as much of its path as a reader needs.
#[test]
fn the_page_of_scenarios_names_tests_that_exist() {
    let pages = all(&[".md"]);
    let page = pages.iter().find(|page| page.path.ends_with("/reference/scenarios.md"));
    let page = page.expect("the book has the page");
    let sources = all(&[".rs", ".py"]);
    let is_there = |name: &str| {
        let (path, test) = name.rsplit_once("::").expect("the name has a module");
        if let Some(area) = path.strip_suffix("::case") {
            let case = format!("tests/tests/{area}/{test}/crds.toml");
            return root().join(case).exists();
        }
        let module = path.rsplit("::").next().unwrap_or(path);
        let of_module = |source: &&File| {
            let path = source
                .path
                .trim_end_matches(".rs")
                .trim_end_matches(".py")
                .trim_end_matches("/mod");
            path.split('/').any(|part| part == module) || source.text.contains(&format!("mod {module} {{"))
        };
        let functions = [format!("fn {test}("), format!("def {test}(")];
        sources
            .iter()
            .filter(of_module)
            .any(|source| functions.iter().any(|function| source.text.contains(function)))
    };
    let mut findings = Vec::new();
    for (number, line) in page.text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let last = line.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        let names = last.split('`').filter(|name| name.contains("::"));
        let missing = names.filter(|name| !is_there(name));
        findings.extend(missing.map(|name| page.finding(number, &format!("there is no test `{name}`"))));
    }
    expect_none(findings);
}

/// The folder of an emitted file, as the pages name it.
fn folder(path: &str) -> String {
    let depth = if path.starts_with("docs/") { 2 } else { 1 };
    path.split_inclusive('/').take(depth).collect()
}

/// Who adds a kind commits all that the build emitted with it.
#[test]
fn a_list_of_what_to_commit_names_all_that_is_emitted() {
    let emitted = all(&[".rs", ".sql", ".yaml", ".md", ".sh"])
        .into_iter()
        .filter(is_emitted);
    let folders: BTreeSet<String> = emitted
        .map(|file| folder(&file.path))
        .filter(|folder| folder != "tests/")
        .collect();
    assert!(
        folders.contains("schema/") && folders.contains("docs/reference/"),
        "{folders:?}"
    );
    let (mut reported, mut findings) = (0, Vec::new());
    for page in all(&[".md"]) {
        for (number, line) in page.text.lines().enumerate() {
            if !line.contains("`generated/`, `schema/`") {
                continue;
            }
            reported += 1;
            let missing = folders.iter().filter(|folder| !line.contains(&format!("`{folder}`")));
            findings.extend(missing.map(|folder| page.finding(number, &format!("`{folder}` is emitted as well"))));
        }
    }
    expect_none(findings);
    assert!(reported >= 3, "{reported} lines say what to commit");
}

#[test]
fn headings_are_linked_as_mdbook_and_github_spell_them() {
    for (heading, link) in [
        (
            "What differs from a kube-apiserver",
            "what-differs-from-a-kube-apiserver",
        ),
        ("`kindex up`: try it", "kindex-up-try-it"),
        ("Live & archived", "live--archived"),
    ] {
        assert_eq!(anchor(heading), link);
    }
}

#[test]
fn links_are_read_outside_of_code_and_includes_everywhere() {
    let text = "a [b](c.md) and [d](e.md#f)\n```\n[x](y)\n{{#include z.toml}}\n```\n";
    let page = File {
        path: "p.md".to_owned(),
        text: text.to_owned(),
    };
    let found: Vec<String> = targets(&page).into_iter().map(|(_, target)| target).collect();
    assert_eq!(found, ["c.md", "e.md#f", "z.toml"]);
}
