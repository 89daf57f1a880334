//! The files that a Rust file makes part of its crate: by `mod`, with a path or without, and by `include!`. Knows
//! neither where they lie nor a rule.

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, ItemMod, Lit, LitStr, Macro, Meta};

/// A file, as another one names it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Declaration {
    /// By the names of modules. All but the last one have bodies in the file that declares it.
    Module(Vec<String>),
    /// By a path, within modules that have bodies in the file that names it.
    Path(Vec<String>, String),
}

/// Those of a file, in order, those for tests too.
pub(super) fn declarations(syntax: &syn::File) -> Vec<Declaration> {
    let mut declarations = Declarations::default();
    declarations.visit_file(syntax);
    declarations.found
}

#[derive(Default)]
struct Declarations {
    /// The modules around what is visited.
    within: Vec<String>,
    found: Vec<Declaration>,
}

impl<'ast> Visit<'ast> for Declarations {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.within.push(module.ident.to_string());
        if module.content.is_some() {
            visit::visit_item_mod(self, module);
        } else {
            let named = self.within.clone();
            let around = &named[..named.len() - 1];
            let path = module.attrs.iter().find_map(path_of);
            self.found.push(match path {
                Some(path) => Declaration::Path(around.to_vec(), path),
                None => Declaration::Module(named),
            });
        }
        self.within.pop();
    }

    /// A list that a build script writes is named by more than one text, and is no file of the checkout.
    fn visit_macro(&mut self, call: &'ast Macro) {
        if call.path.is_ident("include")
            && let Ok(path) = call.parse_body::<LitStr>()
        {
            self.found.push(Declaration::Path(Vec::new(), path.value()));
        }
    }
}

/// The path of `#[path = "…"]`.
fn path_of(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    match &pair.value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(path), ..
        }) if pair.path.is_ident("path") => Some(path.value()),
        _ => None,
    }
}

#[test]
fn a_file_is_named_by_modules_or_by_a_path() {
    let text = "mod a;\n#[cfg(test)]\nmod tests;\nmod b {\n    mod c;\n    mod d {\n        #[path = \"x/y.rs\"]\n        \
                pub mod e;\n    }\n}\n#[rustfmt::skip]\n#[path = \"../z.rs\"]\npub(crate) mod f;\n\
                mod g {\n    include!(concat!(env!(\"OUT_DIR\"), \"/list.rs\"));\n    include!(\"g.rs\");\n}\n\
                // mod h;\nconst TEXT: &str = \"mod i;\";\n";
    let names = |names: &[&str]| names.iter().copied().map(str::to_owned).collect::<Vec<_>>();
    let module = |path: &[&str]| Declaration::Module(names(path));
    let path = |within: &[&str], path: &str| Declaration::Path(names(within), path.to_owned());
    assert_eq!(
        declarations(&syn::parse_file(text).expect("Rust")),
        [
            module(&["a"]),
            module(&["tests"]),
            module(&["b", "c"]),
            path(&["b", "d"], "x/y.rs"),
            path(&[], "../z.rs"),
            path(&[], "g.rs"),
        ]
    );
}
