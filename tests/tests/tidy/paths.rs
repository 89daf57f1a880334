//! Paths in backquotes on the pages about the tree: each leads to a file, a folder or a module, and a file has the
//! functions that are named in parentheses behind it. Knows nothing of links, nor of other names without a slash.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use super::expect_none;
use super::files::{File, all, is_build_output, root};

/// The pages that say where something is: the whole path of each, or how it begins.
const PAGES: [&str; 4] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "docs/src/explanation/inside-",
];

/// Texts with a slash that are spelled like a path of modules.
const NO_PATHS: [&str; 1] = ["namespace/name"];

/// What a path has besides letters and digits. Blanks, colons and equals signs make a command or an address.
const PATH_SIGNS: &str = "/._-{},*<>…";

/// `*`, `…` and a name in angle brackets stand for any text within a part of a path.
const PLACEHOLDERS: [char; 4] = ['*', '<', '>', '…'];

/// All files and folders of the checkout, each by the parts of its path.
static TREE: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let mut tree = Vec::new();
    walk(&root(), &[], &mut tree);
    tree
});

fn walk(directory: &Path, above: &[String], tree: &mut Vec<Vec<String>>) {
    let entries = fs::read_dir(directory).expect("a directory of the checkout is readable");
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_build_output(&name) {
            continue;
        }
        let mut parts = above.to_vec();
        parts.push(name);
        let path = entry.path();
        if path.is_dir() {
            walk(&path, &parts, tree);
        }
        tree.push(parts);
    }
}

/// What begins with a slash is an address of a server.
fn is_path(text: &str) -> bool {
    let is_spelled_so = |letter: char| letter.is_alphanumeric() || PATH_SIGNS.contains(letter);
    text.contains('/') && !text.starts_with('/') && text.chars().all(is_spelled_so) && !NO_PATHS.contains(&text)
}

/// The paths that one with braces stands for, one for each text that they list.
fn spelled_out(path: &str) -> Vec<String> {
    let listed = path
        .split_once('{')
        .and_then(|(before, rest)| rest.split_once('}').map(|(listed, after)| (before, listed, after)));
    let Some((before, listed, after)) = listed else {
        return vec![path.to_owned()];
    };
    let ends = spelled_out(after);
    let begun = listed.split(',').map(|text| format!("{before}{text}"));
    begun
        .flat_map(|begun| ends.iter().map(move |end| format!("{begun}{end}")))
        .collect()
}

/// Whether a part of a path is that name, or may stand for it.
fn fits(part: &str, name: &str) -> bool {
    if !part.contains(PLACEHOLDERS) {
        return part == name;
    }
    let before = part.split(PLACEHOLDERS).next().unwrap_or_default();
    let after = part.rsplit(PLACEHOLDERS).next().unwrap_or_default();
    name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after))
}

/// A path that begins with a folder of the root is a whole one. Any other one is that of a module: it begins somewhere
/// in the tree, and leaves out each `src` and, if it wants, the ending.
fn is_there(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let is_whole = parts.first().is_some_and(|folder| root().join(folder).is_dir());
    let fit = |names: &[&str]| {
        let mut pairs = parts.iter().zip(names);
        pairs.all(|(part, name)| fits(part, name) || !is_whole && fits(part, name.trim_end_matches(".rs")))
    };
    TREE.iter().any(|known| {
        let known = known.iter().map(String::as_str);
        let names: Vec<&str> = known.filter(|name| is_whole || *name != "src").collect();
        match is_whole {
            true => names.len() == parts.len() && fit(&names),
            false => names.windows(parts.len()).any(fit),
        }
    })
}

/// The paths of a page that lead nowhere. Blocks of code are what they are elsewhere.
fn missing(page: &File) -> Vec<String> {
    let mut findings = Vec::new();
    let mut in_code = false;
    for (number, line) in page.text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        let quoted = line.split('`').skip(1).step_by(2).filter(|_| !in_code);
        let paths = quoted.filter(|text| is_path(text)).flat_map(spelled_out);
        let gone = paths.filter(|path| !is_there(path));
        findings.extend(gone.map(|path| page.finding(number, &format!("`{path}` does not exist"))));
    }
    findings
}

/// A file on a page with a function of it, as in `path` (`function`, `function`), each with the line from zero. A
/// function of a type may be named with the type.
fn functions(page: &File) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        let parts: Vec<&str> = line.split('`').collect();
        let (mut file, mut is_behind) = (None, false);
        for pair in parts.chunks_exact(2) {
            let (before, quoted) = (pair[0], pair[1]);
            is_behind = (is_behind || before == " (") && !before.contains(')');
            let is_file = is_path(quoted) && [".rs", ".py"].iter().any(|ending| quoted.ends_with(ending));
            match file {
                _ if is_file => (file, is_behind) = (Some(quoted), false),
                Some(file) if is_behind => found.push((number, file, quoted.rsplit("::").next().unwrap_or(quoted))),
                _ => file = None,
            }
        }
    }
    found
}

/// Whether a text in Rust or Python has a function of that name.
fn defines(text: &str, function: &str) -> bool {
    ["fn ", "def "].iter().any(|word| {
        let beginning = format!("{word}{function}");
        let mut rests = text.split(beginning.as_str()).skip(1);
        rests.any(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    })
}

/// The functions of a page that the files before them lack.
fn missing_functions(page: &File) -> Vec<String> {
    let gone = functions(page).into_iter().filter(|(_, file, function)| {
        let text = fs::read_to_string(root().join(file));
        !text.is_ok_and(|text| defines(&text, function))
    });
    let findings = gone.map(|(number, file, function)| page.finding(number, &format!("`{file}` has no `{function}`")));
    findings.collect()
}

/// The pages about the tree.
fn pages() -> Vec<File> {
    let mut pages = all(&[".md"]);
    pages.retain(|page| PAGES.iter().any(|known| page.path.starts_with(known)));
    for known in PAGES {
        assert!(pages.iter().any(|page| page.path.starts_with(known)), "{known}");
    }
    pages
}

#[test]
fn paths_on_the_pages_about_the_tree_lead_somewhere() {
    expect_none(pages().iter().flat_map(missing).collect());
}

#[test]
fn functions_on_the_pages_about_the_tree_are_in_their_files() {
    let pages = pages();
    let architecture = pages.iter().find(|page| page.path == "ARCHITECTURE.md");
    let named = architecture.map_or(0, |page| functions(page).len());
    assert!(named > 40, "the steps of an object name functions, not only {named}");
    expect_none(pages.iter().flat_map(missing_functions).collect());
}

fn page(text: &str) -> File {
    File {
        path: "p.md".to_owned(),
        text: text.to_owned(),
    }
}

fn missing_in(text: &str) -> Vec<String> {
    missing(&page(text))
}

/// As if only the first function or the first file of a line counted, or a name that begins with that of another one.
#[test]
fn a_function_that_its_file_lacks_is_found() {
    let text = concat!(
        "| `tests/tests/tidy/tokens.rs` (`line`, then `gone`) → `tests/tests/tidy/files.rs` (`roo`, `File::finding`) |\n",
        "`tests/tests/tidy/tokens.rs` and (`gone`); `tests/tests/tidy/gone.rs` (`f`), `g`; (`sdk/python`, `h`)\n",
        "`sdk/python/src/kindex/_spool.py` (`points`, `gone`)\n",
    );
    assert_eq!(
        missing_functions(&page(text)),
        [
            "p.md:1: `tests/tests/tidy/tokens.rs` has no `gone`",
            "p.md:1: `tests/tests/tidy/files.rs` has no `roo`",
            "p.md:2: `tests/tests/tidy/gone.rs` has no `f`",
            "p.md:3: `sdk/python/src/kindex/_spool.py` has no `gone`"
        ]
    );
}

/// A check that reads only links, or only the first path of a line, would miss this one.
#[test]
fn a_path_that_leads_nowhere_is_found() {
    let text = concat!(
        "`tests/tests/tidy/mod.rs` and `tests/tests/tidy/gone.rs`, `tests/src/`\n",
        "`/readyz`, `http://nowhere/x`, `tests/run it`, `namespace/name`\n",
        "```\n`tests/gone`\n```\n",
        "| `runtime/replicas` | a row |\n",
    );
    assert_eq!(
        missing_in(text),
        [
            "p.md:1: `tests/tests/tidy/gone.rs` does not exist",
            "p.md:6: `runtime/replicas` does not exist"
        ]
    );
}

/// One that looks only at paths from the root would miss this one.
#[test]
fn a_module_that_leads_nowhere_is_found() {
    let text = "`cluster/follower`, `store/write`, `tidy/paths.rs` and `cluster/formers`";
    assert_eq!(missing_in(text), ["p.md:1: `cluster/formers` does not exist"]);
}

#[test]
fn what_stands_for_names_stands_for_one_at_least() {
    let text = concat!(
        "`tests/tests/<area>/`, `tests/tests/tidy/*.rs`, `tests/…/Cargo.toml`, `tests/tests/tidy/{paths,pages}.rs`\n",
        "`tests/<nowhere>/gone.rs`, `tests/tests/tidy/*.sql`, `tests/tests/tidy/{paths,gone}.rs`\n",
    );
    assert_eq!(
        missing_in(text),
        [
            "p.md:2: `tests/<nowhere>/gone.rs` does not exist",
            "p.md:2: `tests/tests/tidy/*.sql` does not exist",
            "p.md:2: `tests/tests/tidy/gone.rs` does not exist"
        ]
    );
}
