//! `ListOptionsExt`: conditions, order and pages in the terms of columns, read from messages whose enums are numbers
//! and whose values are of any type.

use jiff::Timestamp;
use kindex_model::value::Value;
use kindex_query::{Criterion, CriterionOperation, CriterionOperator, LogicalOperator};
use prost::{DecodeError, Message};
use prost_types::{Any, value};
use serde_json::Value as Json;

use super::message::{self, ListOptionsExt};
use super::status::{Violation, invalid};
use crate::operations::{Refusal, Search};

/// Fields that may be left out: each is looked for in each object.
const SKIPPED_MAX: usize = 1000;

/// What a list asks for beyond Kubernetes' options.
pub(super) struct Ext {
    pub(super) search: Search,
    /// Paths in JSON of what is left out of each object.
    pub(super) skip: Vec<Vec<String>>,
}

/// Reads the options.
///
/// # Errors
/// `INVALID_ARGUMENT` for numbers that no enum has, and for values of types that no column has.
pub(super) fn read(ext: &ListOptionsExt) -> Result<Ext, Refusal> {
    let refused = |violation| invalid(&[violation]);
    let order = ext.order_by.iter().map(|order| {
        let direction = match order.dir {
            0 | 1 => "asc",
            2 => "desc",
            other => return Err(unknown_number("orderBy.dir", "SortOrder", other)),
        };
        Ok(format!("{}:{direction}", column(&order.field)))
    });
    let pagination = ext.pagination.clone().unwrap_or_default();
    let count =
        |field: &str, number: i32| u32::try_from(number).map_err(|_| refused(Violation::new(field, "is less than 0")));
    let paths = ext.returned_field_skip_list.iter();
    if paths.len() > SKIPPED_MAX {
        let message = format!("has more than {SKIPPED_MAX} paths: leave out the fields above them");
        return Err(refused(Violation::new("returnedFieldSkipList", message)));
    }
    Ok(Ext {
        search: Search {
            order: order.collect::<Result<_, _>>().map_err(refused)?,
            condition: ext
                .operation
                .as_ref()
                .map_or(Ok(CriterionOperation::default()), group)
                .map_err(refused)?,
            offset: count("pagination.offset", pagination.offset)?,
            limit: count("pagination.limit", pagination.limit)?,
        },
        skip: paths.map(|path| path.split('.').map(json_name).collect()).collect(),
    })
}

fn group(operation: &message::CriterionOperation) -> Result<CriterionOperation, Violation> {
    Ok(CriterionOperation {
        criterion: operation.criterion.iter().map(criterion).collect::<Result<_, _>>()?,
        logical_operator: match operation.logical_operator {
            0 => LogicalOperator::And,
            1 => LogicalOperator::Or,
            other => return Err(unknown_number("operation.logicalOperator", "LogicalOperator", other)),
        },
        sub_operations: operation.sub_operations.iter().map(group).collect::<Result<_, _>>()?,
    })
}

fn criterion(criterion: &message::Criterion) -> Result<Criterion, Violation> {
    let operator = match criterion.operator {
        0 => return Err(Violation::new("operation.criterion.operator", "is missing")),
        1 => CriterionOperator::Equal,
        2 => CriterionOperator::NotEqual,
        3 => CriterionOperator::GreaterThan,
        4 => CriterionOperator::GreaterThanOrEqualTo,
        5 => CriterionOperator::LessThan,
        6 => CriterionOperator::LessThanOrEqualTo,
        7 => CriterionOperator::In,
        8 => CriterionOperator::NotIn,
        9 => CriterionOperator::Like,
        10 => CriterionOperator::IsNull,
        11 => CriterionOperator::IsNotNull,
        other => {
            return Err(unknown_number(
                "operation.criterion.operator",
                "CriterionOperator",
                other,
            ));
        }
    };
    let values = match (&criterion.match_value, operator) {
        (None, _) | (_, CriterionOperator::IsNull | CriterionOperator::IsNotNull) => Vec::new(),
        (Some(any), _) => values(any).map_err(|why| {
            let message = format!("of {}: {why}", criterion.field_name);
            Violation::new("operation.criterion.matchValue", message)
        })?,
    };
    Ok(Criterion {
        field_name: column(&criterion.field_name),
        operator,
        match_values: values,
    })
}

fn unknown_number(field: &str, of: &str, number: i32) -> Violation {
    Violation::new(
        field,
        format!("michelangelo.api.{of} has no value with the number {number}"),
    )
}

/// The value in one of protobuf's well-known types; a list has some.
fn values(any: &Any) -> Result<Vec<Value>, String> {
    let bytes = any.value.as_slice();
    let unreadable = |error: DecodeError| error.to_string();
    let integer = |number: Result<i64, DecodeError>| number.map(Value::Int).map_err(unreadable);
    let name = any.type_url.rsplit('/').next().unwrap_or_default();
    let one = match name {
        "google.protobuf.StringValue" => Value::Text(String::decode(bytes).map_err(unreadable)?),
        "google.protobuf.BoolValue" => Value::Bool(bool::decode(bytes).map_err(unreadable)?),
        "google.protobuf.Int32Value" => integer(i32::decode(bytes).map(i64::from))?,
        "google.protobuf.UInt32Value" => integer(u32::decode(bytes).map(i64::from))?,
        "google.protobuf.Int64Value" => integer(i64::decode(bytes))?,
        "google.protobuf.UInt64Value" => Value::UInt(u64::decode(bytes).map_err(unreadable)?),
        "google.protobuf.FloatValue" => Value::Double(f32::decode(bytes).map_err(unreadable)?.into()),
        "google.protobuf.DoubleValue" => Value::Double(f64::decode(bytes).map_err(unreadable)?),
        "google.protobuf.Timestamp" => {
            let time = prost_types::Timestamp::decode(bytes).map_err(unreadable)?;
            Value::Time(Timestamp::new(time.seconds, time.nanos).map_err(|error| error.to_string())?)
        }
        "google.protobuf.Value" => return elements(prost_types::Value::decode(bytes).map_err(unreadable)?, true),
        "google.protobuf.ListValue" => {
            let list = prost_types::ListValue::decode(bytes).map_err(unreadable)?;
            return list_elements(list);
        }
        other => {
            return Err(format!(
                "{other:?} is not one of google.protobuf.StringValue, BoolValue, Int32Value, Int64Value, UInt32Value, \
                 UInt64Value, FloatValue, DoubleValue, Timestamp, Value and ListValue"
            ));
        }
    };
    Ok(vec![one])
}

fn list_elements(list: prost_types::ListValue) -> Result<Vec<Value>, String> {
    let each = list.values.into_iter().map(|element| elements(element, false));
    Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
}

fn elements(value: prost_types::Value, lists_too: bool) -> Result<Vec<Value>, String> {
    match value.kind {
        Some(value::Kind::StringValue(text)) => Ok(vec![Value::Text(text)]),
        Some(value::Kind::BoolValue(flag)) => Ok(vec![Value::Bool(flag)]),
        // JSON has no other numbers; a whole one is compared as such.
        Some(value::Kind::NumberValue(number)) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Ok(vec![Value::Int(number as i64)])
        }
        Some(value::Kind::NumberValue(number)) => Ok(vec![Value::Double(number)]),
        Some(value::Kind::ListValue(list)) if lists_too => list_elements(list),
        Some(value::Kind::ListValue(_)) => Err("a list within a list is not a value".to_owned()),
        Some(value::Kind::StructValue(_)) => Err("a struct is not a value".to_owned()),
        Some(value::Kind::NullValue(_)) | None => Err("null is not a value: use IS_NULL".to_owned()),
    }
}

/// What a field is called in queries: by the path that messages have, by that of manifests, or by its column.
fn column(field: &str) -> String {
    match field {
        "metadata.update_timestamp" | "metadata.updateTimestamp" => "update_time".to_owned(),
        field if field.contains('.') => field.split('.').map(json_name).collect::<Vec<_>>().join("."),
        field => field.to_owned(),
    }
}

/// `end_time` is `endTime` in JSON.
fn json_name(field: &str) -> String {
    let mut words = field.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

impl Ext {
    /// An object without the fields that nobody wants.
    pub(super) fn without_skipped(&self, mut object: Json) -> Json {
        for path in &self.skip {
            remove(&mut object, path);
        }
        object
    }
}

/// Removes what a path leads to, in each element of the lists on its way.
fn remove(value: &mut Json, path: &[String]) {
    match (value, path) {
        (Json::Array(items), path) => items.iter_mut().for_each(|item| remove(item, path)),
        (Json::Object(fields), [last]) => drop(fields.remove(last)),
        (Json::Object(fields), [first, rest @ ..]) => {
            if let Some(inner) = fields.get_mut(first) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_found_by_the_paths_of_messages() {
        assert_eq!(column("metadata.creation_timestamp"), "metadata.creationTimestamp");
        assert_eq!(column("metadata.update_timestamp"), "update_time");
        assert_eq!(column("status.end_time"), "status.endTime");
        assert_eq!(column("end_time"), "end_time");
    }

    #[test]
    fn an_unsigned_number_is_read_as_it_is() {
        let any = Any {
            type_url: "type.googleapis.com/google.protobuf.UInt64Value".to_owned(),
            value: u64::MAX.encode_to_vec(),
        };
        assert_eq!(values(&any), Ok(vec![Value::UInt(u64::MAX)]));
    }

    #[test]
    fn so_many_fields_are_left_out_and_no_more() {
        let ext = |paths| ListOptionsExt {
            returned_field_skip_list: vec!["spec.a".to_owned(); paths],
            ..ListOptionsExt::default()
        };
        assert_eq!(read(&ext(SKIPPED_MAX)).expect("few enough").skip.len(), SKIPPED_MAX);
        assert_eq!(read(&ext(SKIPPED_MAX + 1)).err().map(|refusal| refusal.code), Some(400));
    }

    #[test]
    fn skipped_fields_are_gone_in_lists_too() {
        let ext = Ext {
            search: Search::default(),
            skip: vec![
                vec!["a".to_owned(), "b".to_owned()],
                vec!["none".to_owned(), "b".to_owned()],
            ],
        };
        let shown = ext.without_skipped(json!({"a": [{"b": 1, "c": 2}, 3], "d": 4}));
        assert_eq!(shown, json!({"a": [{"c": 2}, 3], "d": 4}));
    }
}
