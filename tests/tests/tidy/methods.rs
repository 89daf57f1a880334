//! The methods that a Rust file defines, and those that it calls where the text says of which type they are.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{ImplItem, ItemImpl, ItemTrait, TraitItem, Type};

use super::tokens::{each_sequence, is_punct, line};

/// A type or a trait, without its path, and a method of it.
pub(super) type Method = (String, String);

/// The methods of one file, without those of tests.
#[derive(Debug, Default)]
pub(super) struct Methods {
    /// In `impl` blocks and traits.
    pub(super) defined: BTreeSet<Method>,
    /// As `self.method(…)`, `Self::method` and `Type::method`, in macros too. Not as a method of another value, whose
    /// type only the compiler knows.
    pub(super) called: BTreeSet<Method>,
}

impl Methods {
    /// Those of a file, of which these are the tokens.
    pub(super) fn read(syntax: &syn::File, tokens: TokenStream, is_test: impl Fn(usize) -> bool) -> Self {
        let mut blocks = Blocks::default();
        blocks.visit_file(syntax);
        let mut called = BTreeSet::new();
        each_sequence(tokens, &mut |sequence| {
            for (receiver, name) in calls_in(sequence).filter(|(_, name)| !is_test(line(name.span()))) {
                let on = match receiver.to_string() {
                    own if own == "self" || own == "Self" => blocks.around(receiver),
                    other => Some(other),
                };
                called.extend(on.map(|on| (on, name.to_string())));
            }
        });
        let defined = blocks.methods.into_iter().filter(|(line, _)| !is_test(*line));
        Self {
            defined: defined.map(|(_, method)| method).collect(),
            called,
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
}

impl Blocks {
    fn add<'f>(&mut self, on: &Ident, block: Span, functions: impl Iterator<Item = &'f Ident>) {
        let on = on.to_string();
        let methods = functions.map(|name| (line(name.span()), (on.clone(), name.to_string())));
        self.methods.extend(methods);
        self.of.push((block.byte_range(), on));
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
        if let Type::Path(on) = &*block.self_ty
            && let Some(on) = on.path.segments.last()
        {
            let functions = block.items.iter().filter_map(|item| match item {
                ImplItem::Fn(function) => Some(&function.sig.ident),
                _ => None,
            });
            self.add(&on.ident, block.span(), functions);
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_item_trait(&mut self, block: &'ast ItemTrait) {
        let functions = block.items.iter().filter_map(|item| match item {
            TraitItem::Fn(function) => Some(&function.sig.ident),
            _ => None,
        });
        self.add(&block.ident, block.span(), functions);
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
