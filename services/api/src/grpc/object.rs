//! Objects between their two forms: the message that clients speak, and the JSON that cluster and SQL hold.

use bytes::Bytes;
use kindex_model::kind::{Kind, Scope};
use serde::Deserialize;
use serde_json::{Value, json};

use super::message::Parts;
use super::status::{Violation, invalid};
use crate::operations::{ObjectKey, Reason, Refusal};

/// The object of a request, in JSON and of the right kind.
///
/// # Errors
/// `INVALID_ARGUMENT` for anything that is no object of the kind, before anything is written.
pub(super) fn read(kind: &Kind, parts: &Parts) -> Result<Value, Refusal> {
    let missing = || invalid(&[Violation::new("", format!("the request has no {}", kind.name))]);
    let text = match parts.as_slice() {
        [] => return Err(missing()),
        [whole] => (kind.decode)(whole),
        parts => (kind.decode)(&parts.concat()),
    };
    let text = text.map_err(|problems| {
        let violations = problems.into_iter().map(|problem| match problem.path.as_str() {
            "" => Violation::new("", format!("no {}: {}", kind.name, problem.message)),
            _ => Violation::new(problem.path, problem.message),
        });
        invalid(&violations.collect::<Vec<_>>())
    })?;
    let mut object: Value = serde_json::from_str(&text)
        .map_err(|error| invalid(&[Violation::new("", format!("no {}: {error}", kind.name))]))?;
    for (field, own) in [("apiVersion", kind.api_version()), ("kind", kind.name.to_owned())] {
        match object[field].as_str() {
            None => object[field] = own.into(),
            Some(given) if given == own => {}
            Some(given) => {
                let message = format!("is {given:?}, and the service is that of {own:?}");
                return Err(invalid(&[Violation::new(field, message)]));
            }
        }
    }
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    Ok(object)
}

/// The name in an object's metadata.
pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The namespace in an object's metadata.
pub(super) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// The namespace and the name in the text of an object, whether or not the rest of it can be read.
pub(super) fn place(text: &str) -> (String, String) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Named {
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        namespace: String,
        name: String,
    }
    let Metadata { namespace, name } = serde_json::from_str::<Named>(text).unwrap_or_default().metadata;
    (namespace, name)
}

/// A place that is fit for a path.
///
/// # Errors
/// `INVALID_ARGUMENT` for a name or a namespace that is missing, that should be missing, or that no object has.
pub(super) fn key<'a>(kind: &'static Kind, namespace: &'a str, name: &'a str) -> Result<ObjectKey<'a>, Refusal> {
    check_namespace(kind, namespace)?;
    if name.is_empty() {
        return Err(invalid(&[Violation::new("metadata.name", "is missing")]));
    }
    check_segment("metadata.name", name)?;
    Ok(ObjectKey {
        resource: kind.into(),
        namespace,
        name,
    })
}

/// Refuses a namespace that is missing, or should be.
pub(super) fn check_namespace(kind: &Kind, namespace: &str) -> Result<(), Refusal> {
    let field = "metadata.namespace";
    let message = match (kind.scope, namespace) {
        (Scope::Namespaced, "") => "is missing",
        (Scope::Namespaced, namespace) => return check_segment(field, namespace),
        (Scope::Cluster, "") => return Ok(()),
        (Scope::Cluster, _) => "objects of this kind are in no namespace",
    };
    Err(invalid(&[Violation::new(field, message)]))
}

/// As Kubernetes bounds what stands between the slashes of a path.
fn check_segment(field: &str, text: &str) -> Result<(), Refusal> {
    if text == "." || text == ".." || text.contains(['/', '%']) {
        let message = format!("{text:?} is not a name: it may not be \".\" or \"..\" or contain \"/\" or \"%\"");
        return Err(invalid(&[Violation::new(field, message)]));
    }
    Ok(())
}

/// An object in its message encoding, with what was not read exactly.
///
/// # Errors
/// An object that its message cannot hold; `kubectl` and REST show it all the same.
pub(super) fn write(kind: &Kind, text: &str) -> Result<(Bytes, Vec<String>), Refusal> {
    let encoded = (kind.encode)(text);
    let problems = encoded.problems.iter().map(|problem| match problem.path.as_str() {
        "" => problem.message.clone(),
        path => format!("{path}: {}", problem.message),
    });
    match encoded.proto {
        Some(bytes) => Ok((Bytes::from(bytes), problems.collect())),
        None => {
            let why = problems.collect::<Vec<_>>().join("; ");
            let message = format!(
                "this {} does not fit its message: {why}; read and correct it as JSON",
                kind.name
            );
            Err(Refusal::new(Reason::Other("Unrepresentable".to_owned()), message).with_code(412))
        }
    }
}
