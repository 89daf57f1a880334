//! New objects that name one of another service: a project here names a model there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kindex_api::operations::{Answer, Caller, Operations, Peers, Refusal, WriteOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::moves_across::{Both, GROUP, HOLDERS};

/// A project of this name, with these annotations, that names a model.
async fn create(
    operations: &Operations,
    name: &str,
    annotations: Value,
    names: &str,
    dry_run: bool,
) -> Result<Answer, Refusal> {
    let metadata = json!({"name": name, "annotations": annotations});
    let project = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "metadata": metadata,
        "spec": {"description": names}});
    let options = WriteOptions {
        dry_run,
        ..WriteOptions::default()
    };
    let (caller, text) = (Caller::default(), project.to_string());
    operations.create(&caller, &HOLDERS, "default", &text, &options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_under_what_another_service_deletes() {
    let both = Both::start().await;
    both.delete("b").await;
    let long = "x".repeat(200 * 1024);
    for annotations in [json!({}), json!({"example.com/long": long})] {
        for dry_run in [true, false] {
            let created = create(&both.operations, "p", annotations.clone(), "b", dry_run).await;
            let refused = created.expect_err("deleted");
            let why = "spec.description names model/default/b, which is being deleted; see `kindex why model/b -n \
                       default` at the service region";
            assert!(refused.code == 409 && refused.message.ends_with(why), "{refused}");
        }
    }
    for (name, names) in [("p", "a"), ("q", "absent"), ("r", "")] {
        let created = create(&both.operations, name, json!({}), names, false).await;
        assert_eq!(created.expect("nothing is being deleted").code, 201, "{names}");
    }
    both.end().await;
}

/// A region that takes connections and never answers, and how many it has taken.
async fn silent_region() -> (Peers, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let taken: Arc<AtomicUsize> = Arc::default();
    let count = taken.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            open.push(connection);
        }
    });
    (Peers::default().at(GROUP, &format!("http://{address}")), taken)
}

/// One creation waits and finds out; the next ones do not ask for some seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_answer_stops_no_creations_and_delays_one() {
    let both = Both::start().await;
    let (peers, taken) = silent_region().await;
    let operations = both.compute.operations().with_peers(peers);
    let created = create(&operations, "first", json!({}), "a", false).await;
    assert_eq!(created.expect("taken").code, 201);
    let asked = taken.load(Ordering::SeqCst);
    assert!(asked > 0, "it was asked");
    for name in ["second", "third"] {
        let created = create(&operations, name, json!({}), "a", false).await;
        assert_eq!(created.expect("taken").code, 201);
    }
    assert_eq!(taken.load(Ordering::SeqCst), asked, "nobody asks again");
    both.end().await;
}
