//! Reading an object's text as a typed message and telling three cases apart: it fits, it fits with
//! problems, it does not fit.

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::report::{collect, collect_strictly};
use super::tracked::Tracked;
use crate::kind::Problem;

/// What became of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<T> {
    /// The message; `None` where the text does not fit it.
    pub value: Option<T>,
    /// Everything that could not be read exactly. Not empty where `value` is `None`: the last
    /// problem then says why.
    pub problems: Vec<Problem>,
}

/// Reads `text` as a `T`.
///
/// # Guarantees
/// - An unknown enum name, a oneof with two members or with content that does not fit, and an
///   `Any` whose content cannot be encoded do not stop the rest: they read as absent and are
///   [`problems`](Decoded::problems).
/// - Unknown fields are passed over without a word: the text keeps them.
/// - Every problem carries the path of the innermost value that it is about.
///
/// The text is read once, straight into `T`. Only where that failed or reported something is it
/// read a second time through a parsed document, which knows paths.
pub fn decode<T: DeserializeOwned>(text: &str) -> Decoded<T> {
    let (first, reports) = collect(|| serde_json::from_str::<T>(text));
    match first {
        Ok(value) if reports.problems.is_empty() => Decoded {
            value: Some(value),
            problems: Vec::new(),
        },
        first => locate(text, first),
    }
}

fn locate<T: DeserializeOwned>(text: &str, first: Result<T, serde_json::Error>) -> Decoded<T> {
    let document = match serde_json::from_str::<Json>(text) {
        Ok(document) => document,
        Err(error) => return misfit(Vec::new(), String::new(), &error),
    };
    let (second, reports) = collect(|| T::deserialize(Tracked(&document)));
    let problems = reports.problems;
    match (first, second) {
        (Ok(value), Ok(_)) => Decoded {
            value: Some(value),
            problems,
        },
        (_, Err(error)) => misfit(problems, reports.failed_at.unwrap_or_default(), &error),
        // Only the text shows a member that occurs twice.
        (Err(error), Ok(_)) => misfit(problems, String::new(), &error),
    }
}

fn misfit<T>(mut problems: Vec<Problem>, path: String, error: &serde_json::Error) -> Decoded<T> {
    problems.push(Problem {
        path,
        message: error.to_string(),
    });
    Decoded { value: None, problems }
}

/// What in a text of ours has no name in JSON, each with its path. Reads the text as a `T` once more, which costs as
/// much as reading it.
pub(super) fn nameless<T: DeserializeOwned>(text: &str) -> Vec<Problem> {
    let Ok(document) = serde_json::from_str::<Json>(text) else {
        return Vec::new();
    };
    collect_strictly(|| T::deserialize(Tracked(&document))).1.problems
}
