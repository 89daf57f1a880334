//! How an emitted Rust file looks as text: header, module documentation, items with a blank line between them. What
//! the items are is the emitters' business.

use proc_macro2::TokenStream;

use crate::artifact::HEADER;

/// A file. Each of `items` is printed on its own and may hold several items that belong together, such as imports.
pub(super) fn file(doc: &str, items: impl IntoIterator<Item = TokenStream>) -> String {
    let mut text = format!("// {HEADER}\n\n");
    for line in doc.lines() {
        text.push_str(&format!("//! {line}"));
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for item in items.into_iter().filter(|item| !item.is_empty()) {
        text.push('\n');
        text.push_str(&self::items(item));
    }
    text
}

/// Items as text.
///
/// # Panics
/// If the tokens are not Rust items: an error in an emitter.
pub(super) fn items(items: TokenStream) -> String {
    let file = syn::parse2(items).expect("emitters write Rust items");
    prettyplease::unparse(&file)
}
