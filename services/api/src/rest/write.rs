//! `POST`, `PUT`, `PATCH` and `DELETE`.

use std::borrow::Cow;

use axum::response::Response;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::{Subresource, parameter};
use kindex_kube_api::status::Status;
use kindex_kube_api::{decode, media};
use kindex_model::kind::Scope;
use serde_json::{Value, json};

use super::read::{self, form};
use super::{Inbound, Rest};
use crate::operations::{DeleteOptions, Part, Refusal, WriteOptions};

pub(super) async fn create(rest: &Rest, inbound: &Inbound) -> Result<Response, Refusal> {
    if inbound.resource.kind.scope == Scope::Namespaced && inbound.path.namespace.is_none() {
        return Err(Refusal::method_not_allowed());
    }
    let text = object_text(inbound)?;
    let operations = &rest.operations;
    let answer = operations
        .create(
            &inbound.caller,
            inbound.resource,
            inbound.namespace(),
            &text,
            &options(inbound)?,
        )
        .await?;
    form(rest, inbound).one(&answer)
}

pub(super) async fn update(rest: &Rest, inbound: &Inbound, name: &str) -> Result<Response, Refusal> {
    let (text, options) = (object_text(inbound)?, options(inbound)?);
    let (operations, key) = (&rest.operations, inbound.key(name));
    let answer = operations
        .update(&inbound.caller, &key, part(inbound), &text, &options)
        .await?;
    form(rest, inbound).one(&answer)
}

pub(super) async fn patch(rest: &Rest, inbound: &Inbound, name: &str) -> Result<Response, Refusal> {
    let patch_type = PatchType::from_content_type(&inbound.head.content_type)
        .ok_or_else(|| Status::unsupported_media_type(&PatchType::media_types(false)))?;
    let options = options(inbound)?;
    let (operations, key) = (&rest.operations, inbound.key(name));
    let answer = operations
        .patch(
            &inbound.caller,
            &key,
            part(inbound),
            patch_type,
            inbound.body.clone(),
            &options,
        )
        .await?;
    form(rest, inbound).one(&answer)
}

fn part(inbound: &Inbound) -> Part {
    match inbound.path.subresource {
        Some(Subresource::Status) => Part::Status,
        Some(Subresource::Finalize) | None => Part::Main,
    }
}

/// What the deletion of a collection may be called with. Anything else, a misspelled selector above all, would let it
/// delete more than was meant.
const OF_COLLECTIONS: [&str; 7] = [
    parameter::LABEL_SELECTOR,
    parameter::FIELD_SELECTOR,
    parameter::PROPAGATION_POLICY,
    parameter::DRY_RUN,
    parameter::GRACE_PERIOD_SECONDS,
    parameter::TIMEOUT_SECONDS,
    parameter::PRETTY,
];

pub(super) async fn clear(rest: &Rest, inbound: &Inbound) -> Result<Response, Refusal> {
    if let Some(unknown) = inbound.query.names().find(|name| !OF_COLLECTIONS.contains(name)) {
        return Err(Refusal::bad_request(format!(
            "a collection is not deleted with the parameter {unknown:?}: it takes {}",
            OF_COLLECTIONS.join(", ")
        )));
    }
    let (which, options) = (read::options(inbound)?, delete_options(inbound)?);
    let answer = rest
        .operations
        .delete_collection(&inbound.caller, inbound.resource, &which, &options)
        .await?;
    form(rest, inbound).one(&answer)
}

pub(super) async fn delete(rest: &Rest, inbound: &Inbound, name: &str) -> Result<Response, Refusal> {
    let options = delete_options(inbound)?;
    let key = inbound.key(name);
    let answer = rest.operations.delete(&inbound.caller, &key, &options).await?;
    form(rest, inbound).one(&answer)
}

/// The options of a write, from its parameters.
pub(super) fn options(inbound: &Inbound) -> Result<WriteOptions, Refusal> {
    let text = |parameter: &str| inbound.query.get(parameter).map(str::to_owned);
    Ok(WriteOptions {
        dry_run: inbound.query.dry_run()?,
        field_manager: text(parameter::FIELD_MANAGER),
        field_validation: text(parameter::FIELD_VALIDATION),
        force: inbound.query.is_on(parameter::FORCE),
    })
}

/// The object of the body as JSON.
pub(super) fn object_text(inbound: &Inbound) -> Result<Cow<'_, str>, Refusal> {
    let text = utf8(&inbound.body)?;
    match inbound.head.content_type.as_str() {
        "" | media::JSON => Ok(Cow::Borrowed(unicode(text)?)),
        media::YAML => Ok(Cow::Owned(yaml(text.as_bytes())?.to_string())),
        _ => Err(Status::unsupported_media_type(&media::OBJECT_TYPES).into()),
    }
}

fn utf8(body: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(body).map_err(|error| Refusal::bad_request(format!("the body is not UTF-8: {error}")))
}

/// The JSON of an object, if every escape in it stands for a character. kube-apiserver puts U+FFFD in the place of one
/// that does not, and takes the object, of which no field could be read and checked here.
fn unicode(json: &str) -> Result<&str, Refusal> {
    match lone_surrogate(json) {
        None => Ok(json),
        Some(escape) => Err(Refusal::bad_request(format!(
            "the body is not Unicode: the escape {escape} is half of a surrogate pair, without the other half"
        ))),
    }
}

/// How long the escape of a code unit is: `\ud83d`.
const UNIT_BYTES: usize = 6;

/// The first escape of half a surrogate pair without the other half. A backslash outside of a string is left to who
/// reads the JSON.
fn lone_surrogate(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        rest = &rest[at..];
        let length = match code_unit(rest) {
            Some(0xd800..=0xdbff) if matches!(code_unit(&rest[UNIT_BYTES..]), Some(0xdc00..=0xdfff)) => 2 * UNIT_BYTES,
            Some(0xd800..=0xdfff) => return Some(&rest[..UNIT_BYTES]),
            Some(_) => UNIT_BYTES,
            // The backslash, and the character that it escapes: it may be another backslash.
            None => rest.chars().take(2).map(char::len_utf8).sum::<usize>(),
        };
        rest = &rest[length..];
    }
    None
}

/// The code unit whose escape a text begins with.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

fn yaml(text: &[u8]) -> Result<Value, Refusal> {
    let read = decode::yaml(text).map_err(|error| Refusal::bad_request(error.to_string()))?;
    Ok(read.value)
}

/// From the body; a parameter counts where the body says nothing, as in Kubernetes.
pub(super) fn delete_options(inbound: &Inbound) -> Result<DeleteOptions, Refusal> {
    let body = match utf8(&inbound.body)? {
        text if text.trim().is_empty() => json!({}),
        text => yaml(text.as_bytes())?,
    };
    let mut options: DeleteOptions = serde_json::from_value(body)
        .map_err(|error| Refusal::bad_request(format!("the body is not DeleteOptions: {error}")))?;
    let parameters = DeleteOptions::of_query(&inbound.query);
    options.propagation_policy = options.propagation_policy.or(parameters.propagation_policy);
    options.dry_run = options.dry_run.or(parameters.dry_run);
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if a pair were two halves, an escaped backslash began an escape, or only the first escape were looked at.
    #[test]
    fn a_body_with_half_of_a_surrogate_pair_is_refused() {
        for (json, escape) in [
            (r#"{"name": "\ud800"}"#, r"\ud800"),
            (r#"{"name": "\uDFFF"}"#, r"\uDFFF"),
            (r#"{"\udc00": 1}"#, r"\udc00"),
            (r#"{"name": "\ud83d\ude00\ud83d"}"#, r"\ud83d"),
            (r#"{"name": "\ud83d\ud83d\ude00"}"#, r"\ud83d"),
            (r#"{"name": "\ud83d \ude00"}"#, r"\ud83d"),
            (r#"{"name": "\\\ud83d\n\ude00"}"#, r"\ud83d"),
            (r#"{"name": "\u00e9é\udbff"#, r"\udbff"),
        ] {
            let refused = unicode(json).expect_err(json);
            let names_it = refused.message.contains(&format!("the escape {escape} is half"));
            assert!(refused.code == 400 && names_it, "{json}: {refused}");
            assert!(serde_json::from_str::<Value>(json).is_err(), "{json}");
        }
        for json in [
            r#"{"name": "\ud83d\ude00\uD83D\uDE00"}"#,
            r#"{"name": "\\ud800"}"#,
            r#"{"name": "\u0000\u00e9\ufffd\ue000\ud7ff"}"#,
            r#"{"name": "é"}"#,
        ] {
            assert_eq!(unicode(json).expect("Unicode"), json);
            assert!(serde_json::from_str::<Value>(json).is_ok(), "{json}");
        }
    }

    /// They are for who reads the JSON, and end no scan beyond the text.
    #[test]
    fn an_escape_that_is_cut_off_is_passed_over() {
        for json in [
            "",
            "\\",
            "\"\\u",
            "\"\\ud8",
            "\"\\ud8é",
            "\"\\é",
            "\"\\u+d80\"",
            "\"\\ud83",
            "\"\\ud83\\ude00",
        ] {
            assert_eq!(lone_surrogate(json).is_some(), json.ends_with("\\ude00"), "{json}");
        }
    }
}
