//! `kindex move`: lets a field of an object name another object, with the references in the order that keeps both
//! targets.

use kindex_api::operations::{Caller, Moved, NamedObject, ObjectKey, Refusal};
use kindex_kube_client::Outcome;
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::reference::{self, Service};
use serde::Serialize;

use crate::cli::{Form, MoveArgs};
use crate::error::{CommandError, CommandResult};
use crate::target::{Target, check_namespace, kind_and_name};
use crate::{database, output, peers, say, sides};

/// The flag with the namespace of the object, and of the target where no other flag says that.
const OWN_NAMESPACE: &str = "--namespace";

/// Moves, and prints what came of it.
pub async fn run(registry: &Registry, args: &MoveArgs) -> CommandResult {
    let holder = named(registry, &args.object, OWN_NAMESPACE, &args.namespace)?;
    let to = target(registry, holder.kind, args)?;
    let peers = peers::of_targets(registry, &args.services)?;
    let store = sides::store(registry, &args.sides.store)?;
    database::answering(&store, holder.kind).await?;
    let access = sides::answering(sides::cluster(&args.sides).await?).await?;
    let operations = sides::operations(registry, &access, &store).await?.with_peers(peers);
    let reference = args.reference.as_deref();
    let moved = operations
        .move_holder(&Caller::default(), &key(&holder), reference, &to, args.dry_run)
        .await;
    drop(operations);
    store.close().await;
    let moved = moved.map_err(|refusal| failed(refusal, holder.kind, &to))?;
    say::print(match args.output {
        Form::Json | Form::Yaml => output::document(&Document::of(&moved, args.dry_run), args.output)?,
        Form::Table => sentence(&moved, args.dry_run),
    })
}

/// What is printed for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(flatten)]
    moved: &'a Moved,
    /// Whether nothing was written although it might have been.
    dry_run: bool,
}

impl<'a> Document<'a> {
    fn of(moved: &'a Moved, dry_run: bool) -> Self {
        Self { moved, dry_run }
    }
}

/// The object of a text, in the namespace of a flag.
fn named<'a>(registry: &Registry, text: &'a str, flag: &str, namespace: &'a str) -> CommandResult<Target<'a>> {
    let (kind, name) = kind_and_name(registry, text, None)?;
    let name = name.ok_or_else(|| CommandError::usage(format_args!("which {}?", kind.name)).hint("say KIND/NAME"))?;
    if kind.scope == Scope::Namespaced {
        check_namespace(flag, namespace)?;
    }
    Ok(Target::new(kind, namespace, name))
}

/// The object that the field is to name. A kind of this program comes first, unless only one of another service can be
/// meant.
fn target(registry: &Registry, holder: &Kind, args: &MoveArgs) -> CommandResult<NamedObject> {
    let (flag, namespace) = match &args.to_namespace {
        Some(namespace) => ("--to-namespace", namespace),
        None => (OWN_NAMESPACE, &args.namespace),
    };
    let (text, wanted) = (args.to.as_str(), args.reference.as_deref());
    let references = holder.references.iter();
    let references = references.filter(|reference| wanted.is_none_or(|wanted| reference.name == wanted));
    let targets: Vec<_> = references.flat_map(|reference| reference.targets).collect();
    let is_own = |kind: &Kind| {
        let mut own = targets.iter().filter(|target| target.service.is_none());
        own.any(|target| (target.group, target.kind) == (kind.group, kind.name))
    };
    let mut others = foreign(&targets, text);
    match named(registry, text, flag, namespace) {
        Ok(own) if others.is_empty() || is_own(own.kind) => Ok(NamedObject::of(&key(&own))),
        Err(error) if others.is_empty() => Err(error),
        Ok(_) | Err(_) if others.len() > 1 => {
            let names = others
                .iter()
                .map(|(service, kind, name)| format!("{kind}.{}/{name}", service.group));
            let names: Vec<_> = names.collect();
            Err(CommandError::usage(format_args!("{text} may be of several services"))
                .hint(format_args!("write {}", names.join(" or "))))
        }
        Ok(_) | Err(_) => {
            let (service, kind, name) = others.remove(0);
            if service.has_namespaces(kind) {
                check_namespace(flag, namespace)?;
            }
            Ok(NamedObject::of_peer(service, kind, namespace, name))
        }
    }
}

/// The objects of other services that may be meant: `project/b`, `project.identity.example.com/b`.
fn foreign<'a>(
    targets: &[&'static reference::Target],
    text: &'a str,
) -> Vec<(&'static Service, &'static str, &'a str)> {
    let Some((word, name)) = text.split_once('/').filter(|(_, name)| !name.is_empty()) else {
        return Vec::new();
    };
    let kinds = targets.iter().filter_map(|target| Some((target.service?, target.kind)));
    let is_meant = |service: &Service, kind: &str| {
        let full = format!("{kind}.{}", service.group);
        [kind, full.as_str()]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
    };
    let mut found: Vec<_> = kinds
        .filter(|(service, kind)| is_meant(service, kind))
        .map(|(service, kind)| (service, kind, name))
        .collect();
    found.sort_by_key(|(service, kind, _)| (service.group, *kind));
    found.dedup_by_key(|(service, kind, _)| (service.group, *kind));
    found
}

fn key<'a>(target: &Target<'a>) -> ObjectKey<'a> {
    ObjectKey {
        resource: target.kind.into(),
        namespace: target.namespace,
        name: target.name,
    }
}

fn failed(refusal: Refusal, holder: &Kind, to: &NamedObject) -> CommandError {
    let is_written = refusal.message.ends_with(&format!(" names {to} now"));
    match refusal.outcome() {
        Outcome::BadRequest => CommandError::usage(refusal),
        Outcome::Absent | Outcome::Unserved => CommandError::failure(refusal)
            .hint("another namespace? name it with -n, that of the target with --to-namespace"),
        Outcome::AlreadyExists | Outcome::Conflict if !is_written => {
            CommandError::failure(refusal).hint("nothing was moved; move it once nothing of it is being deleted")
        }
        Outcome::Invalid => CommandError::failure(refusal).hint(format_args!(
            "the cluster does not take the change; `kubectl explain {}` shows what the field may be",
            holder.plural
        )),
        Outcome::Unavailable if is_of_service(&refusal, holder) => CommandError::failure(refusal)
            .hint("--service NAME=URL names the address of another service; repeat the command once it answers"),
        _ => CommandError::failure(refusal),
    }
}

/// Whether it is another service that does not answer, and neither the cluster nor the database.
fn is_of_service(refusal: &Refusal, holder: &Kind) -> bool {
    let group = refusal.details.as_ref().map(|details| details.group.as_str());
    let targets = holder.references.iter().flat_map(|reference| reference.targets);
    let mut services = targets.filter_map(|target| target.service);
    services.any(|service| group == Some(service.group))
}

fn sentence(moved: &Moved, dry_run: bool) -> String {
    let Moved {
        holder, path, from, to, ..
    } = moved;
    let names = if dry_run { "would name" } else { "names" };
    match from {
        _ if moved.unchanged => format!("{holder}: {path} names {to} already\n"),
        Some(from) => format!("{holder}: {path} {names} {to} instead of {from}\n"),
        None => format!("{holder}: {path} {names} {to}\n"),
    }
}

#[cfg(test)]
mod tests {
    use kindex_api::operations::{Details, Reason, State};
    use kindex_cluster::ClusterOptions;
    use kindex_embedded::Embedded;
    use kindex_generated::kinds::{model, project};
    use kindex_kube_api::status::Status;
    use kindex_model::reference::{OnDelete, Reference, Target};
    use kindex_store::PoolConfig;
    use kube::Client;
    use kube::api::{Api, DynamicObject, PostParams};
    use serde_json::{Value, json};

    use super::*;
    use crate::client::api_resource;
    use crate::fixture::{GROUP, IN_NETWORKS, NETWORK, typed};
    use crate::install::{ClusterOwner, crds};
    use crate::sql_only;

    const PROJECT: Reference = Reference {
        name: "project",
        targets: &[Target {
            service: None,
            group: "michelangelo.api",
            kind: "Project",
        }],
        path: &["spec", "source"],
        on_delete: OnDelete::Orphan,
        ..NETWORK
    };
    const MODEL: Reference = Reference {
        name: "model",
        targets: &[Target {
            service: None,
            group: "michelangelo.api",
            kind: "Model",
        }],
        path: &["spec", "description"],
        ..PROJECT
    };

    static MODELS: Kind = Kind {
        references: &[PROJECT],
        ..model::KIND
    };
    /// No cluster has them.
    static PROJECTS: Kind = Kind {
        cluster: false,
        events: false,
        references: &[MODEL],
        ..project::KIND
    };
    static KINDS: [&Kind; 2] = [&MODELS, &PROJECTS];

    fn registry() -> Registry {
        Registry {
            kinds: &KINDS,
            ..kindex_generated::registry()
        }
    }

    fn objects(client: &Client, kind: &Kind) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), "default", &api_resource(kind))
    }

    async fn create(client: &Client, kind: &Kind, name: &str, spec: Value) {
        let object = DynamicObject::new(name, &api_resource(kind)).data(json!({"spec": spec}));
        let created = objects(client, kind).create(&PostParams::default(), &object).await;
        created.expect("created");
    }

    async fn spec(client: &Client, kind: &Kind, name: &str) -> Value {
        let found = objects(client, kind).get(name).await.expect("it is there");
        found.data["spec"].clone()
    }

    #[test]
    fn a_document_says_whether_it_was_a_dry_run() {
        let moved = Moved {
            holder: "model/default/m".to_owned(),
            state: State::Live,
            reference: "project".to_owned(),
            path: "spec.source".to_owned(),
            from: None,
            to: "project/default/b".to_owned(),
            unchanged: false,
        };
        for dry_run in [true, false] {
            let text = output::document(&Document::of(&moved, dry_run), Form::Json).expect("plain data");
            let value: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(
                (&value["dryRun"], &value["to"]),
                (&json!(dry_run), &json!("project/default/b"))
            );
        }
    }

    fn other() -> NamedObject {
        NamedObject::of(&ObjectKey {
            resource: (&MODELS).into(),
            namespace: "default",
            name: "b",
        })
    }

    /// As if the field still named what it named before.
    #[test]
    fn a_move_is_not_called_undone_where_the_field_was_written() {
        for (done, is_undone) in [
            ("others change it all the time", true),
            (&*format!("changed; spec.source names {} now", other()), false),
        ] {
            let status = Status::failure(Reason::Conflict, done);
            let said = failed(status.into(), &MODELS, &other()).to_string();
            assert_eq!(said.contains("nothing was moved"), is_undone, "{said}");
        }
    }

    /// As if another address helped where the cluster or the database is silent.
    #[test]
    fn the_flag_with_the_address_of_a_service_is_named_for_the_silence_of_a_service_alone() {
        for (group, is_named) in [(Some(GROUP), true), (None, false), (Some("other.example.com"), false)] {
            let mut status = Status::failure(Reason::ServiceUnavailable, "no answer");
            status.details = group.map(|group| {
                Box::new(Details {
                    group: group.to_owned(),
                    ..Details::default()
                })
            });
            let said = failed(status.into(), &IN_NETWORKS, &other()).to_string();
            assert!(said.starts_with("error: ") && said.contains("no answer"), "{said}");
            assert_eq!(said.contains("hint: --service NAME=URL"), is_named, "{group:?}: {said}");
        }
    }

    #[tokio::test]
    async fn what_is_no_namespace_is_refused_with_its_flag_before_anything_is_opened() {
        let registry = registry();
        for flag in ["--namespace", "--to-namespace"] {
            let args: MoveArgs = typed(&["model.michelangelo.api/m", "--to", "project/a", flag, ""]);
            let refused = run(&registry, &args).await.expect_err("refused");
            let why = format!("error: {flag}: the namespace is empty");
            assert!(refused.to_string().starts_with(&why), "{refused}");
        }
    }

    /// A SQL-only kind is served by no cluster, and the command needs no API server.
    #[tokio::test(flavor = "multi_thread")]
    async fn holders_and_targets_that_no_cluster_has_are_moved_as_all_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let (embedded, _) = Embedded::serve(ClusterOptions::default(), std::future::pending()).await;
        let kubeconfig = directory.path().join("kubeconfig");
        std::fs::write(&kubeconfig, embedded.kubeconfig()).expect("writable");
        let kubeconfig = kubeconfig.display().to_string();
        let database = format!("sqlite:{}", directory.path().join("kindex.db").display());
        let registry = registry();
        let cluster = Client::try_from(embedded.config()).expect("a client");
        crds(&cluster, &registry, ClusterOwner::Kindex)
            .await
            .expect("models are served");
        let store = kindex_store::connect(&database, registry, &PoolConfig::default()).expect("a database");
        store.prepare().await.expect("it is empty");
        let own = sql_only::client(&registry, store.clone()).await.expect("an API");
        let own = own.expect("it has projects");
        create(&cluster, &MODELS, "m", json!({"source": "a"})).await;
        for name in ["a", "b"] {
            create(&own, &PROJECTS, name, json!({"description": "m"})).await;
        }
        create(&cluster, &MODELS, "n", json!({})).await;

        let moves = async |object: &str, to: &str| {
            let at = ["--kubeconfig", &kubeconfig, "--database", &database];
            let words = [&[object, "--to", to][..], &at].concat();
            run(&registry, &typed::<MoveArgs>(&words)).await
        };
        moves("model/m", "project/b")
            .await
            .expect("a target of a SQL-only kind");
        assert_eq!(spec(&cluster, &MODELS, "m").await["source"], "b");
        moves("project/a", "model/n")
            .await
            .expect("a holder of a SQL-only kind");
        assert_eq!(spec(&own, &PROJECTS, "a").await["description"], "n");
        let refused = moves("model/m", "project/c").await.expect_err("there is none");
        assert!(refused.to_string().contains("not found"), "{refused}");
        assert_eq!(spec(&cluster, &MODELS, "m").await["source"], "b");
    }
}
