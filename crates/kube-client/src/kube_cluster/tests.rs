//! What a 404 means: an object that is named, a kind that is not served, or the page of a proxy.

use std::convert::Infallible;

use http::Response;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::*;

static WIDGETS: Kind = Kind {
    name: "Widget",
    group: "g.example",
    version: "v1",
    plural: "widgets",
    scope: Scope::Namespaced,
    ..Kind::EMPTY
};
const PAGE: &str = "404 page not found";

fn a() -> ObjectName {
    ObjectName {
        namespace: "n".to_owned(),
        name: "a".to_owned(),
    }
}

/// The discovery of a cluster that serves widgets in these versions, and other things in others.
fn discovery(path: &str, versions: &[&str]) -> Option<Value> {
    let version = |version: &&str| json!({"groupVersion": format!("g.example/{version}"), "version": version});
    let group = |name: &str, versions: &[&str]| {
        let versions: Vec<Value> = versions.iter().map(version).collect();
        json!({"name": name, "versions": versions})
    };
    if path == "/apis" {
        let mut groups = vec![group("apiextensions.k8s.io", &["v1"])];
        groups.extend((!versions.is_empty()).then(|| group(WIDGETS.group, versions)));
        return Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}));
    }
    let version = path.strip_prefix("/apis/g.example/")?;
    versions.contains(&version).then(|| {
        let widgets = json!({"name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget",
            "verbs": ["get"]});
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("g.example/{version}"),
            "resources": [widgets]})
    })
}

/// A cluster that says this of every object and list, and to questions about its discovery what the function says.
fn cluster(said: &str, discovery: impl Fn(&str) -> Option<Value> + Send + 'static) -> KubeCluster {
    let said = said.to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let path = request.uri().path();
        let (code, text): (u16, String) = match (path.contains("/widgets"), discovery(path)) {
            (true, _) => (404, said.clone()),
            (false, Some(document)) => (200, document.to_string()),
            (false, None) => (404, PAGE.to_owned()),
        };
        let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
        async move { Ok::<_, Infallible>(response.expect("an answer")) }
    });
    KubeCluster::from(Client::new(service, "default"))
}

fn target() -> Target {
    Target {
        name: a(),
        uid: "u".into(),
        resource_version: ResourceVersion(7),
    }
}

/// What comes of all requests, which is the same of each.
async fn asked(cluster: &KubeCluster) -> ClusterError {
    let got = cluster.get(&WIDGETS, &a()).await.map(drop);
    for other in [
        cluster.list(&WIDGETS, 10, None).await.map(drop),
        cluster.watch(&WIDGETS, ResourceVersion(7)).await.map(drop),
        cluster.delete(&WIDGETS, &target()).await.map(drop),
        cluster.set_finalizers(&WIDGETS, &target(), &[]).await.map(drop),
        cluster.patch(&WIDGETS, &target(), None, json!({})).await.map(drop),
    ] {
        assert_eq!(other, got);
    }
    got.expect_err("nothing is there")
}

#[tokio::test]
async fn an_object_that_is_named_is_not_there_whatever_is_served() {
    let said = json!({"kind": "Status", "code": 404, "details": {"name": "a", "kind": "widgets"}}).to_string();
    let cluster = cluster(&said, |_| None);
    let found = cluster.get(&WIDGETS, &a()).await;
    assert!(matches!(found, Ok(None)), "{found:?}");
    let deleted = cluster.delete(&WIDGETS, &target()).await;
    assert!(matches!(deleted, Err(ClusterError::NotFound(_))), "{deleted:?}");
}

/// As if an object were gone, and its row to be closed, because a proxy has a page for paths that it does not know.
#[tokio::test]
async fn a_page_is_an_outage_where_discovery_does_not_say_that_the_kind_is_not_served() {
    let named_nothing = json!({"kind": "Status", "code": 404, "message": "m", "details": {}}).to_string();
    for said in [PAGE, "", &named_nothing] {
        for answers in [
            cluster(said, |path| discovery(path, &["v1"])),
            cluster(said, |path| discovery(path, &["v2", "v1"])),
            cluster(said, |_| None),
            cluster(said, |_| Some(json!({}))),
            cluster(said, |path| discovery(path, &["v1"]).filter(|_| path == "/apis")),
            cluster(said, |path| {
                discovery(path, &["v2", "v1"]).filter(|_| !path.ends_with("/v1"))
            }),
        ] {
            let why = asked(&answers).await;
            let is_outage = matches!(
                why,
                ClusterError::Retryable {
                    cause: ClusterCause::NotFound,
                    ..
                }
            );
            assert!(is_outage, "{said}: {why:?}");
            let found = answers.find(&WIDGETS, &a()).await;
            assert!(found.is_err(), "{said}: {found:?}");
        }
    }
}

#[tokio::test]
async fn a_kind_is_not_served_where_discovery_says_so_and_has_no_objects_where_no_version_is_there() {
    for (versions, in_other_version, message) in [
        (vec![], false, "the cluster serves no widgets.g.example"),
        (
            vec!["v2"],
            true,
            "the cluster serves widgets.g.example in other versions than v1",
        ),
    ] {
        let cluster = cluster(PAGE, move |path| discovery(path, &versions));
        let unserved = ClusterError::Unserved {
            in_other_version,
            message: message.to_owned(),
        };
        assert_eq!(unserved.to_string(), message);
        assert_eq!(asked(&cluster).await, unserved);
        assert_eq!(cluster.find(&WIDGETS, &a()).await.is_err(), in_other_version);
    }
}

/// As if a kind could not be waited for because another version of it cannot be read, or had no objects.
#[tokio::test]
async fn a_version_that_cannot_be_read_may_have_objects() {
    let unread = |path: &str| discovery(path, &["v2"]).filter(|_| path == "/apis");
    let cluster = cluster(PAGE, unread);
    let why = asked(&cluster).await;
    let is_elsewhere = matches!(
        why,
        ClusterError::Unserved {
            in_other_version: true,
            ..
        }
    );
    assert!(is_elsewhere, "{why:?}");
    assert!(cluster.find(&WIDGETS, &a()).await.is_err());
}

/// As if a kind of the wrong scope were away for a moment.
#[tokio::test]
async fn a_kind_in_another_scope_is_refused() {
    let cluster = cluster(PAGE, |path| {
        let mut document = discovery(path, &["v1"])?;
        if let Some(widgets) = document.pointer_mut("/resources/0/namespaced") {
            *widgets = Value::Bool(false);
        }
        Some(document)
    });
    let expected = "the cluster serves widgets.g.example for the whole cluster, and Kindex expects its objects in \
                    namespaces";
    assert_eq!(asked(&cluster).await, ClusterError::Refused(expected.to_owned()));
}

/// As if an object were gone because discovery is forbidden, or as if the lack of the right could not be found.
#[tokio::test]
async fn who_may_not_read_the_discovery_waits_for_a_kind_and_doubts_of_an_object() {
    let service = tower::service_fn(|request: http::Request<Body>| {
        let (code, text): (u16, String) = match request.uri().path().contains("/widgets") {
            true => (404, PAGE.to_owned()),
            false => (
                403,
                json!({"kind": "Status", "code": 403, "reason": "Forbidden"}).to_string(),
            ),
        };
        let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
        async move { Ok::<_, Infallible>(response.expect("an answer")) }
    });
    let cluster = KubeCluster::from(Client::new(service, "default"));
    let listed = cluster.list(&WIDGETS, 10, None).await.expect_err("nothing is listed");
    let waits = matches!(
        listed,
        ClusterError::Unserved {
            in_other_version: true,
            ..
        }
    );
    assert!(waits && listed.to_string().contains("/apis and /apis/*"), "{listed}");
    let found = cluster.find(&WIDGETS, &a()).await.expect_err("nothing is known");
    let is_outage = matches!(
        found,
        ClusterError::Retryable {
            cause: ClusterCause::NotFound,
            ..
        }
    );
    assert!(is_outage && found.to_string().contains("/apis and /apis/*"), "{found}");
}

/// As if whoever is asked to wait, or has another cause to fail, were asked again at once.
#[tokio::test]
async fn a_cluster_that_does_not_answer_for_its_discovery_says_when_to_come_again() {
    let service = tower::service_fn(|request: http::Request<Body>| {
        let busy = json!({"kind": "Status", "code": 429, "message": "busy", "details": {"retryAfterSeconds": 7}});
        let (code, text): (u16, String) = match request.uri().path().contains("/widgets") {
            true => (404, PAGE.to_owned()),
            false => (429, busy.to_string()),
        };
        let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
        async move { Ok::<_, Infallible>(response.expect("an answer")) }
    });
    let cluster = KubeCluster::from(Client::new(service, "default"));
    let busy = ClusterError::Retryable {
        cause: ClusterCause::TooManyRequests,
        retry_after: Some(Duration::from_secs(7)),
        message: "the cluster does not say whether it serves widgets.g.example: busy".to_owned(),
    };
    assert_eq!(asked(&cluster).await, busy);
}

/// A cluster that answers each list after a while, with a page that another one follows.
fn slow_cluster(after: Duration) -> KubeCluster {
    let service = tower::service_fn(move |_: http::Request<Body>| async move {
        sleep_until(Instant::now() + after).await;
        let page = r#"{"metadata":{"resourceVersion":"9","continue":"more"},"items":[]}"#;
        Ok::<_, Infallible>(Response::new(Body::from(page.as_bytes().to_vec())))
    });
    KubeCluster::from(Client::new(service, "default"))
}

/// As if a page for which a server looks at all objects of a kind had to come as soon as any other answer.
#[tokio::test(start_paused = true)]
async fn each_page_of_a_selection_may_take_as_long_as_a_server_works_on_it() {
    let selection = |continue_token| Selection {
        namespace: None,
        fields: "spec.owner=a",
        limit: 10,
        continue_token,
    };
    let cluster = slow_cluster(Duration::from_secs(60));
    for token in [None, Some("more"), Some("more")] {
        let page = cluster.select(&WIDGETS, selection(token)).await.expect("an answer");
        let page = page.expect("it selects by that");
        assert_eq!(page.continue_token.as_deref(), Some("more"));
    }
    let listed = cluster.list(&WIDGETS, 10, None).await.map(drop);
    assert_eq!(
        listed,
        Err(silence(CALL_TIMEOUT)),
        "the limit bounds the work for a page of all objects"
    );

    let silent = slow_cluster(SELECTION_TIMEOUT + Duration::from_secs(1));
    let selected = silent.select(&WIDGETS, selection(None)).await.map(drop);
    assert_eq!(selected, Err(silence(SELECTION_TIMEOUT)));
}
