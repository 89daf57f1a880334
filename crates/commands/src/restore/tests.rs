//! All objects of a kind, over an embedded cluster and a database in memory.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_cluster::ClusterOptions;
use kindex_embedded::Embedded;
use kindex_generated::kinds::model;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_maintenance::sides::Sides;
use kindex_model::projection::Version;
use kindex_query::Revive;
use kindex_store::{Address, PoolConfig, RowWrite, SqliteLocation, open};
use kube::Client;
use kube::api::{ListParams, ResourceExt as _};

use super::*;
use crate::fixture::typed;
use crate::install::{ClusterOwner, crds};

fn args(words: &[&str]) -> RestoreArgs {
    typed(&[&["models"][..], words].concat())
}

/// Scripts go on with the former name of the flag, and with its word in documents. Fails if the alias goes, or if the
/// word of tables reaches documents.
#[test]
fn the_former_name_of_the_state_is_taken_and_written_for_scripts() {
    assert!(args(&["--evicted"]).archived && args(&["--archived"]).archived);
    let text = r#"{"apiVersion":"michelangelo.api/v2","kind":"Model","metadata":{"uid":"u","namespace":"n",
        "name":"a","resourceVersion":"7"}}"#;
    let mut row = Stored {
        object: Object::parse_str(text).expect("an object"),
        life: Life::Archived,
        delete_time: None,
        evicted_time: None,
        update_time: None,
        replaced_by: None,
    };
    assert_eq!((was(&row), life(&row)), ("evicted", "archived"));
    row.life = Life::Deleted;
    assert_eq!((was(&row), life(&row)), ("deleted", "deleted"));
}

/// A row of a model that left the cluster, created on the day that its uid ends with.
async fn left(store: &dyn MetadataStorage, uid: &str, name: &str, team: &str, life: Life) {
    let day = uid.trim_start_matches('u');
    let text = format!(
        r#"{{"apiVersion":"michelangelo.api/v2","kind":"Model","metadata":{{"name":"{name}","namespace":"default",
        "uid":"{uid}","resourceVersion":"1{day}","creationTimestamp":"2026-01-1{day}T00:00:00Z","labels":{{"team":"{team}"}}}},"spec":{{}}}}"#
    );
    let version = Version::project(&model::KIND, Object::parse_str(&text).expect("an object"));
    let write = RowWrite::Store {
        version,
        life,
        revive: Revive::Never,
    };
    let written = store.write(&model::KIND, &[write], Timestamp::now()).await;
    written.expect("written");
}

/// A row that is restored is no longer one of those that are walked over.
#[tokio::test]
async fn all_pages_come_back_though_what_came_back_leaves_them() {
    static KINDS: &[&Kind] = &[&model::KIND];
    let registry = Registry {
        kinds: KINDS,
        ..kindex_generated::registry()
    };
    let (embedded, _) = Embedded::serve(ClusterOptions::default(), std::future::pending()).await;
    let client = Client::try_from(embedded.config()).expect("a client");
    crds(&client, &registry, ClusterOwner::Kindex)
        .await
        .expect("models are served");
    let place = Address::Sqlite(SqliteLocation::Memory);
    let storage = open(&place, registry, &PoolConfig::default()).expect("a database");
    storage.prepare().await.expect("it is empty");
    // In an order that is not that of the names; two names were had before, by objects that were deleted.
    for (uid, name, team, life) in [
        ("u0", "f", "x", Life::Deleted),
        ("u1", "c", "x", Life::Deleted),
        ("u2", "e", "x", Life::Archived),
        ("u3", "a", "x", Life::Archived),
        ("u4", "g", "y", Life::Deleted),
        ("u5", "c", "x", Life::Archived),
        ("u6", "b", "y", Life::Archived),
        ("u7", "d", "x", Life::Archived),
        ("u8", "f", "x", Life::Deleted),
    ] {
        left(storage.as_ref(), uid, name, team, life).await;
    }
    let cluster = Arc::new(KubeCluster::new(embedded.config()).expect("a client"));
    let sides = Sides {
        platform: registry.platform,
        cluster: cluster.clone(),
        storage,
    };
    let all = async |words: &[&str], selector: &str| {
        let args = args(words);
        let restorer = Restorer {
            sides: &sides,
            creator: cluster.as_ref(),
            registry: &registry,
            mode: Mode::Create,
            new_name: None,
            retry_budget: RetryBudget::default(),
        };
        let command = Command {
            restorer,
            kind: &model::KIND,
            args: &args,
            selectors: vec![LabelSelector::parse(selector).expect("a selector")],
            page_rows: 2,
        };
        let lines = command.all().await.expect("both sides answer").into_iter();
        lines
            .map(|line| format!("{} {} {}", line.name, line.uid, line.done.outcome.is_good()))
            .collect::<Vec<_>>()
    };
    let archived = all(&["--archived"], "team=x").await;
    assert_eq!(archived, ["a u3 true", "c u5 true", "d u7 true", "e u2 true"]);
    let rest = all(&["--archived", "--deleted"], "team").await;
    for line in ["b u6 true", "f u8 true", "g u4 true"] {
        assert!(rest.iter().any(|found| found == line), "{line} is not in {rest:?}");
    }
    let models = crate::client::all(&client, &model::KIND);
    let models = models.list_metadata(&ListParams::default()).await.expect("a list");
    let mut names: Vec<String> = models.iter().map(|model| model.name_any()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g"]);
}
