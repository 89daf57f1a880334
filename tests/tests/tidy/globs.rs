//! Imports of everything that something has, `use super::*`: of what, and where. Knows no rule.

use syn::spanned::Spanned as _;
use syn::visit::Visit;
use syn::{ItemUse, UseTree};

use super::tokens::line;

/// The paths in front of each `*`, without a `self`, each with the line of its import.
pub(super) fn globs(syntax: &syn::File) -> Vec<(usize, Vec<String>)> {
    let mut globs = Globs::default();
    globs.visit_file(syntax);
    globs.found
}

#[derive(Default)]
struct Globs {
    found: Vec<(usize, Vec<String>)>,
}

impl<'ast> Visit<'ast> for Globs {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let line = line(item.span());
        let mut paths = Vec::new();
        before_stars(&item.tree, &[], &mut paths);
        self.found.extend(paths.into_iter().map(|path| (line, path)));
    }
}

fn before_stars(tree: &UseTree, above: &[String], found: &mut Vec<Vec<String>>) {
    match tree {
        UseTree::Path(path) if path.ident == "self" => before_stars(&path.tree, above, found),
        UseTree::Path(path) => before_stars(&path.tree, &[above, &[path.ident.to_string()]].concat(), found),
        UseTree::Group(group) => group.items.iter().for_each(|item| before_stars(item, above, found)),
        UseTree::Glob(_) => found.push(above.to_vec()),
        _ => {}
    }
}
