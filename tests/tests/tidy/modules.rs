//! The file that declares modules is their reading order: a module imports only those that are declared above it,
//! and calls no method that leads back to it, so that neither a crate nor a folder has circles. The file itself and its
//! modules call each other in one direction. Of tests, only the imports are in this order: what several of them share
//! is declared above them.

use std::collections::{BTreeMap, BTreeSet};

use super::expect_none;
use super::files::File;
use super::rust::Rust;
use super::sources::RUST_FILES;
use super::tree::Tree;

#[test]
fn a_module_imports_only_modules_above_it() {
    let trees = crates().into_iter().chain(test_programs());
    let found = trees.flat_map(|tree| upward_imports(&tree)).collect();
    expect_none(found);
}

/// A `*` names no module: what it takes of a file above may come from any module there, also from one that is declared
/// below.
#[test]
fn no_module_imports_everything_of_a_file_above_it() {
    let trees = crates().into_iter().chain(test_programs());
    let found = trees.flat_map(|tree| globs(&tree)).collect();
    expect_none(found);
}

/// A method may be called before its module is read, as the state of a type is declared above what uses it; but not
/// where that module needs the caller in turn. A file and those below it are one in this.
#[test]
fn no_call_of_a_method_closes_a_circle() {
    let found = crates().iter().flat_map(circles).collect();
    expect_none(found);
}

/// A file that declares modules is what they build upon, or what puts them together, and not both: else nobody can read
/// one of them alone. Its types and constants are for all of them in any case.
#[test]
fn no_module_calls_the_file_back_that_calls_it() {
    let found = crates().iter().flat_map(calls_back).collect();
    expect_none(found);
}

/// All but [`test_programs`].
fn crates() -> Vec<Tree<'static>> {
    let crates = trees(|file| !file.path.contains("/tests/"));
    assert!(
        crates.len() > 20,
        "the walk finds the crates, not only {}",
        crates.len()
    );
    crates
}

/// The integration tests, which cargo builds as crates of their own.
fn test_programs() -> Vec<Tree<'static>> {
    trees(|file| file.path.contains("/tests/"))
}

fn trees(is_wanted: impl Fn(&File) -> bool) -> Vec<Tree<'static>> {
    let files = RUST_FILES.iter().filter(|(file, _)| is_wanted(file));
    let files = files.filter(|(file, _)| !file.path.starts_with("tests/fixtures/"));
    let files = files.map(|(file, rust)| (file.path.as_str(), rust)).collect();
    Tree::all(&files)
}

fn upward_imports(tree: &Tree<'_>) -> BTreeSet<String> {
    let imports = tree.imports();
    let mut found = BTreeSet::new();
    for list in tree.lists() {
        let siblings = imports.iter().filter_map(|(from, to)| list.siblings(from, to));
        let upward = siblings.filter(|(module, other)| list.is_below(other, module));
        found.extend(upward.map(|(module, other)| {
            format!(
                "{}: `{module}` imports `{other}`, which is declared below it",
                list.file
            )
        }));
    }
    found
}

fn globs(tree: &Tree<'_>) -> BTreeSet<String> {
    let globs = tree.globs_above().into_iter();
    let found = globs.map(|(file, path)| format!("{file}: `{}::*` does not say what it imports", path.join("::")));
    found.collect()
}

/// The calls to modules below that close circles. Every circle has one, or an import to a module below.
fn circles(tree: &Tree<'_>) -> BTreeSet<String> {
    let (imports, calls) = (tree.imports(), tree.calls());
    let mut found = BTreeSet::new();
    for list in tree.lists() {
        let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let imported = imports.iter().filter_map(|(from, to)| list.siblings(from, to));
        let called = calls.iter().filter_map(|call| list.siblings(call.from, call.to));
        for (module, other) in imported.chain(called) {
            uses.entry(module).or_default().insert(other);
        }
        for call in &calls {
            if let Some((module, other)) = list.siblings(call.from, call.to)
                && list.is_below(other, module)
                && leads(&uses, other, module)
            {
                let (file, called) = (list.file, call.called());
                found.insert(format!(
                    "{file}: `{module}` calls {called} of `{other}`, which needs `{module}` in turn"
                ));
            }
        }
    }
    found
}

/// The calls of a file to a module that it declares, which calls the file back, by itself or by way of another one.
fn calls_back(tree: &Tree<'_>) -> BTreeSet<String> {
    let methods = tree.calls().into_iter();
    let methods = methods.map(|call| (call.from, call.to.to_vec(), call.called()));
    let calls: Vec<(&[String], Vec<String>, String)> = methods.chain(tree.function_uses()).collect();
    let mut found = BTreeSet::new();
    for list in tree.lists() {
        let mut beside: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (module, other) in calls.iter().filter_map(|(from, to, _)| list.siblings(from, to)) {
            beside.entry(module).or_default().insert(other);
        }
        for (from, to, called) in &calls {
            let Some(module) = list.member(to).filter(|_| list.is_own(from)) else {
                continue;
            };
            let mut up = calls.iter().filter(|(_, to, _)| list.is_own(to));
            let back = up.find_map(|(from, _, back)| {
                let other = list.member(from)?;
                leads(&beside, module, other).then_some((other, back))
            });
            if let Some((other, back)) = back {
                let file = list.file;
                found.insert(format!(
                    "{file}: calls {called} of `{module}`, and `{other}` calls {back} of this file in turn"
                ));
            }
        }
    }
    found
}

/// Whether a module uses another one, or something that does.
fn leads(uses: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            next.extend(uses.get(module).into_iter().flatten());
        }
    }
    false
}

/// What a rule says of the crates of these files.
fn found(rule: fn(&Tree<'_>) -> BTreeSet<String>, files: &[(&str, &str)]) -> BTreeSet<String> {
    let read = files
        .iter()
        .map(|(path, text)| (*path, Rust::parse(text).expect("Rust")));
    let read: Vec<(&str, Rust)> = read.collect();
    let files = read.iter().map(|(path, rust)| (*path, rust)).collect();
    Tree::all(&files).iter().flat_map(rule).collect()
}

/// As if only the list of the crate, or only the first name of a path, counted.
#[test]
fn an_import_against_the_order_is_found_in_every_folder() {
    let root = ("x/src/lib.rs", "mod y;\n\npub use y::Thing;\n");
    for list in ["x/src/y/mod.rs", "x/src/y.rs"] {
        let declares = (list, "mod a;\n\nmod b;\n\npub use b::{Thing, inner::Part as Piece};\n");
        let upward = |path: &'static str, text: &'static str| {
            let mut files = vec![root, declares, ("x/src/y/a.rs", "mod c;\n"), ("x/src/y/b.rs", "")];
            files.retain(|(known, _)| *known != path);
            if path == "x/src/y/a/mod.rs" {
                files.retain(|(known, _)| *known != "x/src/y/a.rs");
            }
            files.push((path, text));
            found(upward_imports, &files).len()
        };
        assert_eq!(upward("x/src/y/a.rs", "use super::b::f;\n"), 1);
        assert_eq!(upward("x/src/y/a.rs", "use super::Thing;\n"), 1, "by another name");
        assert_eq!(upward("x/src/y/a.rs", "use super::Piece;\n"), 1, "by a new name");
        assert_eq!(upward("x/src/y/a.rs", "use crate::y::b::f;\n"), 1, "from the root");
        assert_eq!(upward("x/src/y/a.rs", "use crate::{y::{Other, b}};\n"), 1, "in groups");
        assert_eq!(
            upward("x/src/y/a.rs", "use crate::Thing;\n"),
            1,
            "by what the root exports"
        );
        assert_eq!(upward("x/src/y/a/c.rs", "use super::super::{Other, b};\n"), 1);
        assert_eq!(upward("x/src/y/a/c.rs", "fn f() {\n    crate::y::b::f();\n}\n"), 1);
        assert_eq!(upward("x/src/y/a/mod.rs", "use super::b;\n"), 1);
        assert_eq!(upward("x/src/y/b.rs", "use super::a;\n"), 0, "in the order");
        assert_eq!(upward("x/src/y/b.rs", "use crate::y::a::f;\n"), 0, "in the order");
        assert_eq!(upward("x/src/y/a.rs", "use crate::b;\n"), 0, "of another folder");
        let of_tests = "#[cfg(test)]\nmod tests {\n    use super::b;\n    use crate::y::b;\n}\n";
        assert_eq!(upward("x/src/y/a.rs", of_tests), 0);
    }
}

/// As if the order were that of sources alone, or of some folders of tests; and as if what the file of a program
/// defines itself were declared below its modules.
#[test]
fn an_import_against_the_order_of_tests_is_found() {
    let main = "mod a;\n\nmod stage;\n\nuse stage::Stage;\n\nconst MOST: u8 = 1;\n";
    let upward = |a: &str| {
        let files = [
            ("x/tests/y/main.rs", main),
            ("x/tests/y/a.rs", a),
            ("x/tests/y/stage.rs", "use super::a;\n"),
        ];
        found(upward_imports, &files).into_iter().collect::<Vec<_>>()
    };
    let finding = ["x/tests/y/main.rs: `a` imports `stage`, which is declared below it"];
    assert_eq!(upward("use super::stage::f;\n"), finding);
    assert_eq!(upward("use super::Stage;\n"), finding, "by another name");
    assert_eq!(upward("use crate::stage;\n"), finding, "from the root");
    let test = "#[test]\nfn f() {\n    super::stage::g();\n}\n";
    assert_eq!(upward(test), finding, "in a test");
    let none: [&str; 0] = [];
    assert_eq!(upward("use super::MOST;\n"), none, "of no module");

    let programs = test_programs();
    for known in [
        "crates/events/tests/contract.rs",
        "kindex/tests/faults/runs/mod.rs",
        "kindex/tests/up/main.rs",
        "sdk/rust/tests/delivery/main.rs",
        "services/runs/tests/front/main.rs",
        "tests/tests/graph/main.rs",
        "tests/tests/sql/store/convert/mod.rs",
        "tests/tests/tidy/mod.rs",
    ] {
        let is_read = programs.iter().any(|tree| tree.lists().any(|list| list.file == known));
        assert!(is_read, "{known} is a file of no program of tests");
    }
}

/// As if only `super` itself, only a path without a group or only what stands at the top of a file counted.
#[test]
fn an_import_of_everything_above_is_found() {
    let whole = |text: &str| {
        let files = [
            ("x/src/lib.rs", "mod y;\n"),
            ("x/src/y/mod.rs", "mod a;\n\nmod b;\n\nenum Word {\n    One,\n}\n"),
            ("x/src/y/a.rs", text),
            ("x/src/y/b.rs", ""),
        ];
        found(globs, &files).into_iter().collect::<Vec<_>>()
    };
    let finding = |path: &str| [format!("x/src/y/a.rs: `{path}::*` does not say what it imports")];
    assert_eq!(whole("use super::*;\n"), finding("super"));
    assert_eq!(whole("use self::super::super::*;\n"), finding("super::super"));
    assert_eq!(whole("use crate::*;\n"), finding("crate"));
    assert_eq!(whole("use crate::y::*;\n"), finding("crate::y"), "by its name");
    assert_eq!(whole("use super::{Word, *};\n"), finding("super"), "in a group");
    assert_eq!(
        whole("fn f() {\n    use super::*;\n}\n"),
        finding("super"),
        "in a function"
    );
    let none: [&str; 0] = [];
    assert_eq!(whole("use super::Word::*;\n"), none, "the variants of a type");
    assert_eq!(whole("use crate::y::b::*;\n"), none, "it names a module beside it");
    assert_eq!(whole("use std::fmt::*;\n"), none, "of another crate");
    assert_eq!(
        whole("fn f() {\n    quote! { use super::*; }\n}\n"),
        none,
        "of what is emitted"
    );
    assert_eq!(
        whole("#[cfg(test)]\nmod tests {\n    use super::*;\n}\n"),
        none,
        "tests may"
    );
}

/// As if calls did not count, or only those by `self`; and as if every call to a module below were a circle.
#[test]
fn a_call_that_leads_back_is_a_circle() {
    const BACK: &str = "impl super::Run {\n    fn two(&self) {\n        self.one();\n    }\n}\n";
    const IMPORT: &str = "use super::a::f;\n\nimpl super::Run {\n    fn two(&self) {}\n}\n";
    const ALONE: &str = "impl super::Run {\n    fn two(&self) {}\n}\n";
    const PLAIN: &str = "self.two();";
    let closed = |call: &str, b: &str, more: &str| {
        let a = format!("mod c;\n\nimpl super::Run {{\n    fn one(&self) {{\n        {call}\n    }}\n}}\n");
        let files = [
            ("x/src/lib.rs", "mod y;\n"),
            ("x/src/y/mod.rs", "mod a;\n\nmod b;\n\nstruct Run;\n"),
            ("x/src/y/a.rs", a.as_str()),
            ("x/src/y/a/c.rs", more),
            ("x/src/y/b.rs", b),
        ];
        found(circles, &files).into_iter().collect::<Vec<_>>()
    };
    let circle = "x/src/y/mod.rs: `a` calls Run::two of `b`, which needs `a` in turn";
    assert_eq!(closed(PLAIN, BACK, ""), [circle]);
    assert_eq!(closed(PLAIN, IMPORT, ""), [circle], "back by an import");
    assert_eq!(closed("Run::two(self);", BACK, ""), [circle]);
    assert_eq!(closed("Self::two(self);", BACK, ""), [circle]);
    assert_eq!(closed("join!(self.two());", BACK, ""), [circle]);
    let by_name = "Run::two (by its name alone; `Type::two(…)` says whose it is)";
    assert_eq!(
        closed("run.two();", BACK, ""),
        [circle.replace("Run::two", by_name)],
        "it says so"
    );
    let below = "impl super::super::Run {\n    fn three(&self) {\n        self.two();\n    }\n}\n";
    assert_eq!(closed("", BACK, below), [circle], "from a folder");
    let none: [&str; 0] = [];
    assert_eq!(closed(PLAIN, ALONE, ""), none, "nothing leads back");
    assert_eq!(closed("", BACK, ""), none, "in the order");
    assert_eq!(closed("self.two;", BACK, ""), none, "a field");
    assert_eq!(closed("Other::two(self);", BACK, ""), none, "of another type");
    let twice = "impl super::super::Run {\n    fn two(&self) {}\n}\n";
    assert_eq!(closed(PLAIN, BACK, twice), none, "it is not known which one is called");
    let tests = "#[cfg(test)]\nmod tests {\n    impl super::super::super::Run {\n        fn three(&self) {\n            \
                 self.two();\n        }\n    }\n}\n";
    assert_eq!(closed("", BACK, tests), none, "tests may");
}

/// As if only methods or only functions were called, only in one form, or only without another module between; and as
/// if types and exports were calls.
#[test]
fn a_module_that_calls_its_file_back_is_found() {
    let back = |call: &str, b: &str, up: &str| {
        let file = format!(
            "mod a;\n\nmod b;\n\npub use b::{{g, h}};\n\nstruct Run;\n\nconst MOST: u8 = 1;\n\nfn f() {{}}\n\nimpl Run {{\n    \
             fn one(&self) {{\n        {call}\n    }}\n}}\n"
        );
        let a = format!("pub(super) fn i() {{\n    {up}\n}}\n");
        let b = format!(
            "pub fn g() {{\n    {b}\n}}\n\npub fn h() {{}}\n\nimpl super::Run {{\n    fn two(&self) {{\n        {b}\n    }}\n}}\n"
        );
        let files = [
            ("x/src/lib.rs", "mod y;\n"),
            ("x/src/y/mod.rs", file.as_str()),
            ("x/src/y/a.rs", a.as_str()),
            ("x/src/y/b.rs", b.as_str()),
        ];
        found(calls_back, &files).into_iter().collect::<Vec<_>>()
    };
    let circle = |called: &str, by: &str, back: &str| {
        [format!(
            "x/src/y/mod.rs: calls {called} of `b`, and `{by}` calls {back} of this file in turn"
        )]
    };
    assert_eq!(back("b::g();", "super::f();", ""), circle("g", "b", "f"));
    assert_eq!(back("g();", "super::f();", ""), circle("g", "b", "f"), "taken out");
    assert_eq!(back("join!(g());", "super::f();", ""), circle("g", "b", "f"));
    assert_eq!(back("x.map(g);", "super::f();", ""), circle("g", "b", "f"), "handed on");
    assert_eq!(back("crate::y::b::g();", "crate::y::f();", ""), circle("g", "b", "f"));
    assert_eq!(
        back("self.two();", "self.one();", ""),
        circle("Run::two", "b", "Run::one")
    );
    assert_eq!(back("self.two();", "super::f();", ""), circle("Run::two", "b", "f"));
    assert_eq!(back("g();", "Run::one(self);", ""), circle("g", "b", "Run::one"));
    let by_a = back("g();", "super::a::i();", "super::f();");
    assert_eq!(by_a, circle("g", "a", "f"), "by way of another module");
    let none: [&str; 0] = [];
    assert_eq!(back("", "super::f();", ""), none, "only exported");
    assert_eq!(back("g();", "", ""), none, "nothing leads back");
    assert_eq!(back("g();", "", "super::f();"), none, "it has nothing to do with `a`");
    assert_eq!(back("g();", "use super::{MOST, Run};", ""), none, "no functions");
    assert_eq!(
        back("self.g(X { h: 1 });", "super::f();", ""),
        none,
        "a field and another method"
    );
}

/// As if a method of another value were nobody's; and as if its name alone said whose it is where a trait, another file
/// or another crate has it too.
#[test]
fn a_method_of_another_value_calls_its_file_back() {
    let among = |call: &str, more: [&str; 3]| {
        let [file, beside, other_crate] = more;
        let file = format!(
            "mod a;\n\nstruct Run;\n\nimpl Run {{\n    fn one(&self) {{}}\n}}\n\nfn f() {{\n    a::g();\n}}\n{file}"
        );
        let a = format!("pub(super) fn g() {{\n    {call}\n}}\n{beside}");
        let files = [
            ("x/src/lib.rs", "mod y;\n"),
            ("x/src/y/mod.rs", file.as_str()),
            ("x/src/y/a.rs", a.as_str()),
            ("z/src/lib.rs", other_crate),
        ];
        found(calls_back, &files).into_iter().collect::<Vec<_>>()
    };
    let back = |call: &str| among(call, [""; 3]);
    let circle = ["x/src/y/mod.rs: calls g of `a`, and `a` calls Run::one \
                   (by its name alone; `Type::one(…)` says whose it is) of this file in turn"];
    assert_eq!(back("run.one();"), circle);
    assert_eq!(back("f(|it| it.run().one::<u8>());"), circle);
    assert_eq!(back("join!(it.run.one());"), circle);
    let none: [&str; 0] = [];
    assert_eq!(back("run.one;"), none, "a field");
    assert_eq!(back("f(X { ..one() });"), none, "a function");
    let part = "impl Part {\n    fn one(&self) {}\n}\n";
    let of_one_file = among("run.one();", [part, "", ""]);
    assert_eq!(of_one_file.len(), 1, "both are of the file: {of_one_file:?}");
    assert_eq!(among("run.one();", ["", part, ""]), none, "it is not known which one");
    assert_eq!(among("run.one();", ["", "", part]), none, "it may be the other crate's");
    let called = "fn h() {\n    x.one();\n}\n";
    assert_eq!(among("run.one();", ["", "", called]), none, "it may be a library's");
    let declared = "trait T {\n    fn one(&self);\n}\n";
    assert_eq!(among("run.one();", [declared, "", ""]), none, "it may be any type's");
    let implemented = "impl Iterator for Part {\n    fn one(&mut self) {}\n}\n";
    assert_eq!(among("run.one();", [implemented, "", ""]), none, "a trait has it");
    let without_self = "impl Part {\n    fn two() {}\n}\n";
    assert_eq!(among("run.two();", [without_self, "", ""]), none, "no value has it");
}
