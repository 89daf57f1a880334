//! `kindex status`: objects in the cluster beside rows in SQL, kind by kind, and what stands
//! between the two. Counts; what rows say is compared by `verify`.

use std::time::Duration;

use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_kube_client::{ClusterError, Outcome, outcome};
use kindex_maintenance::retries::Transient as _;
use kindex_maintenance::verify::{HeldObject, HeldObjects};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::{Kind, Platform, Registry};
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_store::progress::Progress as _;
use kindex_store::{Counts, MetadataStorage, StoreError};
use kube::api::{ListParams, ObjectMeta};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::cli::{Form, StatusArgs};
use crate::database::unanswered;
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{below_table, document, table};
use crate::progress::Bar;
use crate::unserved::Unserved;
use crate::{database, say, sides};

/// Objects of a page, of which nothing but the metadata is read.
const PAGE_ROWS: u32 = 500;
/// How often the numbers are read while somebody waits.
const PERIOD: Duration = Duration::from_millis(250);

/// One kind's numbers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindStatus {
    /// The kind.
    pub kind: &'static str,
    /// What to call it.
    pub state: State,
    /// Objects in the cluster.
    pub objects: u64,
    /// Rows that say live.
    pub live: u64,
    /// Rows of objects that only SQL holds.
    pub evicted: u64,
    /// Soft-deleted rows.
    pub(crate) deleted: u64,
    /// Objects that the database refused.
    pub(crate) quarantined: u64,
    /// Live rows without an object that are held back.
    pub(crate) held_orphans: u64,
    /// Objects that others hold in the cluster while their rows say deleted or archived.
    pub departing: u64,
    /// Objects that are being deleted and that others hold.
    pub(crate) held: HeldObjects,
    /// Versions of the whole cluster that came after the checkpoint that was saved last; `None` where none
    /// is saved. Versions of other kinds count, so that it is a bound and seldom 0.
    pub(crate) lag_versions: Option<u64>,
}

/// How a kind stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As many live rows as objects, and nothing is in the way.
    Settled,
    /// The database refused objects.
    Quarantine,
    /// Objects and live rows differ in number.
    Behind,
    /// Rows without objects are too many to be closed.
    HoldsOrphans,
    /// The cluster was restored from a backup and is being listed.
    Restoring,
    /// The cluster does not know the kind: its CRD is not installed.
    Unserved,
    /// No ingester has come to the end of its first list.
    NotSynced,
}

impl State {
    fn new(checkpoint: Option<Checkpoint>, objects: u64, live: u64, quarantined: u64) -> Self {
        match checkpoint {
            None => Self::NotSynced,
            Some(Checkpoint::Restoring(_)) => Self::Restoring,
            Some(Checkpoint::Held(_)) => Self::HoldsOrphans,
            Some(Checkpoint::Settled(_)) if quarantined > 0 => Self::Quarantine,
            Some(Checkpoint::Settled(_)) if objects != live => Self::Behind,
            Some(Checkpoint::Settled(_)) => Self::Settled,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Behind => "behind",
            Self::Quarantine => "has refused objects",
            Self::HoldsOrphans => "holds orphans",
            Self::Restoring => "relisting a restored cluster",
            Self::Unserved => "waits for its CRD",
            Self::NotSynced => "not yet synced",
        }
    }

    /// What a person does about it.
    fn advice(self) -> Option<&'static str> {
        match self {
            Self::Settled => None,
            Self::Behind | Self::Restoring => Some("the ingester may be at work: --wait; else see its log and /readyz"),
            Self::Quarantine => Some("`kindex quarantine list` says why"),
            Self::HoldsOrphans => Some("/readyz of the ingester says what to do"),
            Self::Unserved => Some("its CRD is not installed in the cluster, or is not served in this version"),
            Self::NotSynced => Some("does an ingester run on this database? `kindex backfill` fills it without one"),
        }
    }
}

/// Counts and prints, once or until all is settled; what is not is a failure.
pub async fn run(registry: &Registry, args: &StatusArgs) -> CommandResult {
    let kinds = sides::cluster_kinds(registry, &args.kinds)?;
    let store = sides::store(registry, &args.sides.store)?;
    let deadline = args.wait.then(|| Instant::now() + Duration::from_secs(args.timeout));
    if args.wait {
        refuse_unusable(store.as_ref()).await?;
    }
    let access = sides::cluster(&args.sides).await?;
    let statuses = match deadline {
        Some(deadline) => {
            sides::note_silence(&access, "Waiting for it").await;
            let cluster = KubeCluster::from(access.client);
            wait(&kinds, &registry.platform, &cluster, store.as_ref(), deadline).await
        }
        None => {
            // A database that cannot be used is named first: no cluster helps then.
            if let Some(kind) = kinds.first() {
                database::answering(&store, kind).await?;
            }
            let cluster = KubeCluster::from(sides::answering(access).await?.client);
            collect(&kinds, &registry.platform, &cluster, store.as_ref()).await
        }
    };
    store.close().await;
    let statuses = statuses?;
    unserved(&kinds, &statuses).name();
    say::print(render(&statuses, args.output)?)?;
    judge(&statuses)
}

/// Before somebody waits.
///
/// # Errors
/// Waiting makes no database of what is there. Tables may be made meanwhile.
pub async fn refuse_unusable(store: &dyn MetadataStorage) -> CommandResult {
    match store.ping().await {
        Ok(()) | Err(StoreError::Schema(_)) => Ok(()),
        Err(error) if error.retry_after().is_some() => Ok(()),
        Err(error) => Err(unanswered(&error)),
    }
}

/// Those of these kinds that the cluster does not serve.
fn unserved(kinds: &[&'static Kind], statuses: &[KindStatus]) -> Unserved {
    let mut unserved = Unserved::default();
    for (kind, status) in kinds.iter().zip(statuses) {
        if status.state == State::Unserved {
            unserved.add(kind);
        }
    }
    unserved
}

/// Reads the numbers until waiting changes nothing, or until then.
async fn wait(
    kinds: &[&'static Kind],
    platform: &Platform,
    cluster: &KubeCluster,
    store: &dyn MetadataStorage,
    deadline: Instant,
) -> CommandResult<Vec<KindStatus>> {
    let bar = Bar::new();
    bar.begin("waiting", None);
    loop {
        let found = collect(kinds, platform, cluster, store).await;
        if found.as_ref().is_ok_and(|statuses| is_final(statuses)) || Instant::now() >= deadline {
            bar.end();
            return found;
        }
        bar.note(&match &found {
            Err(error) => error.to_string(),
            Ok(statuses) => waited_for(statuses),
        });
        sleep(PERIOD).await;
    }
}

fn unsettled(statuses: &[KindStatus]) -> impl Iterator<Item = &KindStatus> {
    statuses.iter().filter(|status| status.state != State::Settled)
}

/// Whether waiting changes nothing: all kinds are settled, or all that the cluster serves. Where it serves none of
/// them, it may be about to.
fn is_final(statuses: &[KindStatus]) -> bool {
    let is_settled = |status: &KindStatus| status.state == State::Settled;
    let is_served = |status: &&KindStatus| status.state != State::Unserved;
    statuses.iter().filter(is_served).all(is_settled) && (statuses.iter().any(is_settled) || statuses.is_empty())
}

/// The first of the kinds that are not settled, and how many there are.
fn waited_for(statuses: &[KindStatus]) -> String {
    let first = unsettled(statuses).next();
    let first = first.map_or_else(String::new, |first| {
        format!(": {} {}", first.kind, first.state.as_str())
    });
    format!("{} kinds are not settled{first}", unsettled(statuses).count())
}

/// What is not settled is a failure, and so is what cannot be known to be.
fn judge(statuses: &[KindStatus]) -> CommandResult {
    // Of kinds that are not served least can be done here.
    let Some(first) = unsettled(statuses).min_by_key(|status| status.state == State::Unserved) else {
        return Ok(());
    };
    let names: Vec<&str> = unsettled(statuses).map(|status| status.kind).collect();
    if names.len() < statuses.len() && unsettled(statuses).all(|status| status.state == State::Unserved) {
        let message = format!("not settled: {}; all others are settled", names.join(", "));
        let hint = "name the others with --kind, or let the CRDs of these be installed";
        return Err(CommandError::failure(message).hint(hint));
    }
    let error = CommandError::failure(format_args!(
        "{} of {} kinds are not settled",
        names.len(),
        statuses.len()
    ));
    Err(match first.state.advice() {
        Some(advice) => error.hint(format_args!("{}: {advice}", first.kind)),
        None => error,
    })
}

/// The numbers of these kinds.
pub async fn collect(
    kinds: &[&'static Kind],
    platform: &Platform,
    cluster: &KubeCluster,
    store: &dyn MetadataStorage,
) -> CommandResult<Vec<KindStatus>> {
    let mut statuses = Vec::new();
    for kind in kinds {
        statuses.push(of_kind(kind, platform, cluster, store).await?);
    }
    Ok(statuses)
}

async fn of_kind(
    kind: &'static Kind,
    platform: &Platform,
    cluster: &KubeCluster,
    store: &dyn MetadataStorage,
) -> CommandResult<KindStatus> {
    let counts = store.count(kind).await.map_err(|error| unanswered(&error))?;
    let Counts {
        live,
        archived,
        deleted,
    } = counts;
    let quarantined = store.quarantined(kind).await.map_err(|error| unanswered(&error))?;
    let quarantined = quarantined.len() as u64;
    let saved = store.checkpoint(kind).await.map_err(|error| unanswered(&error))?;
    let found = list(cluster, kind, platform, live, PAGE_ROWS).await?;
    let is_served = found.is_some();
    let Listed { objects, version, held } = found.unwrap_or_default();
    let uids: Vec<Uid> = held.iter().map(|held| Uid::from(held.uid.as_str())).collect();
    let rows = store.row_states(kind, &uids).await;
    let rows = rows.map_err(|error| unanswered(&error))?;
    let departing = rows.iter().filter(|row| row.life != Life::Live).count() as u64;
    let state = if is_served {
        State::new(saved, objects, live + departing, quarantined)
    } else {
        State::Unserved
    };
    let mut named = HeldObjects::default();
    held.into_iter().for_each(|held| named.add(held));
    Ok(KindStatus {
        kind: kind.name,
        state,
        objects,
        live,
        evicted: archived,
        deleted,
        quarantined,
        departing,
        held: named,
        held_orphans: match state {
            State::HoldsOrphans => (live + departing).saturating_sub(objects),
            State::Settled
            | State::Behind
            | State::Quarantine
            | State::Restoring
            | State::Unserved
            | State::NotSynced => 0,
        },
        lag_versions: saved.map(|saved| version.saturating_sub(saved.version().0)),
    })
}

/// What the cluster says of a kind.
#[derive(Default)]
struct Listed {
    objects: u64,
    /// Of the cluster.
    version: u64,
    /// As far as they were looked for.
    held: Vec<HeldObject>,
}

/// How many objects there are, and which of them others hold while they leave the cluster. One page tells the number by
/// its remaining item count; the other pages are read where the number of live rows is another one, for then objects
/// may be held whose rows are not live any more. `None` where the cluster does not know the kind.
async fn list(
    cluster: &KubeCluster,
    kind: &Kind,
    platform: &Platform,
    live: u64,
    page_rows: u32,
) -> CommandResult<Option<Listed>> {
    let mut params = ListParams::default().limit(page_rows);
    let mut listed = Listed::default();
    loop {
        let page = match crate::client::all(cluster.client(), kind).list_metadata(&params).await {
            Ok(page) => page,
            Err(error) => return not_listed(cluster, kind, &error).await.map(|()| None),
        };
        if params.continue_token.is_none() {
            let remaining = page.metadata.remaining_item_count.unwrap_or(0);
            listed.objects = page.items.len() as u64 + remaining.unsigned_abs();
            let version = page.metadata.resource_version.unwrap_or_default();
            listed.version = version.parse().unwrap_or_default();
        }
        let items = page.items.into_iter();
        listed
            .held
            .extend(items.filter_map(|item| held(item.metadata, platform)));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if listed.objects != live => params = params.continue_token(&token),
            Some(_) | None => return Ok(Some(listed)),
        }
    }
}

/// Whether a list has failed because the cluster does not know the kind. What stands before it may answer 404 as well.
async fn not_listed(cluster: &KubeCluster, kind: &Kind, error: &kube::Error) -> CommandResult {
    let said = match outcome(error) {
        Some(Outcome::Unserved) => match cluster.why_unlisted(kind, error).await {
            ClusterError::Unserved { .. } => return Ok(()),
            why => why.to_string(),
        },
        _ => chain(error),
    };
    Err(
        CommandError::failure(format_args!("{}: the cluster: {said}", kind.plural))
            .hint("does the cluster run, is it the one of --kubeconfig, and may you list there?"),
    )
}

fn held(metadata: ObjectMeta, platform: &Platform) -> Option<HeldObject> {
    metadata.deletion_timestamp?;
    let finalizers = HeldObject::foreign(&metadata.finalizers.unwrap_or_default(), platform);
    (!finalizers.is_empty()).then(|| HeldObject {
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
        finalizers,
    })
}

/// The numbers in the form asked for.
fn render(statuses: &[KindStatus], form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&statuses, form);
    }
    let rows = statuses.iter().map(|status| {
        let numbers = [
            status.objects,
            status.live,
            status.evicted,
            status.deleted,
            status.quarantined,
            status.held_orphans,
        ];
        let lag = status.lag_versions.map_or("-".to_owned(), |lag| lag.to_string());
        std::iter::once(status.kind.to_owned())
            .chain(numbers.map(|number| number.to_string()))
            .chain([lag, status.state.as_str().to_owned()])
            .collect()
    });
    let heads = [
        "kind",
        "objects",
        "live",
        "archived",
        "deleted",
        "quarantined",
        "held",
        "lag",
        "state",
    ];
    let held = statuses.iter().flat_map(|status| status.held.lines(status.kind));
    let held: Vec<String> = held.collect();
    Ok(table(&heads, rows) + &below_table(&held))
}

#[cfg(test)]
mod tests;
