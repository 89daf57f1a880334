//! What the API server sends: pages and watch lines, read so that each object keeps
//! its exact text. Pure; knows no connection.

use kindex_kube_api::list::{List, ListMeta};
use kindex_kube_api::watch::{EventType, Frame};
use kindex_model::object::{Object, ResourceVersion, Uid};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::classify::classify_status;
use super::{ClusterCause, ClusterError, ObjectName, Page, Unreadable, WatchEvent};

pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ClusterError> {
    serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => ClusterError::Retryable {
            cause: ClusterCause::Connection,
            retry_after: None,
            message: "the answer was cut off".to_owned(),
        },
        _ => ClusterError::Refused(format!("the answer could not be read: {error}")),
    })
}

pub(super) fn parse_object(text: &str) -> Result<Object, ClusterError> {
    Object::parse_str(text).map_err(|error| ClusterError::Refused(error.to_string()))
}

/// As much of a broken object as can be read, for the report.
#[derive(Default, Deserialize)]
struct Shard {
    #[serde(default)]
    metadata: ShardMetadata,
}

#[derive(Default, Deserialize)]
struct ShardMetadata {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    uid: String,
}

fn read_object(raw: Box<RawValue>) -> Result<Object, Unreadable> {
    Object::parse_or_return(raw).map_err(|(error, raw)| {
        let shard: Shard = serde_json::from_str(raw.get()).unwrap_or_default();
        let ShardMetadata { namespace, name, uid } = shard.metadata;
        Unreadable {
            uid: (!uid.is_empty()).then(|| Uid::from(uid.as_str())),
            name: ObjectName { namespace, name },
            reason: error.to_string(),
        }
    })
}

pub(super) fn read_page(text: &str) -> Result<Page, ClusterError> {
    let list: List = parse(text)?;
    let version = &list.metadata.resource_version;
    let mut page = Page {
        resource_version: ResourceVersion(
            version
                .parse()
                .map_err(|_| ClusterError::Refused(format!("a list of version {version:?}")))?,
        ),
        continue_token: list.metadata.next().map(str::to_owned),
        remaining: list.metadata.remaining_item_count,
        ..Page::default()
    };
    for raw in list.items.unwrap_or_default() {
        match read_object(raw) {
            Ok(object) => page.objects.push(object),
            Err(unreadable) => page.unreadable.push(unreadable),
        }
    }
    Ok(page)
}

#[derive(Deserialize)]
struct BookmarkObject {
    metadata: ListMeta,
}

/// Reads one line; `None` for a type that Kubernetes may invent one day.
pub(super) fn read_line(line: &[u8]) -> Result<Option<WatchEvent>, ClusterError> {
    let Ok(text) = std::str::from_utf8(line) else {
        let unreadable = Unreadable {
            uid: None,
            name: ObjectName {
                namespace: String::new(),
                name: String::new(),
            },
            reason: "an event that is not UTF-8".to_owned(),
        };
        return Ok(Some(WatchEvent::Unreadable(unreadable)));
    };
    let frame: Frame<'_> = parse(text)?;
    let object = || read_object(frame.object.to_owned());
    let event = match frame.r#type {
        EventType::Added | EventType::Modified => object().map(WatchEvent::Applied),
        EventType::Deleted => object().map(WatchEvent::Deleted),
        EventType::Bookmark => {
            let bookmark: BookmarkObject = parse(frame.object.get())?;
            let version = bookmark.metadata.resource_version.parse();
            let Ok(version) = version else {
                return Ok(None);
            };
            Ok(WatchEvent::Bookmark(ResourceVersion(version)))
        }
        EventType::Error => return Err(classify_status(&parse(frame.object.get())?)),
        EventType::Other(_) => return Ok(None),
    };
    Ok(Some(event.unwrap_or_else(WatchEvent::Unreadable)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = r#"{"apiVersion":"g/v1","kind":"K","metadata":{"uid":"u","name":"n","namespace":"d","resourceVersion":"7"},"spec":{"n":1e400,  "z":0,"a":1}}"#;

    fn event(text: &str) -> Result<Option<WatchEvent>, ClusterError> {
        read_line(text.as_bytes())
    }

    #[test]
    fn an_event_keeps_the_exact_text_in_either_order_of_its_fields() {
        for line in [
            format!(r#"{{"type":"MODIFIED","object":{OBJECT}}}"#),
            format!(r#"{{"object":{OBJECT},"type":"ADDED"}}"#),
        ] {
            let Ok(Some(WatchEvent::Applied(object))) = event(&line) else {
                panic!("{line}");
            };
            assert_eq!(object.text(), OBJECT);
        }
    }

    #[test]
    fn an_expired_watch_is_distinguished_from_other_errors() {
        let line =
            |code: u16| format!(r#"{{"type":"ERROR","object":{{"kind":"Status","code":{code},"message":"m"}}}}"#);
        assert!(matches!(event(&line(410)), Err(ClusterError::Expired(_))));
        assert!(matches!(event(&line(500)), Err(ClusterError::Retryable { .. })));
    }

    #[test]
    fn a_bookmark_moves_the_position() {
        let line = r#"{"type":"BOOKMARK","object":{"kind":"K","metadata":{"resourceVersion":"12"}}}"#;
        assert!(matches!(
            event(line),
            Ok(Some(WatchEvent::Bookmark(ResourceVersion(12))))
        ));
    }

    #[test]
    fn an_object_without_identity_ends_neither_watch_nor_list() {
        let bad = r#"{"metadata":{"name":"n","uid":"u","resourceVersion":"9223372036854775808"}}"#;
        let line = format!(r#"{{"type":"ADDED","object":{bad}}}"#);
        let Ok(Some(WatchEvent::Unreadable(unreadable))) = event(&line) else {
            panic!("not reported");
        };
        assert_eq!(unreadable.uid, Some(Uid::from("u")));
        assert!(unreadable.reason.contains("2^63"), "{}", unreadable.reason);
        assert!(matches!(read_line(b"\xff\n"), Ok(Some(WatchEvent::Unreadable(_)))));

        let list = format!(r#"{{"metadata":{{"resourceVersion":"9","continue":""}},"items":[{bad},{OBJECT}]}}"#);
        let page = read_page(&list).expect("a page");
        assert_eq!((page.objects.len(), page.unreadable.len()), (1, 1));
        assert_eq!(page.continue_token, None);
    }

    #[test]
    fn a_cut_off_answer_is_worth_another_attempt() {
        let cut = read_page(r#"{"metadata":{"resourceVersion":"9"},"items":[{"#);
        assert!(matches!(cut, Err(ClusterError::Retryable { .. })));
    }
}
