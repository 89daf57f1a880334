//! Replaces and patches objects: live ones in the cluster, archived ones in SQL.

use std::borrow::Cow;

use bytes::Bytes;
use http::Method;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::{Verb, parameter};
use kindex_model::named_object::naming_fields;

use super::cluster::Call;
use super::edit::{Edit, edit_stored, may_move};
use super::objects::{Head, metadata_of, with_finalizer};
use super::references::may_name_in;
use super::rights::RequiredPermission;
use super::{Answer, Backends, Caller, ObjectKey, Operations, Part, Refusal, WriteOptions, front_proxy};

fn required<'a>(verb: Verb, key: &ObjectKey<'a>, part: Part) -> RequiredPermission<'a> {
    RequiredPermission {
        part,
        ..RequiredPermission::at(verb, key)
    }
}

fn text_of(answer: &Answer) -> Cow<'_, str> {
    String::from_utf8_lossy(&answer.text)
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
        self.rights.allow(caller, required(Verb::Update, key, part)).await?;
        let body = match (part, self.backends.finalizer_of(key.resource.kind)) {
            // A manifest that was never in the cluster knows nothing of our finalizer, and would take it away.
            (Part::Main, Some(finalizer)) => with_finalizer(text, &finalizer)?,
            (Part::Main | Part::Status, _) => text.to_owned(),
        };
        let call = Call::json(Method::PUT, part.path(key), options.query(), Bytes::from(body));
        if may_name_in(key.resource, part) {
            match naming_fields(key.resource.kind, text).is_ok_and(|fields| fields.is_object()) {
                true => self.look_at_replacement(caller, key, part, text).await?,
                // The cluster may read it all the same.
                false => drop(self.try_change(caller, key, &call, options).await?),
            }
        }
        match self.backends.upstream_of(key.resource.kind)?.call(caller, call).await {
            Err(refusal) if refusal.is_of_absent_object() => {
                let edit = Edit::replace(text)?;
                edit_stored(self.named_objects(), caller, key, part, &edit, options, refusal).await
            }
            answer => answer,
        }
    }

    /// Patches an object, or its status.
    ///
    /// # Errors
    /// As [`update`](Self::update); 400 for a server-side apply to an archived object, which has no owners of fields;
    /// 403 and 415 for what is not done for callers whom the front proxy names.
    pub async fn patch(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        part: Part,
        patch_type: PatchType,
        patch: Bytes,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        self.rights.allow(caller, required(Verb::Patch, key, part)).await?;
        let call = Call {
            content_type: patch_type.media_type(),
            ..Call::json(Method::PATCH, part.path(key), options.query(), patch.clone())
        };
        let is_for_archived = front_proxy::is_for_archived(caller, key, patch_type, &patch)?;
        if is_for_archived && self.backends.find_live(caller, key).await?.is_some() {
            return Err(front_proxy::forbidden(key));
        }
        if may_name_in(key.resource, part) && may_move(key.resource, patch_type, &patch) {
            let tried = self.try_change(caller, key, &call, options).await?;
            if let Some(tried) = tried.filter(|_| options.dry_run) {
                return Ok(tried);
            }
        }
        if patch_type == PatchType::Apply
            && let Some(finalizer) = self.backends.finalizer_of(key.resource.kind)
        {
            return self.backends.apply(caller, key, call, &finalizer, options).await;
        }
        let answer = match is_for_archived {
            // In the cluster, there may be one of that name by now.
            true => Err(Refusal::not_found(key)),
            false => self.backends.upstream_of(key.resource.kind)?.call(caller, call).await,
        };
        match answer {
            Err(refusal) if refusal.is_of_absent_object() && self.backends.archives(key.resource.kind) => {
                let edit = Edit::patch(patch_type, &patch)?;
                edit_stored(self.named_objects(), caller, key, part, &edit, options, refusal).await
            }
            answer => answer,
        }
    }

    /// Refuses to let a field of a live object name another one while one of them is being deleted. A change of an
    /// archived object is looked at where it is made, and what is nowhere is not there to be replaced.
    async fn look_at_replacement(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        part: Part,
        text: &str,
    ) -> Result<(), Refusal> {
        let Some(old) = self.backends.find_live(caller, key).await? else {
            return Ok(());
        };
        self.named_objects()
            .refuse_change(caller, key, [&text_of(&old), text], Some(part))
            .await
    }

    /// The same of a change of which the cluster alone knows what it makes of an object, or whether it creates one: its
    /// answer to a dry run. Nothing where the object is not the cluster's to change.
    async fn try_change(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        call: &Call<'_>,
        options: &WriteOptions,
    ) -> Result<Option<Answer>, Refusal> {
        let old = self.backends.find_live(caller, key).await?;
        if old.is_none() && self.backends.find_archived(key).await?.is_some() {
            return Ok(None);
        }
        let dry_run = WriteOptions {
            dry_run: true,
            ..options.clone()
        };
        let trial = Call {
            method: call.method.clone(),
            path: call.path.clone(),
            query: dry_run.query(),
            content_type: call.content_type,
            body: call.body.clone(),
        };
        let tried = match self.backends.upstream_of(key.resource.kind)?.call(caller, trial).await {
            Err(refusal) if refusal.is_of_absent_object() => return Ok(None),
            tried => tried?,
        };
        match old {
            Some(old) => {
                self.named_objects()
                    .refuse_change(caller, key, [&text_of(&old), &text_of(&tried)], None)
                    .await?;
            }
            None => self.named_objects().refuse_child(caller, key, &text_of(&tried)).await?,
        }
        Ok(Some(tried))
    }
}

impl Backends {
    /// The object as the cluster has it, read by the server.
    async fn find_live(&self, caller: &Caller, key: &ObjectKey<'_>) -> Result<Option<Answer>, Refusal> {
        let upstream = self.upstream_of(key.resource.kind)?;
        match upstream
            .call(&caller.on_behalf(), Call::get(key.path(), Vec::new()))
            .await
        {
            Err(refusal) if refusal.is_of_absent_object() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Applies a configuration; what that creates gets the finalizer.
    async fn apply(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        call: Call<'_>,
        finalizer: &str,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        if self.find_live(caller, key).await?.is_none() && self.find_archived(key).await?.is_some() {
            return Err(Refusal::bad_request(format!(
                "{} \"{}\" is archived, and archived objects have no field managers: use update or patch instead of \
                 server-side apply, or bring it back with kindex restore",
                key.resource.kind.plural, key.name
            )));
        }
        let applied = self.upstream_of(key.resource.kind)?.call(caller, call).await?;
        if applied.code == 201 && !options.dry_run {
            let server = caller.on_behalf();
            return self.adopt_applied(&server, key, applied, finalizer).await;
        }
        Ok(applied)
    }

    /// Gives our finalizer to what an apply has created. Not as a part of the configuration: its manager would own
    /// the finalizer, and take it away with the next apply.
    async fn adopt_applied(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        applied: Answer,
        finalizer: &str,
    ) -> Result<Answer, Refusal> {
        let adopted = with_finalizer(&text_of(&applied), finalizer)?;
        let mut metadata = metadata_of(&adopted)?;
        let head = Head::read(&applied.text).metadata;
        let patch = serde_json::json!({"metadata": {
            "uid": head.uid,
            "resourceVersion": head.resource_version,
            "finalizers": metadata["finalizers"].take(),
        }});
        let call = Call {
            content_type: PatchType::Merge.media_type(),
            ..Call::json(
                Method::PATCH,
                key.path(),
                vec![(parameter::FIELD_MANAGER, "kindex-api".to_owned())],
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
            Err(refusal) if refusal.outcome().is_conflict() => Ok(applied),
            Err(refusal) => Err(refusal),
        }
    }
}
