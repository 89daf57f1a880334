//! Rules about Rust files one by one: what they open with, how long they and
//! their functions are, and what may not stand in them.

use std::sync::LazyLock;

use super::expect_none;
use super::files::{File, hand_written};
use super::rust::Rust;

const FILE_LINES_MAX: usize = 450;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 120;

/// Every hand-written Rust file, read once for all rules.
pub(super) static RUST_FILES: LazyLock<Vec<(File, Rust)>> = LazyLock::new(|| {
    let files = hand_written(&[".rs"]).into_iter();
    let read = files.map(|file| match Rust::parse(&file.text) {
        Ok(rust) => (file, rust),
        Err(error) => panic!("{}: {error}", file.path),
    });
    read.collect()
});

#[test]
fn the_walk_finds_the_sources() {
    let paths: Vec<&str> = RUST_FILES.iter().map(|(file, _)| file.path.as_str()).collect();
    for known in ["macros/src/lib.rs", "runtime/src/lib.rs", "tests/tests/tidy/sources.rs"] {
        assert!(paths.contains(&known), "{known} is not among {paths:?}");
    }
}

/// Whether a line is of tests or benchmarks: there a panic is the report.
pub(super) fn is_test(file: &File, rust: &Rust, line: usize) -> bool {
    let whole = ["tests/", "benches/"].iter().any(|start| file.path.starts_with(start))
        || file.path.contains("/tests/")
        || file.path.ends_with("/tests.rs");
    whole || rust.is_test(line)
}

#[test]
fn a_file_opens_with_what_it_holds() {
    let files = RUST_FILES.iter();
    let findings = files
        .filter(|(file, _)| !file.text.starts_with("//! "))
        .map(|(file, _)| file.finding(0, "the file does not open with a `//!` paragraph"));
    expect_none(findings.collect());
}

#[test]
fn a_file_has_at_most_450_lines() {
    let mut findings = Vec::new();
    let python = hand_written(&[".py"]);
    for file in RUST_FILES.iter().map(|(file, _)| file).chain(&python) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            findings.push(file.finding(lines - 1, &format!("{lines} lines, {FILE_LINES_MAX} at most")));
        }
    }
    expect_none(findings);
}

/// A line that quotes may be as long as what it quotes.
#[test]
fn a_line_has_at_most_120_characters() {
    let mut findings = Vec::new();
    for file in hand_written(&[".rs", ".py", ".proto", ".go", ".sh"]) {
        for (number, line) in file.text.lines().enumerate() {
            let chars = line.chars().count();
            // Python puts a long text into parentheses.
            let is_free = !file.path.ends_with(".py") && quotes(line);
            if chars > LINE_CHARS_MAX && !is_free {
                findings.push(file.finding(number, &format!("{chars} characters, {LINE_CHARS_MAX} at most")));
            }
        }
    }
    expect_none(findings);
}

/// Whether a line is, or belongs to, a literal: it has a quotation mark or goes on after its end.
fn quotes(line: &str) -> bool {
    line.contains('"') || line.ends_with('\\')
}

#[test]
fn a_function_has_at_most_70_lines() {
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter() {
        for &(line, length) in &rust.functions {
            if length > FUNCTION_LINES_MAX {
                let message = format!("a function of {length} lines, {FUNCTION_LINES_MAX} at most");
                findings.push(file.finding(line, &message));
            }
        }
    }
    expect_none(findings);
}

#[test]
fn no_unwrap_outside_of_tests() {
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter() {
        for (number, line) in rust.code.lines().enumerate() {
            if line.contains(".unwrap()") && !is_test(file, rust, number) {
                findings.push(file.finding(number, "`unwrap()`: say the invariant with `expect`"));
            }
        }
    }
    expect_none(findings);
}

/// Who has a trait may call each of its methods. A type that cannot answer one shows that the trait is too large.
#[test]
fn no_method_of_a_trait_panics_instead_of_answering() {
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter() {
        for (number, name) in &rust.panics {
            if !is_test(file, rust, *number) {
                let message = format!("`{name}!` in a method of a trait: divide the trait, or answer with an error");
                findings.push(file.finding(*number, &message));
            }
        }
    }
    expect_none(findings);
}

#[test]
fn no_test_is_switched_off() {
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter() {
        for (number, line) in rust.code.lines().enumerate() {
            if line.contains("#[ignore") {
                findings.push(file.finding(number, "an ignored test"));
            }
        }
    }
    expect_none(findings);
}

/// A real process is waited for by polling a condition until a deadline. A load program, which
/// somebody watches, may pace itself and take its time.
#[test]
fn no_test_sleeps_without_a_deadline() {
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter().filter(|(file, _)| !file.path.starts_with("benches/")) {
        let lines: Vec<&str> = rust.code.lines().collect();
        for number in (0..lines.len()).filter(|number| is_test(file, rust, *number)) {
            let around = &lines[number.saturating_sub(15)..lines.len().min(number + 5)];
            let polls = around.iter().any(|line| line.contains("deadline"));
            let sleeps = ["thread::sleep(", "time::sleep("]
                .iter()
                .any(|call| lines[number].contains(call));
            if sleeps && !polls {
                findings.push(file.finding(number, "wait for a condition with a deadline instead"));
            }
        }
    }
    expect_none(findings);
}

#[test]
fn comments_leave_no_work_behind() {
    let marks = ["TODO", "FIXME", "XXX", "HACK"];
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter() {
        for (number, line) in rust.comments.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric());
            if let Some(mark) = words.find(|word| marks.contains(word)) {
                findings.push(file.finding(number, &format!("`{mark}` in a comment")));
            }
        }
    }
    expect_none(findings);
}

#[test]
fn no_code_is_commented_out() {
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter() {
        for (number, line) in rust.comments.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("// ").unwrap_or("").trim();
            if looks_like_code(comment) {
                findings.push(file.finding(number, "code in a comment"));
            }
        }
    }
    expect_none(findings);
}

/// A sentence ends with a full stop and never with a semicolon after a bracket.
fn looks_like_code(comment: &str) -> bool {
    let statement = [");", "};", "];", "?;"].iter().any(|end| comment.ends_with(end));
    let opening = ["fn ", "let ", "pub ", "use ", "impl ", "if ", "for ", "match ", "#["]
        .iter()
        .any(|start| comment.starts_with(start))
        && [" {", ";", "]"].iter().any(|end| comment.ends_with(end));
    statement || opening || comment == "}"
}

/// The project speaks of itself alone: no path of a machine, no host of a registry.
#[test]
fn nothing_names_a_machine() {
    let sources = [
        ".rs", ".toml", ".md", ".yaml", ".yml", ".sh", ".proto", ".go", ".sql", ".tpl",
    ];
    let scripts = ["run", "build", "install", "Containerfile"];
    let endings = [&sources[..], &scripts].concat();
    let forbidden = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/Use", "rs/"),
        concat!("/tmp/", "bash_jobs"),
        concat!("index.", "crates.io"),
        concat!("proxy.", "golang.org"),
        concat!("sum.", "golang.org"),
        concat!("registry.", "npmjs.org"),
        concat!("files.", "pythonhosted.org"),
        concat!("deb.", "debian.org"),
        concat!("docker", ".io"),
        concat!("quay", ".io"),
        concat!("ghcr", ".io"),
        concat!("registry.", "k8s.io"),
    ];
    let mut findings = Vec::new();
    for file in super::files::all(&endings) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(word) = forbidden.iter().find(|word| line.contains(**word)) {
                findings.push(file.finding(number, &format!("`{word}` belongs to a machine")));
            }
        }
    }
    expect_none(findings);
}
