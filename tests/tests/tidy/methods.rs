//! The methods that a Rust file defines, and those that it calls: with their types where the text says these, and by
//! their names alone where it does not.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{ImplItem, ItemImpl, ItemTrait, Signature, TraitItem, Type};

use super::tokens::{each_sequence, is_punct, line};

/// A type or a trait, without its path, and a method of it.
pub(super) type Method = (String, String);

/// The methods of one file, without those of tests.
#[derive(Debug, Default)]
pub(super) struct Methods {
    /// In `impl` blocks and traits.
    pub(super) defined: BTreeSet<Method>,
    /// Names that do not say of which type a value is, those of tests too: of functions in traits and their
    /// implementations, which any type may have, and of functions without a `self`, which no value has.
    pub(super) ambiguous: BTreeSet<String>,
    /// As `self.method(…)`, `Self::method` and `Type::method`, in macros too.
    pub(super) called: BTreeSet<Method>,
    /// As a method of another value, whose type only the compiler knows.
    pub(super) called_by_name: BTreeSet<String>,
}

impl Methods {
    /// Those of a file, of which these are the tokens.
    pub(super) fn read(syntax: &syn::File, tokens: TokenStream, is_test: impl Fn(usize) -> bool) -> Self {
        let mut blocks = Blocks::default();
        blocks.visit_file(syntax);
        let (mut called, mut called_by_name) = (BTreeSet::new(), BTreeSet::new());
        each_sequence(tokens, &mut |sequence| {
            for (receiver, name) in calls_in(sequence).filter(|(_, name)| !is_test(line(name.span()))) {
                let on = match receiver.to_string() {
                    own if own == "self" || own == "Self" => blocks.around(receiver),
                    other => Some(other),
                };
                called.extend(on.map(|on| (on, name.to_string())));
            }
            let names = names_in(sequence).filter(|name| !is_test(line(name.span())));
            called_by_name.extend(names.map(ToString::to_string));
        });
        let defined = blocks.methods.into_iter().filter(|(line, _)| !is_test(*line));
        Self {
            defined: defined.map(|(_, method)| method).collect(),
            ambiguous: blocks.ambiguous,
            called,
            called_by_name,
        }
    }
}

/// Receivers and names.
fn calls_in(sequence: &[TokenTree]) -> impl Iterator<Item = (&Ident, &Ident)> {
    sequence.windows(4).filter_map(|tokens| match tokens {
        [TokenTree::Ident(receiver), dot, TokenTree::Ident(name), next]
            if *receiver == "self" && is_punct(dot, '.') && begins_arguments(next) =>
        {
            Some((receiver, name))
        }
        [TokenTree::Ident(receiver), first, second, TokenTree::Ident(name)]
            if is_type(receiver) && is_punct(first, ':') && is_punct(second, ':') =>
        {
            Some((receiver, name))
        }
        _ => None,
    })
}

/// The names of methods that are called of other values than `self`.
fn names_in(sequence: &[TokenTree]) -> impl Iterator<Item = &Ident> {
    sequence.windows(4).filter_map(|tokens| match tokens {
        [TokenTree::Ident(receiver), ..] if *receiver == "self" => None,
        // Two points are a range or the rest of a struct.
        [before, dot, TokenTree::Ident(name), next]
            if !is_punct(before, '.') && is_punct(dot, '.') && begins_arguments(next) =>
        {
            Some(name)
        }
        _ => None,
    })
}

/// By the custom of writing types with a capital.
fn is_type(name: &Ident) -> bool {
    name.to_string().starts_with(char::is_uppercase)
}

/// After the name of a method, which may have types before its arguments.
fn begins_arguments(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        other => is_punct(other, ':'),
    }
}

/// The blocks that define methods.
#[derive(Default)]
struct Blocks {
    /// The bytes of each, outer ones first, and the type or trait.
    of: Vec<(Range<usize>, String)>,
    /// Each with its line.
    methods: Vec<(usize, Method)>,
    ambiguous: BTreeSet<String>,
}

impl Blocks {
    fn add(&mut self, on: &Ident, block: Span, functions: &[&Signature]) {
        let on = on.to_string();
        let names = functions.iter().map(|function| &function.ident);
        let methods = names.map(|name| (line(name.span()), (on.clone(), name.to_string())));
        self.methods.extend(methods);
        self.of.push((block.byte_range(), on));
    }

    fn add_ambiguous(&mut self, functions: &[&Signature], is_of_trait: bool) {
        let found = functions.iter().filter(|it| is_of_trait || it.receiver().is_none());
        self.ambiguous.extend(found.map(|function| function.ident.to_string()));
    }

    /// The type or trait in whose block a token stands.
    fn around(&self, token: &Ident) -> Option<String> {
        let at = token.span().byte_range().start;
        let mut inner_first = self.of.iter().rev();
        inner_first
            .find(|(bytes, _)| bytes.contains(&at))
            .map(|(_, on)| on.clone())
    }
}

impl<'ast> Visit<'ast> for Blocks {
    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let functions = block.items.iter().filter_map(|item| match item {
            ImplItem::Fn(function) => Some(&function.sig),
            _ => None,
        });
        let functions: Vec<&Signature> = functions.collect();
        if let Type::Path(on) = &*block.self_ty
            && let Some(on) = on.path.segments.last()
        {
            self.add(&on.ident, block.span(), &functions);
        }
        self.add_ambiguous(&functions, block.trait_.is_some());
        visit::visit_item_impl(self, block);
    }

    fn visit_item_trait(&mut self, block: &'ast ItemTrait) {
        let functions = block.items.iter().filter_map(|item| match item {
            TraitItem::Fn(function) => Some(&function.sig),
            _ => None,
        });
        let functions: Vec<&Signature> = functions.collect();
        self.add(&block.ident, block.span(), &functions);
        self.add_ambiguous(&functions, true);
        visit::visit_item_trait(self, block);
    }
}

/// As if calls in macros, or those by the name of the type, did not count, or fields did.
#[test]
fn methods_are_read_with_their_types() {
    let text = concat!(
        "impl<T: Ord> a::Run<'_, T> {\n    fn one(&self) {\n        self.two();\n        join!(self.three::<u8>());\n",
        "        Self::four(self.field, Other::five);\n        if self.is_it {}\n        x.six();\n    }\n}\n",
        "trait Seven {\n    fn eight(&self) {\n        self.nine();\n    }\n}\n",
        "#[cfg(test)]\nmod tests {\n    impl Run {\n        fn ten(&self) {\n            self.eleven();\n        }\n    }\n}\n",
    );
    let syntax = syn::parse_file(text).expect("Rust");
    let tokens = text.parse().expect("tokens");
    let found = Methods::read(&syntax, tokens, |line| line >= 14);
    let named = |methods: &BTreeSet<Method>| {
        let names = methods.iter().map(|(on, name)| format!("{on}::{name}"));
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(named(&found.defined), "Run::one Seven::eight");
    assert_eq!(
        named(&found.called),
        "Other::five Run::four Run::three Run::two Seven::nine"
    );
}

/// As if fields, ranges or methods of `self` were called of other values, and as if a name in a trait, or without a
/// `self`, were that of one type.
#[test]
fn methods_of_other_values_are_read_by_name() {
    let text = concat!(
        "impl Run {\n    fn one(&self) {\n        x.two(self.three().four::<u8>());\n        join!(x.y.five());\n",
        "        self.six();\n        if x.seven {}\n        f(X { ..eight() }, 0..nine());\n    }\n    fn ten() {}\n}\n",
        "trait T {\n    fn eleven(&self);\n}\nimpl T for &str {\n    fn twelve(&self) {}\n}\n",
        "#[cfg(test)]\nmod tests {\n    fn f() {\n        x.thirteen();\n    }\n}\n",
    );
    let syntax = syn::parse_file(text).expect("Rust");
    let tokens = text.parse().expect("tokens");
    let found = Methods::read(&syntax, tokens, |line| line >= 16);
    let listed = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(listed(found.called_by_name), "five four two");
    assert_eq!(listed(found.ambiguous), "eleven ten twelve");
}
