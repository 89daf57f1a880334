//! `POST`, `PUT` and `PATCH`.

use kindex_kube_api::decode::{self, DecodeError, Decoded};
use kindex_kube_api::fields::{self, NotApplied};
use kindex_kube_api::media;
use kindex_kube_api::meta;
use kindex_kube_api::patch::{Patch, PatchType};
use kindex_kube_api::request::{FieldValidation, Subresource, parameter};
use kindex_kube_api::status::{Cause, FieldProblem, Status};
use serde_json::Value;

use super::call::{Call, no_namespace, refused};
use super::{Reply, render};
use crate::admit::{self, Author, DecodedObject};
use crate::mutate;

/// Media types of bodies that hold an object.
const OBJECT_TYPES: [&str; 3] = [media::JSON, media::YAML, media::PROTOBUF];
/// The longest name of a field manager.
const MANAGER_MAX_BYTES: usize = 128;

/// How the request wants its writing done.
struct WriteOptions<'a> {
    author: Author<'a>,
    validation: FieldValidation,
    dry_run: bool,
}

fn write_options<'a>(call: &'a Call<'_>, options: &str) -> Result<WriteOptions<'a>, Status> {
    let dry_run = call.dry_run(options)?;
    let given = call.request.query.get(parameter::FIELD_MANAGER).unwrap_or_default();
    if given.len() > MANAGER_MAX_BYTES {
        let problem = FieldProblem::too_long(parameter::FIELD_MANAGER, MANAGER_MAX_BYTES);
        return Err(Status::invalid_options(options, &[problem]));
    }
    let validation = call.request.query.field_validation();
    let validation = validation.map_err(|error| refused(options, &error))?;
    let author = Author {
        manager: call.manager(),
        subresource: call.request.path.subresource,
        applied: false,
        now: call.api.now(),
    };
    Ok(WriteOptions {
        author,
        validation,
        dry_run,
    })
}

/// Creates an object.
pub(super) async fn post(call: &Call<'_>) -> Result<Reply, Status> {
    if call.resource.namespaced && call.request.path.namespace.is_none() {
        return Err(no_namespace(call));
    }
    let options = write_options(call, "CreateOptions")?;
    let (object, warnings) = read_object(call)?.checked(call.resource, options.validation)?;
    let warnings = [warnings, admit::warnings(call.resource, &object)].concat();
    let written = mutate::create(
        call.api,
        call.resource,
        call.namespace(),
        object,
        &options.author,
        options.dry_run,
    )
    .await?;
    Ok(render::written(call, 201, written).await?.warn(warnings))
}

/// Replaces an object.
pub(super) async fn put(call: &Call<'_>, name: &str) -> Result<Reply, Status> {
    let options = write_options(call, "UpdateOptions")?;
    let (object, warnings) = read_object(call)?.checked(call.resource, options.validation)?;
    let warnings = [warnings, admit::warnings(call.resource, &object)].concat();
    let edit = |_: &Value| Ok(object.clone());
    let written = mutate::change(
        call.api,
        call.resource,
        &call.key(name),
        &options.author,
        options.dry_run,
        edit,
    )
    .await?;
    Ok(render::written(call, 200, written).await?.warn(warnings))
}

/// An object that asks something and is not stored, with the warnings about it.
pub(super) fn read_question(call: &Call<'_>) -> Result<(Value, Vec<String>), Status> {
    let options = write_options(call, "CreateOptions")?;
    read_object(call)?.checked(call.resource, options.validation)
}

fn read_object(call: &Call<'_>) -> Result<DecodedObject, Status> {
    let decoded = decode::by_media_type(&call.request.content_type, &call.request.body);
    let Decoded { value, duplicates } = decoded.map_err(|error| match error {
        DecodeError::MediaType(_) => Status::unsupported_media_type(&OBJECT_TYPES),
        DecodeError::Json(_) | DecodeError::Yaml(_) | DecodeError::Protobuf(_) => {
            let (kind, version) = (&call.resource.names.kind, &call.resource.version);
            Status::not_of_kind(kind, version, error)
        }
    })?;
    admit::accept(call.resource, value, duplicates)
}

/// Patches an object.
pub(super) async fn patch(call: &Call<'_>, name: &str) -> Result<Reply, Status> {
    let patch_type = PatchType::from_content_type(&call.request.content_type);
    match patch_type {
        Some(PatchType::Apply) => apply(call, name).await,
        Some(PatchType::Strategic) if !call.resource.allows_strategic_patch() => Err(unknown_patch_type(call)),
        Some(patch_type) => patch_as(call, name, patch_type).await,
        None => Err(unknown_patch_type(call)),
    }
}

fn unknown_patch_type(call: &Call<'_>) -> Status {
    let accepted = PatchType::media_types(call.resource.allows_strategic_patch());
    Status::unsupported_media_type(&accepted)
}

async fn patch_as(call: &Call<'_>, name: &str, patch_type: PatchType) -> Result<Reply, Status> {
    let options = write_options(call, "PatchOptions")?;
    if call.request.query.has(parameter::FORCE) {
        let problem = FieldProblem::forbidden(parameter::FORCE, "may not be specified for non-apply patch");
        return Err(Status::invalid_options("PatchOptions", &[problem]));
    }
    let (patch, duplicates) = Patch::read(patch_type, &call.request.body)?;
    let mut warnings = Vec::new();
    let edit = |before: &Value| {
        let sent = admit::accept(call.resource, patch.apply(before)?, duplicates.clone())?;
        let strict_errors = sent.strict_errors.join(", ");
        let Ok((object, found)) = sent.checked(call.resource, options.validation) else {
            // Only this refusal shows what the patch made, as it was before unknown fields were taken out.
            let shown = patch.apply(before)?.to_string();
            let problem = FieldProblem::invalid("patch", &shown, &format!("strict decoding error: {strict_errors}"));
            return Err(Status::invalid("", "", "", &[problem]));
        };
        warnings = [found, admit::warnings(call.resource, &object)].concat();
        Ok(object)
    };
    let written = mutate::change(
        call.api,
        call.resource,
        &call.key(name),
        &options.author,
        options.dry_run,
        edit,
    )
    .await?;
    Ok(render::written(call, 200, written).await?.warn(warnings))
}

/// Server-side apply: creates what is not there, but for subresources.
async fn apply(call: &Call<'_>, name: &str) -> Result<Reply, Status> {
    let mut options = write_options(call, "PatchOptions")?;
    options.author.applied = true;
    if call.request.query.get(parameter::FIELD_MANAGER).is_none() {
        let problem = FieldProblem::required(parameter::FIELD_MANAGER, "is required for apply patch");
        return Err(Status::invalid_options("PatchOptions", &[problem]));
    }
    let (configuration, is_named) = read_configuration(call, name)?;
    let (uid, warnings) = (
        meta::uid(&configuration).to_owned(),
        admit::warnings(call.resource, &configuration),
    );
    let force = call.request.query.is_on(parameter::FORCE);
    // Merged, it is gone: who has to merge again reads it again, so that nobody holds it twice.
    let mut first = Some(configuration);
    let mut merge = |live: Option<&Value>| {
        let again = || read_configuration(call, name).map(|(configuration, _)| configuration);
        let configuration = first.take().map_or_else(again, Ok)?;
        let subresource = options.author.subresource.map(Subresource::name);
        let schema = call.resource.schema.as_ref();
        let (manager, now) = (options.author.manager, options.author.now);
        let version = &call.resource.api_version;
        fields::apply(schema, live, configuration, manager, force, subresource, version, now).map_err(not_applied)
    };
    let edit = |before: &Value| merge(Some(before));
    let key = call.key(name);
    let changed = mutate::change(call.api, call.resource, &key, &options.author, options.dry_run, edit).await;
    let (code, written) = match changed {
        Err(status) if status.outcome().is_not_found() && options.author.subresource.is_none() => {
            if !uid.is_empty() {
                let why =
                    format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
                return Err(Status::conflict(call.resource.group_resource(), name, &why));
            }
            if !is_named {
                return Err(Status::name_missing(name));
            }
            let mut object = merge(None)?;
            meta::set(&mut object, "resourceVersion", None);
            let created = mutate::create(
                call.api,
                call.resource,
                call.namespace(),
                object,
                &options.author,
                options.dry_run,
            );
            (201, created.await?)
        }
        changed => (200, changed?),
    };
    Ok(render::written(call, code, written).await?.warn(warnings))
}

/// The configuration of an apply request: an object of the resource, named as in the path, of known fields alone; and
/// whether it names itself.
fn read_configuration(call: &Call<'_>, name: &str) -> Result<(Value, bool), Status> {
    let decoded = decode::yaml(&call.request.body)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    if !decoded.value["metadata"]["managedFields"].is_null() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    check_type(&decoded.value)?;
    let place = format!("{}/{name}", meta::namespace(&decoded.value));
    let DecodedObject {
        mut object,
        strict_errors,
    } = admit::accept(call.resource, decoded.value, decoded.duplicates)?;
    let is_named = !meta::name(&object).is_empty();
    if !is_named {
        meta::set(&mut object, "name", Some(name.into()));
    }
    if call.resource.namespaced && meta::namespace(&object).is_empty() {
        meta::set(&mut object, "namespace", Some(call.namespace().into()));
    }
    let unknown = strict_errors
        .iter()
        .find_map(|error| error.strip_prefix("unknown field \"")?.strip_suffix('"'));
    if let Some(field) = unknown {
        return Err(Status::unexplained(format!(
            "failed to create typed patch object ({place}; {}, Kind={}): .{field}: field not declared in schema",
            call.resource.api_version, call.resource.names.kind
        )));
    }
    Ok((confine(call, object), is_named))
}

/// A configuration says what it is of.
fn check_type(configuration: &Value) -> Result<(), Status> {
    let text = |field: &str| configuration[field].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if !version.is_empty() && !kind.is_empty() {
        return Ok(());
    }
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Err(Status::bad_request(format!(
        "invalid object type: {group}/{version}, Kind={kind}"
    )))
}

/// Only what the endpoint may write is applied, and owned.
fn confine(call: &Call<'_>, mut object: Value) -> Value {
    let is_status = call.request.path.subresource == Some(Subresource::Status);
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|field, _| match (is_status, field.as_str()) {
            (_, "apiVersion" | "kind" | "metadata") => true,
            (true, field) => field == "status",
            (false, field) => field != "status" || !call.resource.has_status,
        });
    }
    object
}

fn not_applied(why: NotApplied) -> Status {
    let conflicts = match why {
        NotApplied::TooLarge => return Status::object_too_large(),
        NotApplied::Conflicts(conflicts) => conflicts,
    };
    let causes = conflicts.reported.into_iter().map(|conflict| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: conflict.message,
        field: conflict.field,
    });
    Status::apply_conflict(conflicts.message, causes.collect())
}
