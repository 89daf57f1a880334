//! What a row gets, or why it stays as it is. Pure: the content is made as the ingester makes it, from the object's
//! text in the kind's own version.

use std::sync::Arc;

use kindex_convert::{Problem, with_api_version};
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Object;
use kindex_model::projection::Version;
use kindex_store::{OtherVersionRow, RowConversion};
use serde::Serialize;

/// A row that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The kind.
    pub kind: &'static str,
    /// The object's namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// `group/version` of the row.
    pub group_ver: String,
    /// The field that is to blame, by its path in the version that is made; empty where it is the whole object.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl Refusal {
    pub(super) fn of(kind: &Kind, row: &OtherVersionRow, RowProblem { path, reason }: RowProblem) -> Self {
        Self {
            kind: kind.name,
            namespace: row.namespace.clone(),
            name: row.name.clone(),
            uid: row.uid.to_string(),
            group_ver: row.group_ver.clone(),
            path,
            reason,
        }
    }
}

/// What is wrong with a row, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowProblem {
    path: String,
    reason: String,
}

impl RowProblem {
    /// The row as a whole.
    pub(super) fn row(reason: impl ToString) -> Self {
        Self::at("", reason)
    }

    fn at(path: impl Into<String>, reason: impl ToString) -> Self {
        Self {
            path: path.into(),
            reason: reason.to_string(),
        }
    }
}

impl From<Problem> for RowProblem {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::UnknownVersion(_) => Self::at("apiVersion", problem),
            Problem::NotAnObject(path) => Self::at(path, "not an object"),
            Problem::Function { path, message } => Self::at(path, message),
            Problem::Json(_) | Problem::Object(_) => Self::row(problem),
        }
    }
}

/// Rows by what becomes of them.
#[derive(Debug, Default)]
pub(super) struct Planned {
    pub(super) conversions: Vec<RowConversion>,
    pub(super) refusals: Vec<Refusal>,
}

/// Decides on all rows of a page.
pub(super) fn plan(platform: &Platform, kind: &Kind, rows: Vec<OtherVersionRow>) -> Planned {
    let mut planned = Planned::default();
    for row in rows {
        match in_own_version(platform, kind, &row) {
            Ok(version) => planned.conversions.push(RowConversion::new(row, version)),
            Err(problem) => planned.refusals.push(Refusal::of(kind, &row, problem)),
        }
    }
    planned
}

/// The content that the ingester would write for the object in the kind's own version.
fn in_own_version(platform: &Platform, kind: &Kind, row: &OtherVersionRow) -> Result<Arc<Version>, RowProblem> {
    let convert = |text: &str| kindex_convert::convert(platform, kind, text, kind.version).map_err(|it| it.problem);
    let text = match convert(&row.text) {
        // The items of a list do not repeat it; the column has it.
        Err(Problem::UnknownVersion(version)) if version.is_empty() => {
            convert(&with_api_version(&row.text, &row.group_ver))?
        }
        converted => converted?,
    };
    let object = Object::parse_str(&text).map_err(RowProblem::row)?;
    let found = &object.metadata;
    let is_of_row = found.uid == row.uid && found.namespace == row.namespace && found.name == row.name;
    if !is_of_row {
        let (namespace, name, uid) = (&found.namespace, &found.name, &found.uid);
        let other = format!("the text is that of another object: {namespace}/{name} with uid {uid}");
        return Err(RowProblem::at("metadata", other));
    }
    Ok(Version::project(kind, object))
}

#[cfg(test)]
mod tests;
