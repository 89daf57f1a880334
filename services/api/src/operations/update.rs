//! Replaces and patches objects: live ones in the cluster, archived ones in SQL.

use bytes::Bytes;
use http::Method;
use kindex_kube_api::decode;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::Verb;
use serde_json::Value;

use super::cluster::Call;
use super::edit::Edit;
use super::objects::{Head, with_finalizer};
use super::rights::Wanted;
use super::{Answer, Caller, ObjectKey, Operations, Part, Refusal, WriteOptions};

fn wanted<'a>(verb: Verb, key: &ObjectKey<'a>, part: Part) -> Wanted<'a> {
    Wanted {
        part,
        ..Wanted::at(verb, key)
    }
}

impl Operations {
    /// Replaces an object, or its status.
    ///
    /// # Errors
    /// 409 where it has another version by now, 404 where it is nowhere.
    pub async fn update(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        part: Part,
        text: &str,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        self.allow(caller, wanted(Verb::Update, key, part)).await?;
        if self.may_move(key) {
            let wanted = decode::json(text.as_bytes()).map(|read| read.value);
            self.look_for_moves(caller, key, part, wanted.ok().map(Edit::Replace))
                .await?;
        }
        let body = match (part, self.finalizer_of(key.resource.kind)) {
            // A manifest that was never in the cluster knows nothing of our finalizer, and would take it away.
            (Part::Main, Some(finalizer)) => with_finalizer(text, &finalizer)?,
            (Part::Main | Part::Status, _) => text.to_owned(),
        };
        let call = Call::json(Method::PUT, part.path(key), options.query(), Bytes::from(body));
        match self.upstream_of(key.resource.kind)?.call(caller, call).await {
            Err(refusal) if refusal.is_of_absent_object() => {
                let wanted = decode::json(text.as_bytes())
                    .map_err(|error| Refusal::bad_request(format!("the body is no object: {error}")))?;
                self.edit_stored(caller, key, part, &Edit::Replace(wanted.value), options, refusal)
                    .await
            }
            answer => answer,
        }
    }

    /// Patches an object, or its status.
    ///
    /// # Errors
    /// As [`update`](Self::update); 400 for a server-side apply to an archived object, which has no
    /// owners of fields.
    pub async fn patch(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        part: Part,
        patch_type: PatchType,
        patch: Bytes,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        self.allow(caller, wanted(Verb::Patch, key, part)).await?;
        if self.may_move(key) {
            let edit = match patch_type {
                // What is applied is merged, as far as references are concerned.
                PatchType::Apply => Edit::patch(PatchType::Merge, &patch),
                other => Edit::patch(other, &patch),
            };
            self.look_for_moves(caller, key, part, edit.ok()).await?;
        }
        if patch_type == PatchType::Apply
            && let Some(finalizer) = self.finalizer_of(key.resource.kind)
        {
            return self.apply(caller, key, part, patch, &finalizer, options).await;
        }
        let call = Call {
            content_type: patch_type.media_type(),
            ..Call::json(Method::PATCH, part.path(key), options.query(), patch.clone())
        };
        match self.upstream_of(key.resource.kind)?.call(caller, call).await {
            Err(refusal) if refusal.is_of_absent_object() && self.archives(key.resource.kind) => {
                let edit = Edit::patch(patch_type, &patch)?;
                self.edit_stored(caller, key, part, &edit, options, refusal).await
            }
            answer => answer,
        }
    }

    /// Refuses to let a field of a live object name another one while one of them is being deleted. What makes no edit,
    /// or fits no object, is the cluster's to refuse.
    async fn look_for_moves(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        part: Part,
        edit: Option<Edit>,
    ) -> Result<(), Refusal> {
        let Some(edit) = edit.filter(|edit| edit.may_move(key.resource.kind)) else {
            return Ok(());
        };
        let server = caller.on_behalf();
        let upstream = self.upstream_of(key.resource.kind)?;
        let found = match upstream.call(&server, Call::get(key.path(), Vec::new())).await {
            Ok(answer) => answer,
            // A change of an archived object is looked at where it is made.
            Err(refusal) if refusal.is_of_absent_object() && self.find_archived(key).await?.is_some() => return Ok(()),
            Err(refusal) if refusal.is_of_absent_object() => {
                return match edit.result(&Value::Null, part) {
                    Some(new) => self.refuse_children(caller, key, new).await,
                    None => Ok(()),
                };
            }
            Err(refusal) => return Err(refusal),
        };
        let old: Value = serde_json::from_slice(&found.text).unwrap_or_default();
        match edit.result(&old, part) {
            Some(new) => self.refuse_moves(caller, key, &old, &new).await,
            None => Ok(()),
        }
    }

    /// Applies a configuration; what that creates gets the finalizer.
    async fn apply(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        part: Part,
        configuration: Bytes,
        finalizer: &str,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        let server = caller.on_behalf();
        let upstream = self.upstream_of(key.resource.kind)?;
        let present = upstream.call(&server, Call::get(key.path(), Vec::new())).await;
        match present {
            Err(refusal) if refusal.is_of_absent_object() => {
                if self.find_archived(key).await?.is_some() {
                    return Err(Refusal::bad_request(format!(
                        "{} \"{}\" is archived, and archived objects have no field managers: use update or patch \
                         instead of server-side apply, or bring it back with kindex restore",
                        key.resource.kind.plural, key.name
                    )));
                }
            }
            Err(refusal) => return Err(refusal),
            Ok(_) => {}
        }
        let call = Call {
            content_type: PatchType::Apply.media_type(),
            ..Call::json(Method::PATCH, part.path(key), options.query(), configuration)
        };
        let applied = upstream.call(caller, call).await?;
        if applied.code == 201 && !options.dry_run {
            return self.guard_applied(&server, key, applied, finalizer).await;
        }
        Ok(applied)
    }

    /// Gives our finalizer to what an apply has created. Not as a part of the configuration: its manager would own
    /// the finalizer, and take it away with the next apply.
    async fn guard_applied(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        applied: Answer,
        finalizer: &str,
    ) -> Result<Answer, Refusal> {
        let guarded = with_finalizer(&String::from_utf8_lossy(&applied.text), finalizer)?;
        let mut object: Value = serde_json::from_str(&guarded).unwrap_or_default();
        let head = Head::read(&applied.text).metadata;
        let patch = serde_json::json!({"metadata": {
            "uid": head.uid,
            "resourceVersion": head.resource_version,
            "finalizers": object["metadata"]["finalizers"].take(),
        }});
        let call = Call {
            content_type: PatchType::Merge.media_type(),
            ..Call::json(
                Method::PATCH,
                key.path(),
                vec![("fieldManager", "kindex-api".to_owned())],
                Bytes::from(patch.to_string()),
            )
        };
        match self.upstream_of(key.resource.kind)?.call(caller, call).await {
            Ok(answer) => Ok(Answer {
                code: applied.code,
                warnings: applied.warnings,
                text: answer.text,
            }),
            // Somebody was faster: the ingester or `kindex deletion`, which give it as well, or a controller.
            Err(refusal) if refusal.code == 409 => Ok(applied),
            Err(refusal) => Err(refusal),
        }
    }
}
