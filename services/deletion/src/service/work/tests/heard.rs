//! What watches report. Most of it is known by then.

use kindex_model::kind::Registry;
use serde_json::{Value, json};

use super::*;
use crate::fixture::{CLUSTER, NETWORK, PLATFORM};

static KINDS: [&Kind; 2] = [&NETWORK, &CLUSTER];

fn kinds() -> Kinds {
    Kinds::of(&Registry {
        platform: PLATFORM,
        kinds: &KINDS,
        ..Registry::EMPTY
    })
}

/// An object with this metadata that names a network.
fn text(mut metadata: Value, version: u64) -> Text {
    metadata["namespace"] = json!("default");
    metadata["resourceVersion"] = json!(version.to_string());
    let text = json!({"metadata": metadata, "spec": {"network": "a"}});
    Text::parse_str(&text.to_string()).expect("an object")
}

/// As if each echo of our own writes were read, or as if news were taken for an echo.
#[test]
fn what_is_known_is_not_read_again_and_what_is_newer_is() {
    let setup = Setup {
        foreign: BTreeSet::from([network().kind]),
        ..Setup::default()
    };
    let mut work = Work::new(Vec::new(), setup, BLOCKED_AFTER);
    let (kinds, now) = (kinds(), Instant::now());
    for (uid, version, is_read) in [
        ("u", 5, true),
        ("u", 5, false),
        ("u", 4, false),
        ("u", 6, true),
        ("v", 7, true),
        ("v", 7, false),
    ] {
        work.on_watch_event(&kinds, &CLUSTER, &text(json!({"name": "c", "uid": uid}), version), now);
        // What an object names is looked up once that is read.
        let named = work.next_look_up();
        assert_eq!(named.is_some(), is_read, "{uid} in version {version}");
        if let Some(named) = named {
            work.looked_up(&named, None, now);
        }
    }
    let known = work.graph.get(&key("Cluster", "c")).expect("it is known");
    assert_eq!((&*known.uid, known.version), ("v", ResourceVersion(7)));
}

/// As if a version that is older than what is known said nothing.
#[test]
fn a_release_is_known_from_an_older_version_that_says_it() {
    let with_references = |version: u64, references: &[ReferenceName]| Object {
        version: ResourceVersion(version),
        references: references.iter().cloned().collect(),
        ..live(network(), "n")
    };
    let (kinds, now) = (kinds(), Instant::now());
    let released = &kinds.names.recorded.released;
    let said = json!({released: format!("{}@7", reference(GROUP))});
    for (annotations, reported) in [(said, 0), (json!({}), 1)] {
        let mut work = Work::new(Vec::new(), Setup::default(), BLOCKED_AFTER);
        work.seen(with_references(6, &[reference(GROUP)]), now);
        work.seen(with_references(8, &[]), now);
        let between = text(json!({"name": "a", "uid": "n", "annotations": annotations}), 7);
        work.on_watch_event(&kinds, &NETWORK, &between, now);
        let vanished = work.vanished(now + Duration::from_secs(60));
        assert_eq!(vanished.len(), reported, "{}", between.text());
    }
}
