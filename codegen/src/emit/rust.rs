//! How an emitted Rust file looks as text: header, module documentation, items with a blank line between them. What
//! the items are is the emitters' business.

use proc_macro2::TokenStream;

use crate::artifact::HEADER;

/// Longest line, as prettyplease has it.
const WIDTH: usize = 89;

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

/// `&["spec", "tier"]`
pub(super) fn texts<'a>(before: &str, texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.map(|text| format!("{text:?}")).collect();
    laid_out(before, "&[", &texts, "]")
}

/// A list on one line if it fits after `before`, else with a line for each item.
pub(super) fn laid_out(before: &str, open: &str, items: &[String], close: &str) -> String {
    let line = format!("{open}{}{close}", items.join(", "));
    if before.len() + line.len() + ",".len() <= WIDTH {
        return line;
    }
    let indent = " ".repeat(before.len() - before.trim_start().len());
    let items: String = items.iter().map(|item| format!("{indent}    {item},\n")).collect();
    format!("{open}\n{items}{indent}{close}")
}
