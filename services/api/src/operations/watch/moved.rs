//! Turns changes of archived objects into events. The type of an event depends on whether the selectors of the watch
//! matched before and match now.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Instant;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use kindex_kube_api::request::parameter;
use kindex_kube_api::selector::{FieldSelector, LabelSelector, SelectorError};
use kindex_kube_api::watch::EventType;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::{Life, Stored};
use kindex_store::{Change, MetadataStorage, Objects, Position};
use serde_json::{Value, json};

use super::Event;
use crate::operations::cluster::{Call, Upstream};
use crate::operations::list::Page;
use crate::operations::objects::Head;
use crate::operations::stored::View;
use crate::operations::{Caller, ListOptions, ObjectKey, Refusal, Resource};

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
    /// The cluster tells nothing after this version of those that have left it.
    pub(super) version: ResourceVersion,
}

type Labels = BTreeMap<String, String>;

/// An archived object, or was deleted there.
pub(super) struct Move {
    pub(super) row: Stored,
    /// Its labels before each of the changes that are told with it. A watch may have seen any of them: it may begin
    /// later than what it is told.
    before: Vec<Labels>,
    /// The object that has its name by now. Who sees that one learns of it by other events.
    successor: Option<Successor>,
    /// Its version in the cluster, which it has not left: what the cluster tells of it later is newer.
    pub(super) until: Option<ResourceVersion>,
}

/// An object that has taken the name of another.
struct Successor {
    object: Object,
    /// Its fields, for watches of the version that it is in.
    value: Value,
}

impl Successor {
    fn of(text: &str) -> io::Result<Self> {
        Self::new(Object::parse_str(text).map_err(io::Error::other)?)
    }

    fn new(object: Object) -> io::Result<Self> {
        let value = serde_json::from_str(object.text())?;
        Ok(Self { object, value })
    }
}

/// Reads what comes after a position, so many changes at most.
pub(super) async fn read(
    store: &dyn MetadataStorage,
    upstream: &Upstream,
    kind: &'static Kind,
    after: Position,
    at_once: u32,
) -> io::Result<Chunk> {
    let began = Instant::now();
    let changes = store.changes(kind, after, at_once).await;
    let changes = changes.map_err(io::Error::other)?;
    let changes = changes.ok_or_else(|| io::Error::other("the changes that it needs are no longer kept in SQL"))?;
    let upto = changes.last().map(|change| change.position);
    let upto = upto.ok_or_else(|| io::Error::other("the changes of the database are not those of before"))?;
    let moves: Vec<Option<Move>> = stream::iter(of_objects(changes))
        .map(|(uid, before)| moved(store, upstream, kind, uid, before))
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

/// What was replaced, object by object, in the order in which these changed first.
fn of_objects(changes: Vec<Change>) -> Vec<(Uid, Vec<Option<Labels>>)> {
    let mut places = HashMap::new();
    let mut objects: Vec<(Uid, Vec<Option<Labels>>)> = Vec::new();
    for change in changes {
        let key = *places.entry(change.uid.clone()).or_insert(objects.len());
        match objects.get_mut(key) {
            Some((_, before)) => before.push(change.labels),
            None => objects.push((change.uid, vec![change.labels])),
        }
    }
    objects
}

/// The version that the cluster has now.
pub(super) async fn version(
    upstream: &Upstream,
    caller: &Caller,
    kind: &'static Kind,
) -> Result<ResourceVersion, Refusal> {
    let path = Resource::from(kind).collection(None);
    let call = Call::get(path, vec![(parameter::LIMIT, "1".to_owned())]);
    let page = Page::read(&upstream.call(caller, call).await?)?;
    let version = page.0.metadata.resource_version.parse();
    version
        .map(ResourceVersion)
        .map_err(|error| Refusal::unreachable(&error))
}

async fn moved(
    store: &dyn Objects,
    upstream: &Upstream,
    kind: &'static Kind,
    uid: Uid,
    before: Vec<Option<Labels>>,
) -> io::Result<Option<Move>> {
    let row = store.get_by_id(kind, &uid).await.map_err(io::Error::other)?;
    let Some(row) = row.filter(|row| row.life != Life::Live) else {
        return Ok(None);
    };
    let metadata = row.object.metadata.clone();
    let key = ObjectKey {
        resource: kind.into(),
        namespace: &metadata.namespace,
        name: &metadata.name,
    };
    let call = Call::get(key.path(), Vec::new());
    let (row, successor, until) = match upstream.call(&Caller::default().on_behalf(), call).await {
        Ok(found) => {
            let head = Head::read(&found.text).metadata;
            match (*head.uid == *uid.0, head.deletion_timestamp, row.life) {
                (false, ..) => (row, Some(Successor::of(&String::from_utf8_lossy(&found.text))?), None),
                // On its way. What it goes through from here on is another change, or its end.
                (true, Some(_), Life::Archived) => (row, None, head.resource_version.parse().ok()),
                (true, ..) => return Ok(None),
            }
        }
        Err(refusal) if refusal.is_of_absent_object() => {
            let Some((row, successor)) = out_of_cluster(store, kind, row).await? else {
                return Ok(None);
            };
            (row, successor, None)
        }
        Err(refusal) => return Err(io::Error::other(refusal)),
    };
    if row.life == Life::Live {
        return Ok(None);
    }
    let replaced = |labels: Option<Labels>| labels.unwrap_or_else(|| row.object.metadata.labels.clone());
    let before = before.into_iter().map(replaced).collect();
    Ok(Some(Move {
        row,
        before,
        successor,
        until: until.map(ResourceVersion),
    }))
}

/// The last state of an object that the cluster does not have, and the object that has its name by now. Asked after the
/// cluster: what left it before that is here, in its last state.
async fn out_of_cluster(
    store: &dyn Objects,
    kind: &'static Kind,
    row: Stored,
) -> io::Result<Option<(Stored, Option<Successor>)>> {
    let metadata = &row.object.metadata;
    let owner = store.get_by_name(kind, &metadata.namespace, &metadata.name).await;
    match owner.map_err(io::Error::other)? {
        Some(owner) if owner.object.metadata.uid == metadata.uid => Ok(Some((owner, None))),
        Some(other) => Ok(Some((row, Some(Successor::new(other.object)?)))),
        None => {
            let last = store.get_by_id(kind, &metadata.uid).await.map_err(io::Error::other)?;
            Ok(last.map(|last| (last, None)))
        }
    }
}

/// What one watch wants to be told of.
pub(super) struct Filter {
    /// Of which version its objects are.
    pub(super) view: View,
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    /// What of `fields` no change of an object can alter.
    named: FieldSelector,
}

impl Filter {
    pub(super) fn of(which: &ListOptions, view: View) -> Result<Self, SelectorError> {
        let fields = FieldSelector::parse(&which.fields)?;
        Ok(Self {
            view,
            namespace: which.namespace.clone(),
            labels: LabelSelector::parse(&which.labels)?,
            named: fields.only(|field| field.starts_with("metadata.")),
            fields,
        })
    }

    /// Whether the watch sees an object of its namespace.
    pub(super) fn sees(&self, object: &Value) -> bool {
        self.fields.matches(|field| text_at(object, field)) && self.labels.matches_json(&object["metadata"]["labels"])
    }

    fn sees_successor(&self, successor: &Successor) -> Result<bool, Refusal> {
        Ok(match self.view.text(&successor.object)? {
            Cow::Borrowed(_) => self.sees(&successor.value),
            Cow::Owned(_) => self.sees(&self.view.value(&successor.object)?),
        })
    }

    /// The event by which the watch learns of a change; none where it saw nothing of the object, and sees nothing.
    ///
    /// # Errors
    /// 500 for an object that has no form in the version of the watch.
    pub(super) fn event(&self, moved: &Move) -> Result<Option<Event>, Refusal> {
        let metadata = &moved.row.object.metadata;
        let is_elsewhere = |wanted: &String| *wanted != metadata.namespace;
        if self.namespace.as_ref().is_some_and(is_elsewhere) {
            return Ok(None);
        }
        if let Some(successor) = &moved.successor
            && self.sees_successor(successor)?
        {
            return Ok(None);
        }
        let object = self.view.value(&moved.row.object)?;
        // An object keeps its name and namespace. What its other fields were before is not known: the watch may have
        // seen it, and to be told of the end of an object that one never saw does no harm.
        let was_named = self.named.matches(|field| text_at(&object, field));
        let was_seen = was_named
            && moved
                .before
                .iter()
                .any(|labels| self.labels.matches_json(&json!(labels)));
        let is_there = moved.row.life == Life::Archived && moved.successor.is_none();
        let r#type = match (was_seen, is_there && self.sees(&object)) {
            (false, false) => return Ok(None),
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) => EventType::Deleted,
        };
        Ok(Some(Event {
            r#type,
            object: Bytes::from(self.view.shown(&moved.row)?),
        }))
    }
}

/// The text of a field such as `metadata.name`; empty where there is none.
/// Texts as they stand in the object: a selector may look a thousand times at a large one.
fn text_at<'a>(object: &'a Value, field: &str) -> Cow<'a, str> {
    let found = field.split('.').try_fold(object, |object, name| object.get(name));
    match found {
        Some(Value::String(text)) => text.into(),
        Some(other @ (Value::Bool(_) | Value::Number(_))) => other.to_string().into(),
        Some(_) | None => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::token::tests::KIND;

    const VIEW: View = View {
        platform: crate::operations::objects::tests::PLATFORM,
        resource: Resource {
            kind: &KIND,
            version: "v1",
        },
    };

    fn labels(team: &str) -> Labels {
        Labels::from([("team".to_owned(), team.to_owned())])
    }

    fn change(position: u64, uid: &str, team: Option<&str>) -> Change {
        Change {
            position: Position(position),
            uid: Uid::from(uid),
            labels: team.map(labels),
        }
    }

    fn moved(before: &[&str], now: &str, life: Life) -> Move {
        let text = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "9",
            "labels": labels(now)}});
        Move {
            row: Stored {
                object: Object::parse_str(&text.to_string()).expect("an object"),
                life,
                update_time: None,
                delete_time: None,
                evicted_time: None,
                replaced_by: None,
            },
            before: before.iter().map(|team| labels(team)).collect(),
            successor: None,
            until: None,
        }
    }

    fn event_type(selector: &str, moved: &Move) -> Option<EventType> {
        let which = ListOptions {
            labels: selector.to_owned(),
            ..ListOptions::default()
        };
        let event = Filter::of(&which, VIEW)
            .expect("a selector")
            .event(moved)
            .expect("an event");
        event.map(|event| event.r#type)
    }

    #[test]
    fn a_watch_is_told_of_the_objects_of_its_namespace_alone() {
        let changed = moved(&["x"], "x", Life::Archived);
        for (namespace, is_sent) in [(None, true), (Some("n"), true), (Some("other"), false)] {
            let which = ListOptions {
                namespace: namespace.map(str::to_owned),
                ..ListOptions::default()
            };
            let event = Filter::of(&which, VIEW).expect("no selectors").event(&changed);
            assert_eq!(event.expect("an event").is_some(), is_sent, "{namespace:?}");
        }
    }

    #[test]
    fn fields_are_compared_as_texts_whatever_they_hold() {
        let object = json!({"spec": {"text": "a", "number": 7, "flag": true, "list": [1], "none": null}});
        for (field, text) in [
            ("spec.text", "a"),
            ("spec.number", "7"),
            ("spec.flag", "true"),
            ("spec.list", ""),
            ("spec.none", ""),
            ("spec.absent", ""),
            ("text", ""),
        ] {
            assert_eq!(text_at(&object, field), text, "{field}");
        }
    }

    #[test]
    fn all_changes_of_an_object_between_two_looks_are_told_together_in_their_order() {
        let changes = vec![
            change(1, "u", Some("x")),
            change(2, "v", Some("x")),
            change(3, "u", Some("y")),
            change(4, "u", Some("z")),
            change(5, "v", None),
        ];
        let expected = [
            ("u", vec![Some(labels("x")), Some(labels("y")), Some(labels("z"))]),
            ("v", vec![Some(labels("x")), None]),
        ];
        assert_eq!(
            of_objects(changes),
            expected.map(|(uid, before)| (Uid::from(uid), before))
        );
    }

    #[test]
    fn of_three_changes_of_labels_between_two_looks_each_may_be_what_a_watch_saw() {
        let changed = moved(&["x", "y", "z"], "w", Life::Archived);
        for (selector, expected) in [
            ("team=x", Some(EventType::Deleted)),
            ("team=y", Some(EventType::Deleted)),
            ("team=z", Some(EventType::Deleted)),
            ("team=w", Some(EventType::Added)),
            ("team in (y, w)", Some(EventType::Modified)),
            ("team", Some(EventType::Modified)),
            ("team=v", None),
        ] {
            assert_eq!(event_type(selector, &changed), expected, "{selector}");
        }
        let deleted = moved(&["x", "y", "z"], "z", Life::Deleted);
        for (selector, expected) in [("team=y", Some(EventType::Deleted)), ("team=w", None)] {
            assert_eq!(event_type(selector, &deleted), expected, "{selector}");
        }
    }
}
