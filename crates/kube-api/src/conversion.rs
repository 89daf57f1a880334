//! `ConversionReview`, with which an API server asks a webhook for objects in another version: both sides of it. What
//! an object is in another version is not known here.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/>

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The version of reviews that is spoken, as `conversionReviewVersions` names it.
pub const VERSION: &str = "v1";
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

const SUCCESS: &str = "Success";
const FAILURE: &str = "Failure";

/// Why there is no answer to a review.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The body is no review.
    #[error("not a {KIND}: {0}")]
    Body(#[from] serde_json::Error),
    /// It is of another version, or something else.
    #[error("{0} {1} is not answered here: only {API_VERSION} {KIND} is")]
    Unknown(String, String),
}

/// A review as a webhook reads it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionReview<'t> {
    api_version: String,
    kind: String,
    /// What is asked for.
    #[serde(borrow)]
    pub request: Request<'t>,
}

/// What is asked for.
#[derive(Debug, Deserialize)]
pub struct Request<'t> {
    /// The answer has it, too.
    pub uid: String,
    /// `group/version` of the objects that are asked for.
    #[serde(rename = "desiredAPIVersion")]
    pub desired_api_version: String,
    /// The text of the list of objects.
    #[serde(borrow)]
    pub objects: &'t RawValue,
}

impl<'t> ConversionReview<'t> {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// What is no review of the version that is spoken.
    pub fn read(text: &'t [u8]) -> Result<Self, ReviewError> {
        let review: Self = serde_json::from_slice(text)?;
        if review.api_version == API_VERSION && review.kind == KIND {
            return Ok(review);
        }
        Err(ReviewError::Unknown(review.api_version, review.kind))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'t> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'t>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'t> {
    uid: &'t str,
    converted_objects: Vec<Box<RawValue>>,
    result: Verdict,
}

#[derive(Serialize)]
struct Verdict {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The answer of a webhook to the question of this uid: the objects in their order, or why there are none.
pub fn answer(uid: &str, converted: Result<Vec<Box<RawValue>>, String>) -> String {
    let (converted_objects, status, message) = match converted {
        Ok(objects) => (objects, SUCCESS, None),
        Err(message) => (Vec::new(), FAILURE, Some(message)),
    };
    let answer = Answer {
        api_version: API_VERSION,
        kind: KIND,
        response: Response {
            uid,
            converted_objects,
            result: Verdict { status, message },
        },
    };
    serde_json::to_string(&answer).expect("an answer holds only texts, and JSON as text")
}

/// The review that asks a webhook for one object in `api_version`.
pub fn question(uid: &str, object: &Value, api_version: &str) -> Value {
    json!({"kind": KIND, "apiVersion": API_VERSION,
        "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": [object]}})
}

/// The objects of a webhook's answer, if it is one to the question of this uid and a success.
///
/// # Errors
/// What is wrong with it, in the words of kube-apiserver; where it is a failure, in those of the webhook.
pub fn objects(uid: &str, mut answer: Value) -> Result<Vec<Value>, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&answer["apiVersion"]), text(&answer["kind"]));
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
        let expected = named(API_VERSION, KIND);
        return Err(format!(
            "expected webhook response of {expected}, got {}",
            named(&api_version, &kind)
        ));
    }
    let mut response = answer["response"].take();
    if response.is_null() {
        return Err("no response provided".to_owned());
    }
    let given = text(&response["uid"]);
    if given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let result = &response["result"];
    match (text(&result["status"]).as_str(), text(&result["message"])) {
        (SUCCESS, _) => {}
        (status, message) if message.is_empty() => {
            return Err(format!("response.result.status was '{status}', not '{SUCCESS}'"));
        }
        (_, message) => return Err(message),
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// A kind in a version, as messages of kube-apiserver name it.
pub fn named(api_version: &str, kind: &str) -> String {
    format!("{api_version}, Kind={kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if the two sides spelled a field in two ways.
    #[test]
    fn a_webhook_reads_what_is_asked_and_is_understood() {
        let object = json!({"apiVersion": "g/v1", "kind": "Widget", "spec": {"n": 1}});
        let asked = question("7", &object, "g/v2").to_string();
        let review = ConversionReview::read(asked.as_bytes()).expect("a review");
        let Request {
            uid,
            desired_api_version,
            objects: sent,
        } = review.request;
        assert_eq!((uid.as_str(), desired_api_version.as_str()), ("7", "g/v2"));
        let sent: Vec<Box<RawValue>> = serde_json::from_str(sent.get()).expect("a list");
        let understood = |uid: &str, text: &str| objects(uid, serde_json::from_str(text).expect("JSON"));
        assert_eq!(understood("7", &answer("7", Ok(sent))), Ok(vec![object]));
        let failure = answer("7", Err("no form".to_owned()));
        assert_eq!(understood("7", &failure), Err("no form".to_owned()));
        let another = "expected response.uid=\"8\", got \"7\"".to_owned();
        assert_eq!(understood("8", &failure), Err(another));
    }

    #[test]
    fn another_version_is_no_answer_and_is_not_answered() {
        let expected = "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
                        apiextensions.k8s.io/v1beta1, Kind=ConversionReview";
        let old = json!({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": KIND});
        assert_eq!(objects("7", old), Err(expected.to_owned()));
        let old = r#"{"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview",
            "request": {"uid": "7", "desiredAPIVersion": "g/v2", "objects": []}}"#;
        let refused = ConversionReview::read(old.as_bytes());
        assert!(matches!(refused, Err(ReviewError::Unknown(..))), "{refused:?}");
        let body = ConversionReview::read(b"{}");
        assert!(matches!(body, Err(ReviewError::Body(_))), "{body:?}");
    }
}
