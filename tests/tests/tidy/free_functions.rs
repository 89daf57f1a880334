//! The functions of a Rust file that belong to no type, and where its own code names what its modules have.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::Item;

use super::tokens::{is_punct, line};

/// Those of one file, without those of tests.
#[derive(Debug, Default)]
pub(super) struct FreeFunctions {
    /// At the top of the file.
    pub(super) defined: BTreeSet<String>,
    /// Paths from a module of the file on, which may name functions: as calls do, and as a function that is handed on.
    /// What is only imported or exported is not named.
    pub(super) named: BTreeSet<Vec<String>>,
}

impl FreeFunctions {
    /// Those of a file with these modules, which takes this out of them.
    pub(super) fn read(
        syntax: &syn::File,
        tokens: TokenStream,
        modules: &[String],
        taken: &BTreeMap<String, Vec<String>>,
        is_test: impl Fn(usize) -> bool,
    ) -> Self {
        let functions = syntax.items.iter().filter_map(|item| match item {
            Item::Fn(function) => Some(&function.sig.ident),
            _ => None,
        });
        let defined = functions.filter(|name| !is_test(line(name.span())));
        let mut named = BTreeSet::new();
        each_path(tokens, &mut |at: usize, path: &[String]| {
            let Some((first, below)) = path.split_first().filter(|_| !is_test(at)) else {
                return;
            };
            if modules.contains(first) && !below.is_empty() {
                named.insert(path.to_vec());
            } else if let Some(taken) = taken.get(first) {
                named.insert([&taken[..], below].concat());
            }
        });
        Self {
            defined: defined.map(ToString::to_string).collect(),
            named,
        }
    }
}

/// The paths outside of imports, each with the line on which it begins, and without a `self` in front.
fn each_path(tokens: TokenStream, see: &mut impl FnMut(usize, &[String])) {
    let sequence: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = sequence.get(at) {
        let (before, rest) = (&sequence[..at], &sequence[at..]);
        at += 1;
        match token {
            TokenTree::Ident(word) if *word == "use" && !is_next(rest, '<') => {
                at += rest.iter().take_while(|token| !is_punct(token, ';')).count();
            }
            TokenTree::Ident(word) if !is_name(before, rest) => {
                let path = path(rest);
                let own = match path.as_slice() {
                    [first, below @ ..] if first == "self" && !below.is_empty() => below,
                    whole => whole,
                };
                see(line(word.span()), own);
            }
            TokenTree::Group(group) => each_path(group.stream(), see),
            _ => {}
        }
    }
}

/// Whether a word names a field, a method, or what is being declared, or goes on with a path.
fn is_name(before: &[TokenTree], rest: &[TokenTree]) -> bool {
    let is_declared = match before {
        [.., TokenTree::Ident(word)] => *word == "fn" || *word == "mod",
        _ => false,
    };
    let last = |wanted| before.iter().rev().take_while(|token| is_punct(token, wanted)).count();
    // Two points are a range or the rest of a struct.
    let is_member = last('.') == 1 || last(':') == 2;
    let is_field = match rest {
        [_, first, second, ..] => is_punct(first, ':') && !is_punct(second, ':'),
        _ => false,
    };
    is_declared || is_member || is_field
}

fn is_next(rest: &[TokenTree], wanted: char) -> bool {
    rest.get(1).is_some_and(|token| is_punct(token, wanted))
}

fn path(tokens: &[TokenTree]) -> Vec<String> {
    match tokens {
        [TokenTree::Ident(name), first, second, rest @ ..] if is_punct(first, ':') && is_punct(second, ':') => {
            [vec![name.to_string()], path(rest)].concat()
        }
        [TokenTree::Ident(name), ..] => vec![name.to_string()],
        _ => Vec::new(),
    }
}

/// As if imports, fields or methods were calls, or calls in macros and functions that are handed on were none.
#[test]
fn what_a_file_names_of_its_modules_is_read() {
    let text = concat!(
        "mod a;\nmod b;\n\npub use a::{one, two};\nuse b::{seven, six};\n\nfn three(seven: u8) -> impl Fn() + use<> {\n",
        "    a::four(X { six: b::five(), ..six() });\n    join!(self::b::eight::<u8>());\n    x.map(two);\n    x.one();\n",
        "    if self.one {}\n    c::one();\n    move || nine()\n}\n\n#[cfg(test)]\nfn ten() {\n    a::eleven();\n}\n",
    );
    let syntax = syn::parse_file(text).expect("Rust");
    let tokens = text.parse().expect("tokens");
    let modules = ["a", "b"].map(str::to_owned);
    let taken = [("one", "a"), ("two", "a"), ("seven", "b"), ("six", "b")];
    let taken = taken.map(|(name, module)| (name.to_owned(), vec![module.to_owned(), name.to_owned()]));
    let found = FreeFunctions::read(&syntax, tokens, &modules, &BTreeMap::from(taken), |line| line >= 16);
    assert_eq!(found.defined.into_iter().collect::<Vec<_>>(), ["three"]);
    let named: Vec<String> = found.named.iter().map(|path| path.join("::")).collect();
    assert_eq!(named, ["a::four", "a::two", "b::eight", "b::five", "b::six"]);
}
