//! `kindex release`: takes the finalizers of Kindex off all objects, so that no deletion waits for a service that was
//! switched off.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_kube_client::{ClusterError, RefusedBy};
use kindex_maintenance::release::{Options, RefusedAlike, ReleaseSides, Released, StoppedServices, release};
use kindex_maintenance::sides::{FinalizerOwner, RepairError};
use kindex_model::kind::{Kind, Registry};
use kindex_store::{IngesterStorage, StoreError};

use crate::cli::{Form, ReleaseArgs};
use crate::database::Store;
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::progress::Bar;
use crate::unserved::Unserved;
use crate::{one_cluster, say, sides, sql_only};

/// What the command calls itself.
const AGENT: &str = concat!("kindex-release/", env!("CARGO_PKG_VERSION"));
/// From so many objects on, a person is asked first.
const MUCH: u64 = 100;
/// How long the cluster may take to answer. An API server that restarts is often back by then, and with `--force`
/// nothing else keeps the command from its work. Nobody waits for longer to learn that the address is wrong.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Releases kind by kind and prints what was done.
pub async fn run(registry: &Registry, args: &ReleaseArgs) -> CommandResult {
    let kinds = kinds(registry, args)?;
    if args.objects_per_second.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
        return Err(CommandError::usage("--objects-per-second must be above 0"));
    }
    let settle = Duration::try_from_secs_f64(args.settle)
        .map_err(|error| CommandError::usage(format_args!("--settle {}: {error}", args.settle)))?;
    let options = Options {
        dry_run: args.dry_run,
        objects_per_second: args.objects_per_second,
        settle,
        ..Options::default()
    };
    let store = store(registry, args).await?;
    let sides = sides(registry, args, store.clone()).await?;
    if !args.dry_run && !args.yes {
        let rehearsal = Options {
            dry_run: true,
            ..options.clone()
        };
        let rehearsed = all(&sides, &kinds, &rehearsal, &mut Unserved::default()).await?;
        let wanted: u64 = rehearsed.iter().map(|kind| kind.with_finalizer).sum();
        if is_much(wanted, args.force) {
            confirm(&question(wanted, args.force))?;
        }
    }
    let mut unserved = Unserved::default();
    let released = all(&sides, &kinds, &options, &mut unserved).await?;
    if let Some(store) = store {
        store.close().await;
    }
    unserved.report(&kinds)?;
    say::print(render(&released, args.output)?)?;
    judge(&kinds, &released)
}

/// SQL-only kinds are in the deletion graph too, and come last. Without a database, nobody serves them.
fn kinds(registry: &Registry, args: &ReleaseArgs) -> CommandResult<Vec<&'static Kind>> {
    let mut kinds = sides::kinds(registry, &args.kinds)?;
    if !args.force {
        kinds.sort_by_key(|kind| !kind.cluster);
        return Ok(kinds);
    }
    if let Some(kind) = kinds.iter().find(|kind| !kind.cluster && !args.kinds.is_empty()) {
        let error = CommandError::usage(format_args!(
            "--force uses no database, and {} is only in SQL",
            kind.name
        ));
        return Err(error.hint("release that kind in a run of its own, without --force"));
    }
    kinds.retain(|kind| kind.cluster);
    Ok(kinds)
}

/// Kind by kind. Where the cluster serves none of its own, it may be another one than was meant: then nothing is
/// released in the database either.
async fn all(
    sides: &ReleaseSides,
    kinds: &[&'static Kind],
    options: &Options,
    unserved: &mut Unserved,
) -> CommandResult<Vec<Released>> {
    let bar = Bar::new();
    let mut released: Vec<Released> = Vec::new();
    let mut stopped_services = StoppedServices::default();
    for kind in kinds {
        if !kind.cluster {
            unserved.check(kinds)?;
        }
        match release(sides, kind, &mut stopped_services, options, &bar).await {
            Err(error) if error.is_unserved() => unserved.add(kind),
            done => released.push(done.map_err(|error| stopped(&error))?),
        }
    }
    Ok(released)
}

/// Whether a person is asked first.
fn is_much(objects: u64, force: bool) -> bool {
    objects >= MUCH || force && objects > 0
}

fn question(objects: u64, force: bool) -> String {
    let objects = match objects {
        1 => "1 object".to_owned(),
        objects => format!("{objects} objects"),
    };
    match force {
        false => format!("This takes the finalizers of Kindex off {objects}."),
        true => {
            format!("This takes the finalizers of Kindex off {objects}, whether or not SQL holds their last version.")
        }
    }
}

/// Asks at a terminal; elsewhere nobody can answer, and --yes has to be said.
fn confirm(question: &str) -> CommandResult {
    let refused = |why: &str| Err(CommandError::usage(why).hint("confirm with --yes, or preview with --dry-run"));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return refused(&format!("{question} stdin is not a terminal, so nobody can confirm"));
    }
    say::prompt(format_args!("{question} Go on? [y/N] "));
    let mut answer = String::new();
    match io::stdin().read_line(&mut answer) {
        Ok(_) if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) => Ok(()),
        Ok(_) | Err(_) => refused("nothing was released"),
    }
}

/// The database, unless SQL is not to be asked.
async fn store(registry: &Registry, args: &ReleaseArgs) -> CommandResult<Option<Store>> {
    if args.force {
        return Ok(None);
    }
    let store = sides::store(registry, &args.sides.store)?;
    let unready = |error: StoreError| {
        CommandError::failure(chain(&error))
            .hint("nothing is released that SQL may lack; --force releases without a database")
    };
    store.prepare().await.map_err(unready)?;
    Ok(Some(store))
}

/// Both sides, or the cluster alone.
async fn sides(registry: &Registry, args: &ReleaseArgs, store: Option<Store>) -> CommandResult<ReleaseSides> {
    let access = sides::answering_within(sides::cluster(&args.sides).await?, ANSWER_WITHIN).await?;
    let client = access
        .client_of(AGENT)
        .map_err(|error| CommandError::usage(chain(&error)))?;
    let client = match &store {
        Some(store) => {
            one_cluster::refuse_another(&client, store.as_ref(), &"that the flags name").await?;
            sql_only::with_cluster(client, registry, store.clone()).await?
        }
        None => client,
    };
    Ok(ReleaseSides {
        platform: registry.platform,
        cluster: Arc::new(KubeCluster::from(client)),
        storage: store.map(|store| store as Arc<dyn IngesterStorage>),
    })
}

fn stopped(error: &RepairError) -> CommandError {
    let failure = CommandError::failure(chain(error));
    match error {
        RepairError::Running { service, .. } => failure.hint(match service {
            FinalizerOwner::Ingester => {
                "the object has its finalizers again. Switch the ingester off first (metadataStorage.enableMetadataStorage: \
                 false, or stop the process), or say --force"
            }
            FinalizerOwner::Deletion => {
                "the object has its finalizers again. Stop `kindex deletion` first, or start `kindex up` with --deletion=false, \
                 or say --force"
            }
        }),
        RepairError::Cluster {
            source: ClusterError::Refused(why),
            ..
        } if RefusedBy::of(why) == Some(RefusedBy::Authorization) => failure.hint(
            "the account needs the rights `list`, `get` and `patch` on the kind: add what it lacks to its role, or \
             name another account with --kubeconfig. What was released stays released",
        ),
        RepairError::Cluster { .. } | RepairError::Store(_) => {
            failure.hint("run the same command again: what was released stays released")
        }
    }
}

fn render(released: &[Released], form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&released, form);
    }
    let rows = released.iter().map(|kind| {
        let numbers = [
            kind.objects,
            kind.with_finalizer,
            kind.released,
            kind.gone,
            kind.elsewhere,
            kind.stored,
            kind.unstored,
            kind.contended,
            kind.refused,
            kind.untried,
            kind.in_use,
        ];
        std::iter::once(kind.kind.to_owned())
            .chain(numbers.map(|number| number.to_string()))
            .collect()
    });
    let heads = [
        "kind",
        "objects",
        "guarded",
        "released",
        "gone",
        "elsewhere",
        "stored",
        "unstored",
        "contended",
        "refused",
        "untried",
        "in use",
    ];
    Ok(table(&heads, rows))
}

/// The error is about what no other line says. Without that, it is about the last kind of which objects were not tried.
fn judge(kinds: &[&Kind], released: &[Released]) -> CommandResult {
    let refused_alike = released.iter().filter_map(|of_kind| {
        let kind = kinds.iter().find(|kind| kind.name == of_kind.kind)?;
        Some(refused(kind, of_kind, of_kind.refused_alike.as_ref()?))
    });
    let mut refused_alike: Vec<CommandError> = refused_alike.collect();
    let error = left(released).or_else(|| refused_alike.pop());
    for refused in refused_alike {
        say::note(refused.as_note());
    }
    error.map_or(Ok(()), Err)
}

/// The first objects of a kind were refused, so that others were not tried.
fn refused(kind: &Kind, released: &Released, alike: &RefusedAlike) -> CommandError {
    let RefusedAlike {
        objects,
        object,
        message,
        by,
    } = alike;
    let (name, resource, untried) = (kind.name, kind.crd_name(), released.untried);
    let error = CommandError::failure(format_args!(
        "{name}: the cluster refuses the release of the first {objects} objects, beginning with {object}, and \
         {untried} others were not tried: {message}"
    ));
    error.hint(match by {
        RefusedBy::Authorization => format!(
            "the account lacks the right `patch` on {resource}: add it to its role, then run the same command again, \
             or name another account with --kubeconfig"
        ),
        RefusedBy::Admission => format!(
            "an admission webhook or policy denies the changes of {resource}: let it pass changes of finalizers, or \
             switch it off meanwhile, then run the same command again"
        ),
    })
}

/// What keeps its finalizers for another reason than that the cluster refused the first objects of a kind.
fn left(released: &[Released]) -> Option<CommandError> {
    let unstored: u64 = released.iter().map(|kind| kind.unstored).sum();
    let contended: u64 = released.iter().map(|kind| kind.contended).sum();
    let others = released.iter().filter(|kind| kind.refused_alike.is_none());
    let refused: u64 = others.map(|kind| kind.refused).sum();
    let in_use: u64 = released.iter().map(|kind| kind.in_use).sum();
    if unstored + contended + refused + in_use == 0 {
        return None;
    }
    let message = format!(
        "the finalizers of Kindex stay on {unstored} that the database refuses, on {contended} that keep changing, on \
         {refused} whose release the cluster refuses, and on {in_use} that others use or that are being deleted"
    );
    Some(CommandError::failure(message).hint(
        "`kindex quarantine list` says why the database refuses objects; --force releases those all the same; the log \
         says why the cluster refuses a release, such as by a webhook; release the references of those in use; run the \
         command again for the others",
    ))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::sync::Mutex;

    use axum::http::{Request, Response};
    use clap::Parser;
    use kindex_generated::kinds::{model, project};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// No cluster has them.
    static PROJECTS: Kind = Kind {
        cluster: false,
        ..project::KIND
    };
    static KINDS: [&Kind; 2] = [&PROJECTS, &model::KIND];

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        release: ReleaseArgs,
    }

    /// As if kinds went in the order of the registry, or a kind that no cluster has showed that it is the right one.
    #[tokio::test]
    async fn nothing_is_released_in_the_database_beside_a_cluster_that_serves_no_kind() {
        let registry = Registry {
            kinds: &KINDS,
            ..Registry::EMPTY
        };
        let kinds = kinds(&registry, &Line::parse_from(["kindex"]).release).expect("all kinds");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let answer = move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let groups = json!({"kind": "APIGroupList", "groups": [{"name": "apiextensions.k8s.io", "versions": []}]});
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "the server could not find the requested resource"});
            let (code, answer) = if path == "/apis" {
                (200_u16, groups)
            } else {
                (404, status)
            };
            seen.lock().expect("no panic").push(path);
            let response = Response::builder().status(code);
            ready(Ok::<_, Infallible>(
                response
                    .body(Body::from(answer.to_string().into_bytes()))
                    .expect("an answer"),
            ))
        };
        let client = Client::new(tower::service_fn(answer), "default");
        let sides = ReleaseSides {
            platform: registry.platform,
            cluster: Arc::new(KubeCluster::from(client)),
            storage: None,
        };
        let released = all(&sides, &kinds, &Options::default(), &mut Unserved::default()).await;
        let error = released.expect_err("it is another cluster").to_string();
        assert!(
            error.contains("the cluster serves no models.michelangelo.api"),
            "{error}"
        );
        assert_eq!(
            *asked.lock().expect("no panic"),
            ["/apis/michelangelo.api/v2/models", "/apis"]
        );
    }

    /// As if one kind of which the first objects are refused ended the command before its table.
    #[test]
    fn a_kind_that_is_refused_from_its_beginning_is_the_error_unless_something_else_is_left() {
        let kinds: [&Kind; 2] = [&project::KIND, &model::KIND];
        let refused_alike = RefusedAlike {
            objects: 20,
            object: "prod/a".to_owned(),
            message: "no".to_owned(),
            by: RefusedBy::Authorization,
        };
        let of_models = |in_use| {
            let models = Released {
                kind: model::KIND.name,
                refused: 20,
                untried: 7,
                in_use,
                refused_alike: Some(refused_alike.clone()),
                ..Released::default()
            };
            let projects = Released {
                kind: project::KIND.name,
                released: 3,
                ..Released::default()
            };
            judge(&kinds, &[projects, models])
                .expect_err("some are left")
                .to_string()
        };
        let refused = of_models(0);
        let first =
            "Model: the cluster refuses the release of the first 20 objects, beginning with prod/a, and 7 others";
        assert!(refused.contains(first), "{refused}");
        assert!(
            refused.contains("the right `patch` on models.michelangelo.api"),
            "{refused}"
        );
        let in_use = of_models(1);
        assert!(
            in_use.contains("on 0 whose release the cluster refuses, and on 1 that"),
            "{in_use}"
        );
        judge(&kinds, &[Released::default()]).expect("nothing is left");
    }

    #[test]
    fn much_is_asked_about_and_so_is_force_wherever_it_does_anything() {
        assert!(!is_much(99, false) && is_much(100, false));
        assert!(!is_much(0, true) && is_much(1, true));
        assert_eq!(question(1, false), "This takes the finalizers of Kindex off 1 object.");
        assert!(question(2, true).contains("2 objects, whether or not SQL holds"));
    }
}
