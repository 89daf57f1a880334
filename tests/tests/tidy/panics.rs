//! Where methods of traits panic instead of answering. Knows no rule.

use std::mem;

use proc_macro2::{Ident, TokenTree};
use syn::visit::{self, Visit};
use syn::{ItemImpl, ItemTrait, Macro};

use super::tokens::{each_sequence, is_punct, line};

/// The macros that panic without a condition.
const PANICS: [&str; 4] = ["panic", "todo", "unimplemented", "unreachable"];

/// The calls of these macros in traits and in their implementations, each with its line from zero.
pub(super) fn panics(syntax: &syn::File) -> Vec<(usize, String)> {
    let mut panics = Panics::default();
    panics.visit_file(syntax);
    panics.found
}

#[derive(Default)]
struct Panics {
    is_in_trait: bool,
    found: Vec<(usize, String)>,
}

impl Panics {
    fn add(&mut self, name: &Ident) {
        if self.is_in_trait && PANICS.iter().any(|panic| name == panic) {
            self.found.push((line(name.span()), name.to_string()));
        }
    }
}

impl<'ast> Visit<'ast> for Panics {
    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let around = mem::replace(&mut self.is_in_trait, block.trait_.is_some());
        visit::visit_item_impl(self, block);
        self.is_in_trait = around;
    }

    fn visit_item_trait(&mut self, block: &'ast ItemTrait) {
        let around = mem::replace(&mut self.is_in_trait, true);
        visit::visit_item_trait(self, block);
        self.is_in_trait = around;
    }

    /// What a macro gets is tokens, such as the arms of `select!`.
    fn visit_macro(&mut self, call: &'ast Macro) {
        if let Some(name) = call.path.segments.last() {
            self.add(&name.ident);
        }
        each_sequence(call.tokens.clone(), &mut |sequence| {
            for tokens in sequence.windows(3) {
                if let [TokenTree::Ident(name), mark, TokenTree::Group(_)] = tokens
                    && is_punct(mark, '!')
                {
                    self.add(name);
                }
            }
        });
    }
}

/// As if only what a method ends with counted, or the arguments of macros did not, or methods of a type's own did.
#[test]
fn panics_are_found_in_methods_of_traits_and_in_no_others() {
    let text = concat!(
        "impl T for A {\n    fn one(&self) {\n        unreachable!(\"nobody asks\")\n    }\n",
        "    fn two(&self) {\n        x.map(|_| std::todo!());\n        assert!(todo != 1);\n    }\n",
        "    fn three(&self) {\n        impl A { fn own() { panic!() } }\n        select! { () = y => unimplemented!() }\n",
        "    }\n}\n",
        "trait T {\n    fn four(&self) {\n        panic!(\"not here\");\n    }\n}\n",
        "impl A {\n    fn five(&self) {\n        unreachable!()\n    }\n}\n",
        "fn six() {\n    impl T for B { fn of_trait() { panic!() } }\n    panic!();\n}\n",
    );
    let found = panics(&syn::parse_file(text).expect("Rust"));
    let found: Vec<String> = found.iter().map(|(line, name)| format!("{line} {name}")).collect();
    assert_eq!(
        found,
        ["2 unreachable", "5 todo", "10 unimplemented", "15 panic", "24 panic"]
    );
}
