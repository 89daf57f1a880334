//! A database has the objects of one cluster. A program that writes there by what its cluster says compares the two: in
//! another cluster, every live row would count as one whose object is gone.
//!
//! A database is given its cluster by the first program that lists it. A start is refused where both sides answer and
//! differ. Either side may have been away then, or become another one: an ingester and a backfill ask again at every
//! list, other services from time to time. A cluster that was restored from a backup of its own is the same.

mod checked_cluster;

use std::fmt::Display;
use std::time::Duration;

use clap::Args;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kindex_kube_client::Identity;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_maintenance::retries::{RetryBudget, with_retries};
use kindex_model::kind::Registry;
use kindex_model::object::Uid;
use kindex_store::{MetadataStorage, StoreError};
use kube::Client;
use tokio::time::{sleep, timeout};

use crate::config::MetadataStorageChoice;
use crate::database::{self, Store};
use crate::error::{CommandError, CommandResult, chain};

pub use checked_cluster::CheckedCluster;

/// How long each side may take; a program starts without an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How often a program that runs asks again.
const COMPARE_EVERY: Duration = Duration::from_secs(15);

/// Whose objects the database shall have.
#[derive(Clone, Debug, Args)]
pub struct FollowArg {
    /// Let a database that has the objects of another cluster follow this one from now on, by the uid of the namespace
    /// kube-system of this one. Rows whose objects it does not have are closed.
    #[arg(long, value_name = "UID")]
    pub follow_cluster: Option<String>,
}

/// What a program does in its cluster with its database.
#[derive(Debug, PartialEq, Eq)]
enum Verdict<'a> {
    /// It is the cluster of the database.
    Same,
    /// The database has no cluster yet, and gets this one.
    First(&'a Uid),
    /// Nobody says which cluster this is, and nothing speaks against it.
    Unnamed,
    /// It has another one, or one that this one is not known to be.
    Another(Another<'a>),
}

/// Two that do not belong together.
#[derive(Debug, PartialEq, Eq)]
struct Another<'a> {
    /// The cluster of the database.
    recorded: &'a Uid,
    /// This cluster; `None` where it has no namespace `kube-system`.
    cluster: Option<&'a Uid>,
}

/// Compares the cluster of a database with that of a program.
fn judge<'a>(recorded: Option<&'a Uid>, cluster: &'a Identity) -> Verdict<'a> {
    match (recorded, cluster) {
        // An account without the right to know: its role is older than the program.
        (_, Identity::Hidden) | (None, Identity::Absent) => Verdict::Unnamed,
        (None, Identity::Known(cluster)) => Verdict::First(cluster),
        (Some(recorded), Identity::Known(cluster)) if recorded == cluster => Verdict::Same,
        (Some(recorded), Identity::Known(cluster)) => Verdict::Another(Another {
            recorded,
            cluster: Some(cluster),
        }),
        // One that was just made, behind the address of the former one.
        (Some(recorded), Identity::Absent) => Verdict::Another(Another {
            recorded,
            cluster: None,
        }),
    }
}

impl<'a> Another<'a> {
    /// This cluster, if the database follows it from now on: somebody names it by its uid.
    fn followed(&self, named: &str) -> Option<&'a Uid> {
        self.cluster.filter(|cluster| *cluster.0 == *named)
    }

    /// What is wrong.
    fn message(&self, database: &impl Display) -> String {
        let recorded = self.recorded;
        let here = match self.cluster {
            Some(cluster) => format!("this one is {cluster}"),
            None => "this one has no such namespace yet".to_owned(),
        };
        format!(
            "the database {database} has the objects of another cluster: it is {recorded} by the uid of its namespace \
             kube-system, and {here}. Nothing is written"
        )
    }

    /// What to do.
    fn hint(&self) -> String {
        let follow = match self.cluster {
            Some(cluster) => format!(
                "If that cluster is gone, as after its data directory or cluster.db was deleted, and the database \
                 shall follow this one from now on, start `kindex up` or `kindex ingester` with \
                 --follow-cluster {cluster}: rows whose objects this cluster does not have are closed then"
            ),
            None => "A cluster that was just made gets one in a moment".to_owned(),
        };
        format!(
            "name the cluster of this database with --kubeconfig or --data-dir, or a database of this cluster with \
             --database. {follow}"
        )
    }

    fn refusal(&self, database: &impl Display) -> CommandError {
        CommandError::failure(self.message(database)).hint(self.hint())
    }
}

/// Says that nothing is compared, and why.
fn unnamed(identity: &Identity) {
    let to_do = match identity {
        Identity::Hidden => "The account needs the right to get the namespace kube-system",
        Identity::Absent | Identity::Known(_) => "It has no namespace kube-system",
    };
    tracing::warn!(
        "The cluster does not say which one it is: nothing prevents that rows of another cluster are closed. {to_do}"
    );
}

/// Refuses an open database that has the objects of another cluster. Writes nothing.
///
/// # Errors
/// They differ, with what to do. A side that does not answer is no reason.
pub(crate) async fn refuse_another(
    client: &Client,
    store: &dyn MetadataStorage,
    database: &impl Display,
) -> CommandResult {
    let cluster = KubeCluster::from(client.clone());
    let (recorded, identity) = tokio::join!(
        timeout(ANSWER_WITHIN, store.cluster()),
        timeout(ANSWER_WITHIN, cluster.identity()),
    );
    // A database that is down or empty, and a cluster that is away, are the affair of those who wait for them.
    match (recorded, identity) {
        (Ok(Ok(recorded)), Ok(Ok(identity))) => compare(recorded.as_ref(), &identity, database),
        _ => Ok(()),
    }
}

/// The same for work that waits for both sides: it must not begin uncompared because one was away.
///
/// # Errors
/// Also a side that does not answer within the retry budget.
pub(crate) async fn refuse_another_in_time(
    client: &Client,
    store: &dyn MetadataStorage,
    database: &impl Display,
) -> CommandResult {
    let cluster = KubeCluster::from(client.clone());
    let budget = RetryBudget::default();
    let recorded = match with_retries(budget, || store.cluster()).await {
        Ok(recorded) => recorded,
        // Whoever needs the tables says which are missing.
        Err(StoreError::Schema(_)) => return Ok(()),
        Err(error) => return Err(database::unanswered(&error)),
    };
    let identity = with_retries(budget, || cluster.identity()).await;
    let identity = identity.map_err(|error| CommandError::failure(chain(&error)).hint("does the cluster run?"))?;
    compare(recorded.as_ref(), &identity, database)
}

fn compare(recorded: Option<&Uid>, identity: &Identity, database: &impl Display) -> CommandResult {
    match judge(recorded, identity) {
        // Whatever is in front of a cluster that is away may answer so.
        Verdict::Another(Another { cluster: None, .. }) | Verdict::Same | Verdict::First(_) => {}
        Verdict::Another(another) => return Err(another.refusal(database)),
        Verdict::Unnamed if recorded.is_some() => unnamed(identity),
        Verdict::Unnamed => {}
    }
    Ok(())
}

/// The same for a service, at its start and from then on. Gives what ends once the two differ: a side may be away now,
/// or become another one.
pub async fn watch_for_other_cluster(
    client: Client,
    store: Store,
    database: String,
) -> CommandResult<BoxFuture<'static, CommandError>> {
    refuse_another(&client, store.as_ref(), &database).await?;
    let differ = async move {
        loop {
            sleep(COMPARE_EVERY).await;
            if let Err(error) = refuse_another(&client, store.as_ref(), &database).await {
                return error;
            }
        }
    };
    Ok(differ.boxed())
}

/// The same of the database of a configuration, which need not be there yet. It follows this cluster from now on if
/// `follow` is its uid.
///
/// # Errors
/// Both sides answer and differ, or the address cannot be used; with `follow` also a side that does not answer.
pub async fn refuse_configured(
    registry: &Registry,
    client: &Client,
    storage: &MetadataStorageChoice,
    follow: Option<&str>,
) -> CommandResult {
    let MetadataStorageChoice::On { address, pool } = storage else {
        return Ok(());
    };
    if address.file().is_some_and(|path| !path.exists()) {
        return Ok(());
    }
    let store = kindex_store::open(address, *registry, pool).map_err(|error| CommandError::usage(chain(&error)))?;
    let done = match follow {
        Some(named) => hand_over(client, store.as_ref(), address, named).await,
        None => refuse_another(client, store.as_ref(), address).await,
    };
    store.close().await;
    done
}

/// Lets a database follow this cluster, whose uid somebody names, if it has another one.
async fn hand_over(
    client: &Client,
    store: &dyn MetadataStorage,
    database: &impl Display,
    named: &str,
) -> CommandResult {
    let identity = KubeCluster::from(client.clone()).identity().await;
    let identity = identity.map_err(|error| {
        let error = chain(&error);
        CommandError::failure(format_args!(
            "--follow-cluster: the cluster does not say which one it is: {error}"
        ))
        .hint("does it run, and is it the one of --kubeconfig?")
    })?;
    let recorded = match store.cluster().await {
        Ok(recorded) => recorded,
        // Without tables, it has the objects of none.
        Err(StoreError::Schema(_)) => return Ok(()),
        Err(error) => return Err(database::unanswered(&error)),
    };
    let Some(cluster) = followed(judge(recorded.as_ref(), &identity), named, database)? else {
        return Ok(());
    };
    let done = store.hand_over(cluster, Timestamp::now()).await;
    done.map_err(|error| database::unanswered(&error))?;
    let former = recorded.as_ref().map(ToString::to_string);
    tracing::warn!(
        %database,
        former,
        %cluster,
        "The database follows this cluster from now on, as --follow-cluster demands"
    );
    Ok(())
}

/// The cluster that a database follows from now on; `None` where it does so already.
///
/// # Errors
/// Somebody names another cluster than this one, or this one does not say which it is.
fn followed<'a>(verdict: Verdict<'a>, named: &str, database: &impl Display) -> CommandResult<Option<&'a Uid>> {
    match verdict {
        Verdict::Same => Ok(None),
        // Nobody knows whose versions its checkpoints are.
        Verdict::First(cluster) if *cluster.0 == *named => Ok(Some(cluster)),
        Verdict::First(cluster) => {
            let wrong = format!("--follow-cluster {named}: this cluster is {cluster}");
            Err(CommandError::usage(wrong).hint("name the cluster of the objects by the uid of its kube-system"))
        }
        Verdict::Unnamed => {
            let unknown = CommandError::failure("--follow-cluster: the cluster does not say which one it is");
            Err(unknown.hint("the account needs the right to get the namespace kube-system"))
        }
        Verdict::Another(another) => match another.followed(named) {
            Some(cluster) => Ok(Some(cluster)),
            None => Err(another.refusal(database)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(uid: &str) -> Identity {
        Identity::Known(Uid::from(uid))
    }

    #[test]
    fn a_database_is_of_its_first_cluster_and_of_no_other() {
        let (a, b) = (Uid::from("a"), Uid::from("b"));
        assert_eq!(judge(None, &known("a")), Verdict::First(&a));
        assert_eq!(judge(Some(&a), &known("a")), Verdict::Same);
        let another = Verdict::Another(Another {
            recorded: &a,
            cluster: Some(&b),
        });
        assert_eq!(judge(Some(&a), &known("b")), another);
    }

    /// As if a flag that is left over from an earlier move let any cluster in.
    #[test]
    fn a_database_follows_the_cluster_that_somebody_names_and_no_other() {
        let (a, b) = (Uid::from("a"), Uid::from("b"));
        let followed = |cluster, named| Another { recorded: &a, cluster }.followed(named);
        assert_eq!(followed(Some(&b), "b"), Some(&b));
        for (cluster, named) in [
            (Some(&b), "a"),
            (Some(&b), "c"),
            (Some(&b), ""),
            (None, "a"),
            (None, ""),
        ] {
            assert_eq!(followed(cluster, named), None, "{cluster:?} {named:?}");
        }
    }

    /// As if the checkpoints of a former cluster were taken for those of this one, where none was recorded.
    #[test]
    fn a_database_without_a_cluster_follows_the_one_that_is_named() {
        let (a, b) = (Uid::from("a"), Uid::from("b"));
        let follows = |verdict, named| followed(verdict, named, &"d").map_err(|error| error.to_string());
        assert_eq!(follows(Verdict::First(&a), "a"), Ok(Some(&a)));
        assert_eq!(follows(Verdict::Same, "a"), Ok(None));
        let refused = |verdict, named| follows(verdict, named).expect_err("refused");
        assert!(refused(Verdict::First(&a), "b").contains("this cluster is a"));
        assert!(refused(Verdict::Unnamed, "a").contains("does not say which one it is"));
        let another = |cluster| Verdict::Another(Another { recorded: &a, cluster });
        assert_eq!(follows(another(Some(&b)), "b"), Ok(Some(&b)));
        assert!(refused(another(Some(&b)), "a").contains("objects of another cluster"));
    }

    /// As if a load balancer that answers 404 for a cluster that is away kept every program from starting.
    #[test]
    fn a_start_is_refused_in_another_cluster_and_not_in_one_that_nobody_knows() {
        let a = Uid::from("a");
        assert!(compare(Some(&a), &known("b"), &"d").is_err());
        for (recorded, cluster) in [
            (Some(&a), known("a")),
            (None, known("a")),
            (Some(&a), Identity::Absent),
            (Some(&a), Identity::Hidden),
        ] {
            assert!(compare(recorded, &cluster, &"d").is_ok(), "{recorded:?} {cluster:?}");
        }
    }

    /// As if an empty cluster, made a moment ago behind the address of the former one, had deleted everything.
    #[test]
    fn a_cluster_without_its_namespace_is_not_that_of_a_database() {
        let a = Uid::from("a");
        let another = Verdict::Another(Another {
            recorded: &a,
            cluster: None,
        });
        assert_eq!(judge(Some(&a), &Identity::Absent), another);
        assert_eq!(judge(None, &Identity::Absent), Verdict::Unnamed);
    }

    /// As if programs whose accounts have an older role did not start any more.
    #[test]
    fn who_may_not_know_the_cluster_goes_on() {
        let a = Uid::from("a");
        for recorded in [None, Some(&a)] {
            assert_eq!(judge(recorded, &Identity::Hidden), Verdict::Unnamed);
        }
    }

    #[test]
    fn a_refusal_names_the_database_both_clusters_and_the_way_out() {
        let (a, b) = (Uid::from("uid-a"), Uid::from("uid-b"));
        let refusal = |cluster| {
            let another = Another { recorded: &a, cluster };
            another.refusal(&"sqlite:kindex.db").to_string()
        };
        let text = refusal(Some(&b));
        for part in [
            "sqlite:kindex.db",
            "is uid-a",
            "is uid-b",
            "--follow-cluster uid-b",
            "--database",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!refusal(None).contains("--follow-cluster"));
    }
}
