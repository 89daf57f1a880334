//! The look-up of one object by a client of the `kube` library, whose `get_opt` takes each 404 for an absence: also the
//! page of what stands before the cluster. Does not know what is looked up.

use std::fmt::Debug;

use kindex_kube_api::status::Outcome;
use kube::Api;
use kube::core::Status;
use serde::de::DeserializeOwned;

use super::classify::outcome_of;

/// The object of this name; `None` where the cluster says of that name that it is not there.
///
/// # Errors
/// Also where the answer is another 404, as of a proxy, or of a cluster that does not serve the kind.
pub async fn look_up<K>(api: &Api<K>, name: &str) -> kube::Result<Option<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.get(name).await {
        Err(kube::Error::Api(status)) if is_absence(&status, name) => Ok(None),
        found => found.map(Some),
    }
}

fn is_absence(status: &Status, name: &str) -> bool {
    let named = status.details.as_ref().map(|details| details.name.as_str());
    outcome_of(status) == Outcome::Absent && named == Some(name)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Namespace;
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::classify::outcome;

    /// What is found where the cluster answers with this.
    async fn found(code: u16, answer: &str) -> kube::Result<Option<Namespace>> {
        let answer = answer.as_bytes().to_vec();
        let service = tower::service_fn(move |_: Request<Body>| {
            let response = Response::builder().status(code).body(Body::from(answer.clone()));
            ready(Ok::<_, Infallible>(response.expect("a response")))
        });
        look_up(&Api::all(Client::new(service, "default")), "a").await
    }

    fn refused(details: &Value) -> String {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "m", "code": 404,
            "reason": "NotFound", "details": details});
        status.to_string()
    }

    /// As if the page of a proxy said that there is no such object, so that it would be made anew, or what holds it
    /// released.
    #[tokio::test]
    async fn only_an_answer_that_names_the_object_says_that_it_is_not_there() {
        let there = found(200, r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}"#).await;
        assert!(there.expect("an answer").is_some());
        let absent = found(404, &refused(&json!({"name": "a", "kind": "namespaces"}))).await;
        assert!(absent.expect("an answer").is_none());
        for unclear in [
            "404 page not found".to_owned(),
            refused(&json!({})),
            refused(&json!({"name": "b", "kind": "namespaces"})),
        ] {
            let error = found(404, &unclear).await.expect_err("nothing is known of it");
            assert!(outcome(&error).is_some_and(Outcome::is_not_found), "{unclear}: {error}");
        }
        assert!(found(503, "no healthy upstream").await.is_err());
    }
}
