//! Reads what was sent as an object of a resource: the right kind, metadata of the right types, no field that the
//! schema does not know. What to do about unknown fields is the client's choice.

use kindex_kube_api::request::FieldValidation;
use kindex_kube_api::status::{FieldProblem, Status};
use kindex_kube_api::{meta, schema};
use serde_json::{Map, Value};

use crate::resource::{Resource, ResourceType};

/// An object as it was sent, with what strict validation refuses of it.
#[derive(Debug)]
pub(crate) struct DecodedObject {
    pub(crate) object: Value,
    /// `unknown field "spec.x"`, `duplicate field "spec.y"`.
    pub(crate) strict_errors: Vec<String>,
}

/// Reads `value` as an object of `resource`. Unknown fields are gone afterwards.
///
/// # Errors
/// 400 when it is of another version, has metadata of wrong types, or has no place in the resource at all.
pub(crate) fn accept(resource: &Resource, mut value: Value, duplicates: Vec<String>) -> Result<DecodedObject, Status> {
    let Value::Object(fields) = &mut value else {
        return Err(Status::not_an_object(&resource.names.kind));
    };
    check_type(resource, fields)?;
    let mut strict_errors: Vec<String> = duplicates
        .iter()
        .map(|path| format!("duplicate field \"{path}\""))
        .collect();
    let unknown = schema::coerce_metadata(&mut value).map_err(|problem| unreadable(resource, &problem.to_string()))?;
    meta::map_mut(&mut value);
    strict_errors.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    if resource.resource_type == ResourceType::Plain {
        super::kinds::unfold_secret(resource, &mut value);
    }
    if let Some(structural) = &resource.schema {
        let unknown = schema::prune(structural, &mut value);
        strict_errors.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    }
    Ok(DecodedObject {
        object: value,
        strict_errors,
    })
}

impl DecodedObject {
    /// Applies the client's choice: the object and the warnings to send along.
    ///
    /// # Errors
    /// 400 when the client is strict and there is any error.
    pub(crate) fn checked(
        self,
        resource: &Resource,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), Status> {
        match validation {
            FieldValidation::Ignore => Ok((self.object, Vec::new())),
            FieldValidation::Warn => Ok((self.object, self.strict_errors)),
            FieldValidation::Strict if self.strict_errors.is_empty() => Ok((self.object, self.strict_errors)),
            FieldValidation::Strict => Err(unreadable(
                resource,
                &format!("strict decoding error: {}", self.strict_errors.join(", ")),
            )),
        }
    }
}

/// 400: what was sent is no object of the resource.
pub(super) fn unreadable(resource: &Resource, problem: &str) -> Status {
    Status::not_of_kind(&resource.names.kind, &resource.version, problem)
}

fn check_type(resource: &Resource, fields: &mut Map<String, Value>) -> Result<(), Status> {
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    // Built-in kinds are known by their path; a custom resource must say what it is.
    if resource.resource_type == ResourceType::Custom {
        for (found, field) in [(&kind, "Kind"), (&api_version, "apiVersion")] {
            if found.is_empty() {
                let shown = Value::Object(fields.clone());
                return Err(Status::bad_request(format!(
                    "the object provided is unrecognized (must be of type {}): Object '{field}' is missing in '{shown}'",
                    resource.names.kind
                )));
            }
        }
    }
    let expected = resource.api_version.as_str();
    if !api_version.is_empty() && api_version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if !kind.is_empty() && kind != resource.names.kind {
        if resource.resource_type == ResourceType::Custom {
            let rule = format!("must be {}", resource.names.kind);
            let name = fields.get("metadata").and_then(|metadata| metadata["name"].as_str());
            let problem = FieldProblem::invalid("kind", &kind, &rule);
            return Err(Status::invalid(
                &resource.group,
                &kind,
                name.unwrap_or_default(),
                &[problem],
            ));
        }
        return Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: the kind in the data does not match",
            resource.version, resource.names.kind
        )));
    }
    fields.insert("kind".to_owned(), resource.names.kind.clone().into());
    fields.insert("apiVersion".to_owned(), expected.into());
    Ok(())
}
