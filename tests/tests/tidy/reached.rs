//! The files that the compiler reaches, from the roots that cargo knows: one that no module declares is left over from
//! a move, and would rot unread.

use std::collections::{BTreeMap, BTreeSet};

use super::declarations::Declaration;
use super::expect_none;
use super::manifests;
use super::rust::Rust;
use super::sources::RUST_FILES;

/// Each is compiled by itself, to see that it does not compile.
const ERRORS: &str = "tests/ui/tests/ui/errors/";

/// What is emitted is not among the files: the generator deletes what it no longer emits.
fn files() -> BTreeMap<&'static str, &'static Rust> {
    let sources = RUST_FILES.iter().filter(|(file, _)| !file.path.starts_with(ERRORS));
    sources.map(|(file, rust)| (file.path.as_str(), rust)).collect()
}

/// An example is a workspace of its own, with one file for each crate.
fn roots(files: &BTreeMap<&'static str, &Rust>) -> BTreeSet<&'static str> {
    let of_example = |path: &&str| {
        path.starts_with("examples/") && ["/src/lib.rs", "/src/main.rs"].iter().any(|end| path.ends_with(end))
    };
    let of_examples = files.keys().copied().filter(of_example);
    manifests::roots().into_iter().chain(of_examples).collect()
}

#[test]
fn every_file_is_part_of_a_crate() {
    let files = files();
    let left = left(&roots(&files), &files).into_iter();
    expect_none(
        left.map(|path| format!("{path}: no module declares this file"))
            .collect(),
    );
}

/// Cargo takes a file in the folder of a package's tests for a program of its own, and would build and run what is a
/// module of another one twice.
#[test]
fn no_module_is_a_program_as_well() {
    let files = files();
    let twice = twice(&roots(&files), &files).into_iter();
    expect_none(
        twice
            .map(|path| format!("{path}: a module declares this file, and cargo builds it alone: give it a folder"))
            .collect(),
    );
}

/// The files that are neither roots nor declared by what is reached from one.
fn left<'f>(roots: &BTreeSet<&str>, files: &BTreeMap<&'f str, &Rust>) -> Vec<&'f str> {
    let declared = declared(roots, files);
    let paths = files.keys().copied();
    paths
        .filter(|path| !roots.contains(path) && !declared.contains(*path))
        .collect()
}

/// The roots that are declared too.
fn twice<'f>(roots: &BTreeSet<&'f str>, files: &BTreeMap<&str, &Rust>) -> Vec<&'f str> {
    let declared = declared(roots, files);
    let roots = roots.iter().copied();
    roots.filter(|path| declared.contains(*path)).collect()
}

/// What the roots declare, and what those files declare in turn.
fn declared(roots: &BTreeSet<&str>, files: &BTreeMap<&str, &Rust>) -> BTreeSet<String> {
    let beside = |path: &str| (path.to_owned(), folder(path).to_owned());
    let mut next: Vec<(String, String)> = roots.iter().copied().map(beside).collect();
    let mut seen = BTreeSet::new();
    while let Some((path, home)) = next.pop() {
        // Of two places for a module, there is no file at one; and a root may be emitted.
        let Some(rust) = files.get(path.as_str()) else {
            continue;
        };
        for place in rust.declarations.iter().flat_map(|it| places(&path, &home, it)) {
            if seen.insert(place.clone()) {
                next.push(place);
            }
        }
    }
    seen.into_iter().map(|(path, _)| path).collect()
}

/// Where a declared file may lie, each place with the folder of the modules that the file declares in turn. `home` is
/// this folder of the file at `path`, which declares it.
fn places(path: &str, home: &str, declaration: &Declaration) -> Vec<(String, String)> {
    match declaration {
        Declaration::Module(names) => {
            let module = format!("{home}/{}", names.join("/"));
            vec![
                (format!("{module}.rs"), module.clone()),
                (format!("{module}/mod.rs"), module),
            ]
        }
        Declaration::Path(within, named) => {
            let from = match within.is_empty() {
                true => folder(path).to_owned(),
                false => format!("{home}/{}", within.join("/")),
            };
            let named = without_dots(&format!("{from}/{named}"));
            let home = folder(&named).to_owned();
            vec![(named, home)]
        }
    }
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn without_dots(path: &str) -> String {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}

/// What the two rules find among these files, of which these are roots.
fn found(roots: &[&'static str], files: &[(&'static str, &'static str)]) -> (Vec<&'static str>, Vec<&'static str>) {
    let read = files
        .iter()
        .map(|(path, text)| (*path, Rust::parse(text).expect("Rust")));
    let read: Vec<(&'static str, Rust)> = read.collect();
    let files: BTreeMap<&'static str, &Rust> = read.iter().map(|(path, rust)| (*path, rust)).collect();
    let roots: BTreeSet<&'static str> = roots.iter().copied().collect();
    (left(&roots, &files), twice(&roots, &files))
}

/// As if a module of that name anywhere would do, or one that nothing declares; and as if what is compiled for tests
/// alone, named by a path, or declared within a module did not count.
#[test]
fn a_file_that_a_move_leaves_behind_is_found() {
    let files = [
        ("x/build.rs", "include!(\"src/list.rs\");\n"),
        ("x/src/lib.rs", "mod a;\nmod b;\nmod inline {\n    mod deep;\n}\n"),
        ("x/src/a/mod.rs", "mod inner;\n#[cfg(test)]\nmod tests;\n"),
        ("x/src/a/inner.rs", "#[path = \"../../shared/c.rs\"]\nmod c;\n"),
        ("x/src/a/tests.rs", ""),
        (
            "x/src/b.rs",
            "mod inner;\nmod around {\n    #[path = \"odd.rs\"]\n    mod d;\n}\n",
        ),
        ("x/src/b/inner.rs", ""),
        ("x/src/b/around/odd.rs", ""),
        ("x/src/inline/deep.rs", ""),
        ("x/src/list.rs", ""),
        ("x/shared/c.rs", "mod e;\n"),
        ("x/shared/e.rs", ""),
        ("x/tests/all/main.rs", "mod part;\n"),
        ("x/tests/all/part.rs", ""),
    ];
    let roots = ["x/build.rs", "x/src/lib.rs", "x/tests/all/main.rs"];
    let none = (Vec::new(), Vec::new());
    assert_eq!(found(&roots, &files), none);
    let moved = [
        ("x/src/inner.rs", ""),
        ("x/src/b/tests.rs", ""),
        ("x/src/deep.rs", ""),
        ("x/src/old/mod.rs", "mod part;\n"),
        ("x/src/old/part.rs", ""),
        ("x/src/b/odd.rs", ""),
        ("x/tests/part.rs", ""),
    ];
    let mut paths: Vec<&str> = moved.iter().map(|(path, _)| *path).collect();
    paths.sort_unstable();
    let (left, _) = found(&roots, &[&files[..], &moved].concat());
    assert_eq!(left, paths);
}

/// As if a root were never asked for again.
#[test]
fn a_module_that_is_a_program_as_well_is_found() {
    let files = [
        ("x/tests/main.rs", "mod a;\nmod b;\n"),
        ("x/tests/a.rs", ""),
        ("x/tests/b/mod.rs", ""),
        ("x/tests/c.rs", ""),
    ];
    let roots = ["x/tests/main.rs", "x/tests/a.rs", "x/tests/c.rs"];
    let (left, twice) = found(&roots, &files);
    assert_eq!(twice, ["x/tests/a.rs"]);
    assert!(left.is_empty(), "{left:?}");
}
