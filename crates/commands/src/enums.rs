//! Columns of enums hold full names, `PIPELINE_RUN_STATE_FAILED`: says so to a person who asks for
//! `FAILED`. The names are those of the kind's manifest; a producer may be newer, so that another
//! name is no error. Pure.

use kindex_model::kind::Kind;
use kindex_query::Select;
use serde_json::Value;

/// A note for each text that no known name is equal to.
pub(crate) fn notes(select: &Select) -> Vec<String> {
    let kind = select.kind();
    let equal = select.equal_texts();
    let equal = equal
        .iter()
        .filter(|(column, _)| kind.columns.iter().any(|known| known.name == *column));
    equal.filter_map(|(column, text)| note(kind, column, text)).collect()
}

fn note(kind: &Kind, column: &str, text: &str) -> Option<String> {
    let names = names(kind, column)?;
    if names.iter().any(|name| name == text) {
        return None;
    }
    let end = format!("_{}", text.to_ascii_uppercase());
    let meant = names.iter().find(|name| name.ends_with(&end));
    let hint = meant.map_or_else(
        || format!("one of {}", names.join(", ")),
        |name| format!("{column}={name}"),
    );
    Some(format!(
        "note: {column} of {} holds full names, and {text:?} is not one of them\n  hint: {hint}",
        kind.name
    ))
}

/// The names that the manifest allows in a column; `None` where it is not that of an enum.
fn names(kind: &Kind, column: &str) -> Option<Vec<String>> {
    let column = kind.columns.iter().find(|known| known.name == column)?;
    let manifest: Value = serde_saphyr::from_str(kind.manifest).ok()?;
    let mut schema = manifest.pointer("/spec/versions/0/schema/openAPIV3Schema")?;
    for part in column.path {
        schema = schema.get("properties")?.get(part)?;
    }
    let names = schema.get("enum")?.as_array()?.iter();
    Some(names.filter_map(Value::as_str).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(condition: &str) -> Vec<String> {
        let mut select = Select::all(&kindex_generated::kinds::pipeline_run::KIND);
        select.filter_by(condition).expect("a condition");
        notes(&select)
    }

    #[test]
    fn the_end_of_a_name_is_no_name() {
        let note = "note: state of PipelineRun holds full names, and \"failed\" is not one of them\n  \
                    hint: state=PIPELINE_RUN_STATE_FAILED";
        assert_eq!(noted("state=failed"), [note]);
        assert!(
            noted("state in (PIPELINE_RUN_STATE_FAILED, x)")[0].contains("hint: one of PIPELINE_RUN_STATE_INVALID, ")
        );
    }

    #[test]
    fn names_and_other_columns_are_passed_over() {
        assert_eq!(noted("state=PIPELINE_RUN_STATE_FAILED"), [""; 0]);
        assert_eq!(noted("actor=failed"), [""; 0]);
        assert_eq!(noted("name=failed"), [""; 0]);
    }
}
