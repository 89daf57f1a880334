//! `kindex references`: lists the references on an object, and releases one that its holder has left behind. An event
//! and an annotation of the object, written first, say by whom and why: the event to people, and the annotation for as
//! long as SQL has the object. Another annotation names the reference until it is released.

mod event;
mod holder;

use jiff::Timestamp;
use kindex_api::operations::{
    Bounds, Caller, ListedReference, ObjectKey, Operations, Part, References, Refusal, WriteOptions,
};
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::Collection;
use kindex_kube_client::{Outcome, look_up, outcome};
use kindex_model::kind::{Kind, Scope};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use event::{message, record, seconds};

use crate::cli::{DropReferenceArgs, Form, ListReferencesArgs, ReferencesCommand, TargetArgs};
use crate::client::{Access, api_resource};
use crate::database::Store;
use crate::error::{CommandError, CommandResult, chain};
use crate::platform::Platform;
use crate::target::{check_namespace, kind_and_name};
use crate::{database, output, say, sides};

/// After the group of the platform: the annotation with the references that may be taken off an object.
const RELEASED: &str = "release-references";
/// The same, with the uid of a holder behind it: who has released its reference, when and why.
const DROPPED: &str = "dropped-";
/// How often a change is sent that met another one.
const TRIES: usize = 4;

/// An object, with what is needed to ask about it.
struct Target<'a> {
    kind: &'static Kind,
    namespace: &'a str,
    name: &'a str,
    /// Of the platform.
    group: &'static str,
    operations: Operations,
    access: Access,
    store: Store,
}

impl<'a> Target<'a> {
    async fn open(platform: &Platform, args: &'a TargetArgs) -> CommandResult<Self> {
        let registry = &platform.registry;
        let (kind, name) = kind_and_name(registry, &args.object, None)?;
        let name = name.ok_or_else(|| CommandError::usage("which object?").hint("say KIND/NAME"))?;
        if kind.scope == Scope::Namespaced {
            check_namespace("--namespace", &args.namespace)?;
        }
        let store = sides::store(registry, &args.sides.store)?;
        database::answering(&store, kind).await?;
        let access = sides::answering(sides::cluster(&args.sides).await?).await?;
        // As the API server does where `kindex deletion` is at work: that one ends what waited for the reference.
        let operations = sides::operations(registry, &access, &store).await?.with_graph(true);
        let outside = platform.cleanups.all().map(|(kind, _)| kind);
        Ok(Self {
            kind,
            namespace: match kind.scope {
                Scope::Namespaced => &args.namespace,
                Scope::Cluster => "",
            },
            name,
            group: registry.platform.group,
            operations: operations.with_outside(outside),
            access,
            store,
        })
    }

    fn key(&self) -> ObjectKey<'_> {
        ObjectKey {
            resource: self.kind.into(),
            namespace: self.namespace,
            name: self.name,
        }
    }

    async fn references(&self, reference: Option<&str>) -> CommandResult<References> {
        let found = self
            .operations
            .references(&Caller::default(), &self.key(), reference)
            .await;
        match found {
            Ok(found) => Ok(found),
            Err(refusal) => Err(self.refused(refusal, reference.is_some()).await),
        }
    }

    /// What a person is told whose question about all references, or about one, was refused.
    async fn refused(&self, refusal: Refusal, is_about_one: bool) -> CommandError {
        if refusal.outcome() == Outcome::BadRequest {
            return CommandError::usage(refusal);
        }
        let is_absent = refusal.outcome().is_not_found();
        let failure = CommandError::failure(refusal);
        if !is_absent {
            return failure;
        }
        let object = self
            .operations
            .first_references(&Caller::default(), &self.key(), 0)
            .await;
        failure.hint(match object {
            Ok(_) if is_about_one => "`kindex references list` shows them",
            Ok(_) | Err(_) => "another namespace? name it with -n",
        })
    }

    /// Says where a field of a holder names the object as before. What other services keep is not asked for.
    async fn note_fields(&self, held: &ListedReference, object: &kindex_api::operations::Target) {
        let alone = Bounds {
            depth: 0,
            ..Bounds::default()
        };
        let caller = Caller::default();
        let Ok(holder) = self.operations.holders_of_holder(&caller, &held.name, alone).await else {
            return;
        };
        if let Some(note) = holder::still_names(&holder, object) {
            say::note(note);
        }
    }

    /// Says on the object what is released. In the cluster it names the reference as well, since a policy there may
    /// keep all others on the object.
    async fn annotate(&self, held: &ListedReference, said: &str) -> CommandResult {
        let dropped = format!("{}/{DROPPED}{}", self.group, held.uid);
        if !self.kind.cluster {
            self.annotate_stored(&dropped, said).await;
            return Ok(());
        }
        let annotations = json!({(self.released()): held.name, (dropped.as_str()): said});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        match self.objects().patch(self.name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            Err(error) if outcome(&error) == Some(Outcome::Absent) => {
                self.annotate_stored(&dropped, said).await;
                Ok(())
            }
            Err(error) => Err(CommandError::failure(format_args!(
                "nothing was released, for the object cannot be annotated: {}",
                chain(&error)
            ))),
        }
    }

    /// The same on an archived object. One that does not fit its kind any more takes no changes, and may be
    /// released all the same.
    async fn annotate_stored(&self, annotation: &str, said: &str) {
        let patch = json!({"metadata": {"annotations": {(annotation): said}}}).to_string();
        let options = WriteOptions {
            field_manager: Some("kindex-references".to_owned()),
            ..WriteOptions::default()
        };
        let (caller, key) = (Caller::default(), self.key());
        let written = self
            .operations
            .patch(&caller, &key, Part::Main, PatchType::Merge, patch.into(), &options)
            .await;
        if let Err(refusal) = written {
            say::note(format_args!(
                "note: the event alone says who released the reference, for the object cannot be annotated: {refusal}"
            ));
        }
    }

    /// Takes the name off the object again, which would excuse that somebody takes a later reference of the same holder
    /// off. Who dropped this one stays there.
    async fn clear(&self, held: &ListedReference) {
        if !self.kind.cluster {
            return;
        }
        if let Err(error) = self.try_to_clear(held).await {
            say::note(format_args!(
                "note: the annotation {} stays on the object, which cannot be changed: {}",
                self.released(),
                chain(&error)
            ));
        }
    }

    /// Where the annotation has another value, somebody else needs it.
    async fn try_to_clear(&self, held: &ListedReference) -> Result<(), kube::Error> {
        let (objects, released) = (self.objects(), self.released());
        let mut tries = TRIES;
        loop {
            let found = look_up(&objects, self.name).await?;
            let named = found.filter(|found| found.annotations().get(&released) == Some(&held.name));
            let Some(named) = named else {
                return Ok(());
            };
            let metadata = json!({
                "uid": named.uid(),
                "resourceVersion": named.resource_version(),
                "annotations": {(released.as_str()): null},
            });
            let patch = Patch::Merge(json!({"metadata": metadata}));
            tries -= 1;
            match objects.patch(self.name, &PatchParams::default(), &patch).await {
                Err(error) if outcome(&error) == Some(Outcome::Absent) => return Ok(()),
                Err(error) if outcome(&error).is_some_and(Outcome::is_conflict) && tries > 0 => {}
                cleared => return cleared.map(drop),
            }
        }
    }

    fn released(&self) -> String {
        format!("{}/{RELEASED}", self.group)
    }

    /// The objects of its kind where it is, in the cluster.
    fn objects(&self) -> Api<DynamicObject> {
        let (client, resource) = (self.access.client.clone(), api_resource(self.kind));
        match self.kind.scope {
            Scope::Namespaced => Api::namespaced_with(client, self.namespace, &resource),
            Scope::Cluster => Api::all_with(client, &resource),
        }
    }

    async fn close(self) {
        drop(self.operations);
        self.store.close().await;
    }
}

/// Does what was typed.
pub async fn run(platform: &Platform, command: &ReferencesCommand) -> CommandResult {
    match command {
        ReferencesCommand::List(args) => list(platform, args).await,
        ReferencesCommand::Drop(args) => release(platform, args).await,
    }
}

async fn list(platform: &Platform, args: &ListReferencesArgs) -> CommandResult {
    let target = Target::open(platform, &args.target).await?;
    let found = target.references(None).await;
    target.close().await;
    let found = found?;
    say::print(match args.output {
        Form::Json | Form::Yaml => output::document(&found, args.output)?,
        Form::Table => output::table(&["reference", "holder", "state"], found.references.iter().map(row)),
    })
}

fn row(held: &ListedReference) -> Vec<String> {
    let unknown = || "<unknown>".to_owned();
    let holder = held.holder.as_ref().filter(|holder| !holder.name.is_empty());
    let name = holder.map(|holder| match holder.namespace.as_str() {
        "" => holder.name.clone(),
        namespace => format!("{namespace}/{}", holder.name),
    });
    let state = held.holder.as_ref().map(|holder| holder.state.as_str().to_owned());
    vec![
        held.name.clone(),
        name.unwrap_or_else(unknown),
        state.unwrap_or_else(unknown),
    ]
}

async fn release(platform: &Platform, args: &DropReferenceArgs) -> CommandResult {
    let DropReferenceArgs { reference, reason, .. } = args;
    if reason.trim().is_empty() {
        return Err(CommandError::usage("--reason is empty").hint("say why the holder will not release it itself"));
    }
    let target = Target::open(platform, &args.target).await?;
    let done = release_on(&target, reference, reason, args.force).await;
    target.close().await;
    say::print(done?)
}

async fn release_on(target: &Target<'_>, reference: &str, reason: &str, force: bool) -> CommandResult<String> {
    let found = target.references(Some(reference)).await?;
    if !force {
        let held = found.references.first();
        let row = held.map(row).unwrap_or_default();
        let refused = CommandError::usage(format_args!("{} is held by {}", target.name, row.join(", ")));
        return Err(match held {
            Some(held) => refused.hint(holder::instead(held)),
            None => refused,
        });
    }
    let user = user(&target.access.client).await;
    let (message, now) = (message(reference, &user, reason), Timestamp::now());
    record(&target.access.client, target.kind, &found.target, &message, now).await?;
    for held in &found.references {
        target.annotate(held, &format!("{}: {message}", seconds(now))).await?;
    }
    let done = target
        .operations
        .delete_reference(&Caller::default(), &target.key(), reference, None)
        .await;
    for held in &found.references {
        target.clear(held).await;
    }
    done.map_err(CommandError::failure)?;
    for held in &found.references {
        target.note_fields(held, &found.target).await;
    }
    Ok(format!(
        "{}/{}: {reference} released\n",
        target.kind.singular, target.name
    ))
}

/// Who releases it, as the cluster knows them; as the machine does where the cluster does not say.
async fn user(client: &Client) -> String {
    match authenticated(client).await {
        Ok(user) => user,
        Err(why) => {
            let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
            say::note(format_args!(
                "note: the cluster does not say who you are: {why}\n  {user} is recorded, as the environment has it"
            ));
            user
        }
    }
}

/// The user of our credentials. Clusters before 1.28 may not know the request.
async fn authenticated(client: &Client) -> Result<String, String> {
    let reviews = Collection {
        group: "authentication.k8s.io",
        version: "v1",
        plural: "selfsubjectreviews",
        namespace: None,
    };
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = axum::http::Request::post(reviews.path())
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .map_err(|error| chain(&error))?;
    let answer: Value = client.request(request).await.map_err(|error| chain(&error))?;
    let user = answer["status"]["userInfo"]["username"].as_str().unwrap_or_default();
    match user {
        "" => Err("its answer names nobody".to_owned()),
        user => Ok(user.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;

    use axum::http::{Request, Response};
    use kindex_api::operations::{Holder, State};
    use kube::client::Body;

    use super::*;

    /// A cluster that answers every review with this.
    fn cluster(code: u16, answer: Value) -> Client {
        let answer = move |asked: Request<Body>| {
            assert_eq!(asked.uri().path(), "/apis/authentication.k8s.io/v1/selfsubjectreviews");
            let body = Body::from(answer.to_string().into_bytes());
            let response = Response::builder().status(code).body(body);
            ready(Ok::<_, Infallible>(response.expect("an answer")))
        };
        Client::new(tower::service_fn(answer), "default")
    }

    #[tokio::test]
    async fn who_releases_is_who_the_cluster_says() {
        let said = json!({"status": {"userInfo": {"username": "ada@example.com", "groups": ["operators"]}}});
        assert_eq!(
            authenticated(&cluster(201, said)).await.as_deref(),
            Ok("ada@example.com")
        );
        let unknown = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
            "reason": "NotFound", "message": "the server could not find the requested resource"});
        let why = authenticated(&cluster(404, unknown))
            .await
            .expect_err("it does not know that");
        assert!(why.contains("could not find the requested resource"), "{why}");
        let nobody = authenticated(&cluster(201, json!({"status": {}}))).await;
        assert_eq!(nobody.expect_err("it names nobody"), "its answer names nobody");
    }

    #[test]
    fn a_holder_that_is_not_known_is_shown_as_such() {
        let mut held = ListedReference {
            name: "cluster.g.example/u".to_owned(),
            kind: "Cluster".to_owned(),
            group: "g.example".to_owned(),
            uid: "u".to_owned(),
            holder: Some(Holder {
                namespace: "prod".to_owned(),
                name: "one".to_owned(),
                state: State::Deleted,
            }),
        };
        assert_eq!(row(&held), ["cluster.g.example/u", "prod/one", "Deleted"]);
        held.holder = None;
        assert_eq!(row(&held), ["cluster.g.example/u", "<unknown>", "<unknown>"]);
    }
}
