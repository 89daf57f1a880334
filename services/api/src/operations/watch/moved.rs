//! The changes of objects that live in SQL alone as events: what each watch is told depends on what its selectors
//! found before and find now.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt, stream};
use kindex_cluster::selector::{FieldSelector, LabelSelector, SelectorError};
use kindex_runtime::kind::Kind;
use kindex_runtime::object::ResourceVersion;
use kindex_runtime::store::{Change, Life, MetadataStorage, Position, Stored};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::cluster::{Call, Upstream};
use super::super::list::Page;
use super::super::{Caller, ListOptions, Place, Refusal, collection, stored};
use super::Event;

/// Changes that are read together, at most.
const CHUNK: u32 = 100;
/// How many are looked for at once.
const LOOKUPS: usize = 8;

/// Some changes of a kind, in order.
pub(super) struct Chunk {
    /// Nothing in here is older than this.
    pub(super) began: Instant,
    pub(super) after: Position,
    /// The last of them.
    pub(super) upto: Position,
    /// Those that are to be told.
    pub(super) moves: Vec<Move>,
    /// The cluster tells nothing of these objects after this version.
    pub(super) version: ResourceVersion,
}

/// An object that lives in SQL alone, or was deleted there.
pub(super) struct Move {
    pub(super) row: Stored,
    /// Its labels before the first change that is told with it.
    before: BTreeMap<String, String>,
}

/// Reads what comes after a position. Nothing is told of objects whose name belongs to another one by now: the
/// cluster's events say what became of it.
pub(super) async fn read(
    store: &dyn MetadataStorage,
    upstream: &Upstream,
    kind: &'static Kind,
    after: Position,
) -> io::Result<Chunk> {
    let began = Instant::now();
    let changes = store.changes(kind, after, CHUNK).await.map_err(io::Error::other)?;
    let changes = changes.ok_or_else(|| io::Error::other("it fell behind what is remembered of changes in SQL"))?;
    let upto = changes.last().map(|change| change.position);
    let upto = upto.ok_or_else(|| io::Error::other("the changes of the database are not those of before"))?;
    let mut known = HashSet::new();
    let first = changes.into_iter().filter(|change| known.insert(change.uid.clone()));
    let first: Vec<Change> = first.collect();
    let moves: Vec<Option<Move>> = stream::iter(first)
        .map(|change| moved(store, upstream, kind, change))
        .buffered(LOOKUPS)
        .try_collect()
        .await?;
    let moves: Vec<Move> = moves.into_iter().flatten().collect();
    let version = match moves.is_empty() {
        true => ResourceVersion::default(),
        false => version(upstream, &Caller::default().on_behalf(), kind)
            .await
            .map_err(io::Error::other)?,
    };
    Ok(Chunk {
        began,
        after,
        upto,
        moves,
        version,
    })
}

/// The version that the cluster has now.
pub(super) async fn version(
    upstream: &Upstream,
    caller: &Caller,
    kind: &'static Kind,
) -> Result<ResourceVersion, Refusal> {
    let call = Call::get(collection(kind, None), vec![("limit", "1".to_owned())]);
    let page = Page::read(&upstream.call(caller, call).await?)?;
    let version = page.metadata.resource_version.parse();
    version
        .map(ResourceVersion)
        .map_err(|error| Refusal::unreachable(&error))
}

async fn moved(
    store: &dyn MetadataStorage,
    upstream: &Upstream,
    kind: &'static Kind,
    change: Change,
) -> io::Result<Option<Move>> {
    let row = store.get_by_id(kind, &change.uid).await.map_err(io::Error::other)?;
    let Some(row) = row.filter(|row| row.life != Life::Live) else {
        return Ok(None);
    };
    let metadata = &row.object.metadata;
    let place = Place {
        kind,
        namespace: &metadata.namespace,
        name: &metadata.name,
    };
    let call = Call::get(place.path(), Vec::new());
    match upstream.call(&Caller::default().on_behalf(), call).await {
        Ok(_) => return Ok(None),
        Err(refusal) if refusal.is_of_absent_object() => {}
        Err(refusal) => return Err(io::Error::other(refusal)),
    }
    // Asked after the cluster: what left it before that is here.
    let owner = store
        .get_by_name(kind, place.namespace, place.name)
        .await
        .map_err(io::Error::other)?;
    if owner.is_some_and(|owner| owner.object.metadata.uid != metadata.uid) {
        return Ok(None);
    }
    let before = change.labels.unwrap_or_else(|| metadata.labels.clone());
    Ok(Some(Move { row, before }))
}

/// What one watch wants to be told of.
pub(super) struct Filter {
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    pub(super) fn of(which: &ListOptions) -> Result<Self, SelectorError> {
        Ok(Self {
            namespace: which.namespace.clone(),
            labels: LabelSelector::parse(&which.labels)?,
            fields: FieldSelector::parse(&which.fields)?,
        })
    }

    /// The event by which the watch learns of a change; none where it saw nothing of the object, and sees nothing.
    pub(super) fn event(&self, moved: &Move) -> io::Result<Option<Event>> {
        let metadata = &moved.row.object.metadata;
        if self
            .namespace
            .as_ref()
            .is_some_and(|wanted| *wanted != metadata.namespace)
        {
            return Ok(None);
        }
        let object: Value = serde_json::from_str(moved.row.object.text())?;
        // An object keeps the fields that a selector may name.
        let is_named = self.fields.matches(|field| text_at(&object, field));
        let was_seen = is_named && self.labels.matches(&json!(moved.before));
        let is_seen = is_named && moved.row.life == Life::Evicted && self.labels.matches(&json!(metadata.labels));
        let r#type = match (was_seen, is_seen) {
            (false, false) => return Ok(None),
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        Ok(Some(Event {
            r#type: r#type.to_owned(),
            object: RawValue::from_string(stored::shown(&moved.row))?,
        }))
    }
}

/// The text of a field such as `metadata.name`; empty where there is none.
fn text_at(object: &Value, field: &str) -> String {
    let found = field.split('.').try_fold(object, |object, name| object.get(name));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_))) => other.to_string(),
        Some(_) | None => String::new(),
    }
}
