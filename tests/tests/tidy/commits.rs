//! What commits are called: `area: imperative sentence`, as a list of changes shows them. Knows nothing of what they
//! change.

use std::process::Command;

use super::expect_none;
use super::files::root;

/// The last commit before this rule.
const BEFORE: &str = "05b0322eb2328911d12de463c2472fcf9c6e3332";

const SUBJECT_CHARS_MAX: usize = 100;

/// By which git knows a commit that is to become part of another one.
const UNFINISHED: [&str; 2] = ["fixup!", "squash!"];

/// How git calls a commit that takes another one back, or does so with that in turn: its name stays.
const GITS_OWN: [&str; 2] = ["Revert \"", "Reapply \""];

/// Imperatives that end as other forms do.
const IMPERATIVES: [&str; 9] = [
    "alias", "bring", "embed", "focus", "ping", "ring", "shed", "shred", "string",
];

struct Commit {
    /// Abbreviated.
    id: String,
    subject: String,
    body: String,
}

/// An unpacked archive has no commits, and a shallow clone may not have this one: then there is nothing to read, and
/// only then is nothing checked.
#[test]
fn a_commit_is_called_by_its_area_and_what_it_does() {
    // Whoever has signatures shown gets them between the commits, and a partial clone is not to fetch the rest.
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(root()).env("GIT_NO_LAZY_FETCH", "1");
        git.args(["-c", "log.showSignature=false"]).args(arguments).output()
    };
    let commit = format!("{BEFORE}^{{commit}}");
    if !git(&["cat-file", "-e", &commit]).is_ok_and(|known| known.status.success()) {
        println!("not run: the history does not go back to {BEFORE}");
        return;
    }
    let range = format!("{BEFORE}..HEAD");
    let log = git(&["log", "--no-merges", "-z", "--format=%h%n%s%n%b", &range]).expect("git starts");
    assert!(log.status.success(), "{}", String::from_utf8_lossy(&log.stderr));
    let commits = commits(&String::from_utf8_lossy(&log.stdout));
    expect_none(commits.iter().flat_map(findings).collect());
}

/// Those of a list in which each has a line for its name, one for its subject, its body and a zero byte.
fn commits(log: &str) -> Vec<Commit> {
    let commits = log.split('\0').filter_map(|commit| {
        let (id, message) = commit.split_once('\n')?;
        let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
        Some(Commit {
            id: id.to_owned(),
            subject: subject.to_owned(),
            body: body.to_owned(),
        })
    });
    commits.collect()
}

fn findings(commit: &Commit) -> Vec<String> {
    let Commit { id, subject, body } = commit;
    let mut wrong = match GITS_OWN.iter().any(|own| subject.starts_with(*own)) {
        true => Vec::new(),
        false => in_subject(subject),
    };
    for text in [subject, body] {
        let marks = UNFINISHED.iter().filter(|mark| text.contains(**mark)).copied();
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        let wip = words.find(|word| word.eq_ignore_ascii_case("wip"));
        wrong.extend(
            marks
                .chain(wip)
                .map(|mark| format!("`{mark}`: the work is not finished")),
        );
    }
    let wrong = wrong.into_iter();
    wrong.map(|what| format!("{id} {subject:?}: {what}")).collect()
}

/// What is wrong with the form of a subject.
fn in_subject(subject: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    match subject.split_once(": ") {
        Some((area, sentence)) if is_area(area) => {
            if !is_imperative(sentence) {
                wrong.push("the area is not followed by an imperative in small letters".to_owned());
            }
        }
        _ => wrong.push("the subject does not begin with an area in small letters and a colon".to_owned()),
    }
    if subject.ends_with('.') {
        wrong.push("the subject ends with a full stop".to_owned());
    }
    let chars = subject.chars().count();
    if chars > SUBJECT_CHARS_MAX {
        wrong.push(format!("a subject of {chars} characters, {SUBJECT_CHARS_MAX} at most"));
    }
    wrong
}

/// One area, or several with commas: `store`, `sdk/rust`, `api, cluster`.
fn is_area(area: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/.".contains(c);
    area.split(", ")
        .all(|area| !area.is_empty() && area.chars().all(is_part))
}

/// By the first word: `add`, and neither `adds`, `added` nor `adding`.
fn is_imperative(sentence: &str) -> bool {
    let verb = sentence.split_whitespace().next().unwrap_or_default();
    let ends = |end: &str| verb.ends_with(end);
    let is_other_form = (ends("s") && !ends("ss")) || (ends("ed") && !ends("eed")) || ends("ing");
    sentence.starts_with(|c: char| c.is_ascii_lowercase()) && (!is_other_form || IMPERATIVES.contains(&verb))
}

/// The findings for one message.
fn found(subject: &str, body: &str) -> usize {
    let commits = commits(&format!("0a1b2c3\n{subject}\n{body}\0"));
    assert_eq!(commits.len(), 1, "one for each zero byte");
    findings(&commits[0]).len()
}

#[test]
fn a_subject_without_its_form_is_found() {
    let long = |chars: usize| format!("api: {}", "a".repeat(chars - "api: ".len()));
    for subject in [
        "merge archived objects into watches",
        "Api: merge archived objects into watches",
        "api:merge archived objects into watches",
        ": merge archived objects into watches",
        "api,cluster,: merge archived objects",
        "api and cluster: merge archived objects",
        "api: Merge archived objects into watches",
        "api: merges archived objects into watches",
        "api: merged archived objects into watches",
        "api: merging archived objects into watches",
        "api: merge archived objects into watches.",
        "Revert the merge of archived objects",
        &long(101),
    ] {
        assert_eq!(found(subject, ""), 1, "{subject}");
    }
    for subject in [
        "api: merge archived objects into watches",
        "sdk/rust: bring back a spool: its lock is a file",
        "api, kube-api: pass every header on",
        "store: feed 2 replicas from MariaDB 11.4",
        "runs: shred deleted bodies",
        "Revert \"api: merge archived objects into watches\"",
        &format!("Reapply \"{}\"", long(100)),
        &long(100),
    ] {
        assert_eq!(found(subject, "- Every body\n  is allowed.\n"), 0, "{subject}");
    }
}

/// As if only subjects, or only the first commit, were read; and as if a part of a word were one.
#[test]
fn a_commit_of_unfinished_work_is_found() {
    assert_eq!(found("wip: merge archived objects", ""), 1);
    assert_eq!(found("api: merge archived objects (WIP)", ""), 1);
    assert_eq!(found("api: merge archived objects", "\n- WIP: watches\n"), 1);
    assert_eq!(found("fixup! api: merge archived objects", ""), 2, "nor is it an area");
    assert_eq!(found("api: merge archived objects", "squash! api: watch\n"), 1);
    assert_eq!(found("api: wipe archived objects", "A squash and a swipe.\n"), 0);
    let two = commits("a\napi: watch\n\0b\nwip\n\nbody\n\0");
    let named: Vec<_> = two
        .iter()
        .map(|commit| (commit.id.as_str(), commit.subject.as_str()))
        .collect();
    assert_eq!(named, [("a", "api: watch"), ("b", "wip")]);
}
