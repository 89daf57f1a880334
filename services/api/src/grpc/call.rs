//! The calls that answer with one message: each request becomes a verb of `operations`, each answer a message.

use bytes::Bytes;
use kindex_kube_api::request::parameter;
use kindex_model::kind::Kind;
use prost::Message;

use super::message::{
    self, CreateRequest, DeleteCollectionRequest, DeleteRequest, GetRequest, ObjectResponse, UpdateRequest,
};
use super::method::{Action, Method};
use super::past::Past;
use super::reply::{Reply, decode};
use super::status::{Violation, invalid};
use super::{list, object};
use crate::operations::{
    Answer, Caller, DeleteOptions, GetOptions, ListOptions, Operations, Part, Preconditions, Refusal, WriteOptions,
};

/// Answers one request.
pub(super) async fn answer(
    operations: &Operations,
    caller: &Caller,
    method: Method,
    past: Past,
    request: Bytes,
) -> Result<Reply, Refusal> {
    let call = Call {
        operations,
        caller,
        kind: method.kind,
    };
    match method.action {
        Action::Create => call.create(decode(request)?).await,
        Action::Get => call.get(decode(request)?, past).await,
        Action::Update => call.update(decode(request)?, Part::Main).await,
        Action::UpdateStatus => call.update(decode(request)?, Part::Status).await,
        Action::Delete => call.delete(decode(request)?).await,
        Action::DeleteCollection => call.clear(decode(request)?).await,
        Action::List | Action::Watch => list::list(operations, caller, method.kind, decode(request)?, past).await,
    }
}

struct Call<'a> {
    operations: &'a Operations,
    caller: &'a Caller,
    kind: &'static Kind,
}

impl Call<'_> {
    async fn create(&self, request: CreateRequest) -> Result<Reply, Refusal> {
        let object = object::read(self.kind, &request.object)?;
        let message::CreateOptions {
            dry_run,
            field_manager,
            field_validation,
        } = request.options.unwrap_or_default();
        let options = write_options(&dry_run, field_manager, field_validation)?;
        let namespace = object::namespace(&object);
        object::check_namespace(self.kind, namespace)?;
        if object::name(&object).is_empty() && object["metadata"]["generateName"].as_str().is_none() {
            let message = "is missing, and so is metadata.generateName";
            return Err(invalid(&[Violation::new("metadata.name", message)]));
        }
        let text = object.to_string();
        let created = self
            .operations
            .create(self.caller, self.kind, namespace, &text, &options);
        self.one(created.await?)
    }

    async fn get(&self, request: GetRequest, past: Past) -> Result<Reply, Refusal> {
        let key = object::key(self.kind, &request.namespace, &request.name)?;
        let options = GetOptions {
            at: past.at,
            include_deleted: past.include_deleted,
            uid: String::new(),
            resource_version: request.options.unwrap_or_default().resource_version,
        };
        self.one(self.operations.get(self.caller, &key, &options).await?)
    }

    async fn update(&self, request: UpdateRequest, part: Part) -> Result<Reply, Refusal> {
        let object = object::read(self.kind, &request.object)?;
        let message::UpdateOptions {
            dry_run,
            field_manager,
            field_validation,
        } = request.options.unwrap_or_default();
        let options = write_options(&dry_run, field_manager, field_validation)?;
        let key = object::key(self.kind, object::namespace(&object), object::name(&object))?;
        let text = object.to_string();
        let updated = self.operations.update(self.caller, &key, part, &text, &options);
        self.one(updated.await?)
    }

    async fn delete(&self, request: DeleteRequest) -> Result<Reply, Refusal> {
        let key = object::key(self.kind, &request.namespace, &request.name)?;
        let options = delete_options(request.options)?;
        let Answer { warnings, .. } = self.operations.delete(self.caller, &key, &options).await?;
        Ok(Reply {
            warnings,
            ..Reply::default()
        })
    }

    async fn clear(&self, request: DeleteCollectionRequest) -> Result<Reply, Refusal> {
        object::check_namespace(self.kind, &request.namespace)?;
        let options = delete_options(request.delete_options)?;
        let listed = request.list_options.unwrap_or_default();
        // Each would be taken for a bound of what is deleted, and is none.
        let unusable = [
            (parameter::LIMIT, listed.limit != 0),
            (parameter::CONTINUE, !listed.r#continue.is_empty()),
            (parameter::RESOURCE_VERSION, !listed.resource_version.is_empty()),
            (parameter::WATCH, listed.watch),
        ];
        if let Some((field, _)) = unusable.into_iter().find(|(_, is_given)| *is_given) {
            let message = "a collection is deleted by its selectors alone";
            return Err(invalid(&[Violation::new(field, message)]));
        }
        let which = ListOptions {
            namespace: Some(request.namespace).filter(|namespace| !namespace.is_empty()),
            labels: listed.label_selector,
            fields: listed.field_selector,
            ..ListOptions::default()
        };
        let Answer { warnings, .. } = self
            .operations
            .delete_collection(self.caller, self.kind, &which, &options)
            .await?;
        Ok(Reply {
            warnings,
            ..Reply::default()
        })
    }

    fn one(&self, answer: Answer) -> Result<Reply, Refusal> {
        let (bytes, problems) = object::write(self.kind, &String::from_utf8_lossy(&answer.text))?;
        let response = ObjectResponse { object: Some(bytes) };
        let mut warnings = answer.warnings;
        warnings.extend(problems);
        Ok(Reply {
            message: response.encode_to_vec(),
            warnings,
        })
    }
}

fn write_options(dry_run: &[String], field_manager: String, field_validation: String) -> Result<WriteOptions, Refusal> {
    Ok(WriteOptions {
        dry_run: is_dry_run(dry_run)?,
        field_manager: Some(field_manager).filter(|text| !text.is_empty()),
        field_validation: Some(field_validation).filter(|text| !text.is_empty()),
        force: false,
    })
}

fn is_dry_run(stages: &[String]) -> Result<bool, Refusal> {
    match stages.iter().find(|stage| *stage != "All") {
        None => Ok(!stages.is_empty()),
        Some(other) => {
            let message = format!("Unsupported value: {other:?}: supported values: \"All\"");
            Err(invalid(&[Violation::new(parameter::DRY_RUN, message)]))
        }
    }
}

fn delete_options(options: Option<message::DeleteOptions>) -> Result<DeleteOptions, Refusal> {
    let options = options.unwrap_or_default();
    is_dry_run(&options.dry_run)?;
    Ok(DeleteOptions {
        preconditions: options.preconditions.map(|wanted| Preconditions {
            uid: wanted.uid,
            resource_version: wanted.resource_version,
        }),
        propagation_policy: options.propagation_policy,
        orphan_dependents: options.orphan_dependents,
        dry_run: Some(options.dry_run).filter(|stages| !stages.is_empty()),
        grace_period_seconds: options.grace_period_seconds,
    })
}
