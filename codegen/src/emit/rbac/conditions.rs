//! Which kinds have conditions in their status. `kindex deletion` writes its own there, and finds them by the
//! definition of the kind in the cluster; the same is said here by its messages.

use crate::model::{Cardinality, Field, FieldType, Kind, Model, Scalar};

/// The lists that may have conditions.
const LISTS: [&str; 2] = ["conditions", "statusConditions"];

/// Whether a list of the status has what conditions have, in texts.
pub(super) fn has_some(model: &Model, kind: &Kind) -> bool {
    let Some(status) = kind.status.message() else {
        return false;
    };
    let status = model.message(status);
    let mut lists = LISTS.into_iter().filter_map(|name| status.field_by_json_name(name));
    lists.any(|list| list.cardinality == Cardinality::Repeated && are_conditions(model, list))
}

fn are_conditions(model: &Model, list: &Field) -> bool {
    let FieldType::Message(item) = &list.ty else {
        return false;
    };
    let item = model.message(item);
    let is_text = |name: &str| {
        item.field_by_json_name(name)
            .is_some_and(|field| field.ty == FieldType::Scalar(Scalar::String))
    };
    let status = item.field_by_json_name("status");
    let is_spelled =
        status.is_some_and(|field| matches!(field.ty, FieldType::Scalar(Scalar::String) | FieldType::Enum(_)));
    is_spelled && ["type", "reason", "message"].into_iter().all(is_text)
}
