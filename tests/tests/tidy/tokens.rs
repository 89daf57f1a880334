//! Tokens of a Rust file, group by group.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

/// Counted from zero, as iterators do.
pub(super) fn line(span: Span) -> usize {
    span.start().line - 1
}

/// The tokens of the file and of every group in it, group by group.
pub(super) fn each_sequence(tokens: TokenStream, see: &mut impl FnMut(&[TokenTree])) {
    let sequence: Vec<TokenTree> = tokens.into_iter().collect();
    see(&sequence);
    for token in sequence {
        if let TokenTree::Group(group) = token {
            each_sequence(group.stream(), see);
        }
    }
}

/// The group in braces that a token is.
pub(super) fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

pub(super) fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}
