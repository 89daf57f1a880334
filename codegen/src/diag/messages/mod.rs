//! Every message about the declaration, as a function named for the error. Stages find what is wrong and where; only
//! this module words it.

mod columns;
mod lint;
mod migrations;
mod names;
mod references;
mod retention;
mod services;
mod shapes;
mod sql_only;
mod versions;
mod waits;
mod written;

pub(crate) use columns::*;
pub(crate) use lint::*;
pub(crate) use migrations::*;
pub(crate) use names::*;
pub(crate) use references::*;
pub(crate) use retention::*;
pub(crate) use services::*;
pub(crate) use shapes::*;
pub(crate) use sql_only::*;
pub(crate) use versions::*;
pub(crate) use waits::*;
pub(crate) use written::*;

use super::suggest::nearest;

/// Most names that a help line lists.
const LISTED_MAX: usize = 12;

/// "did you mean" if one candidate is near, else what there is.
fn suggestion<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>, what_there_is: &str) -> Option<String> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(nearest) = nearest(wrong, candidates.iter().copied()) {
        return Some(format!("did you mean \"{nearest}\"?"));
    }
    if candidates.is_empty() {
        return None;
    }
    Some(format!("{what_there_is}: {}", list(&candidates)))
}

fn list(names: &[&str]) -> String {
    let mut text = names[..names.len().min(LISTED_MAX)].join(", ");
    if names.len() > LISTED_MAX {
        text.push_str(", …");
    }
    text
}
