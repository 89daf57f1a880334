//! Reviews of the caller: who it is and what it may do. They are answered, not stored. There is one user, who may do
//! everything.

use hyper::Method;
use kindex_kube_api::status::{FieldProblem, Status};
use kindex_kube_api::{fields, meta};
use serde_json::{Value, json};

use super::{Call, Reply, write};

/// The user of every request.
const USER: &str = "kindex";
const GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];

/// A review that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Review {
    Access,
    Rules,
    Subject,
}

impl Review {
    fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "SelfSubjectAccessReview" => Some(Self::Access),
            "SelfSubjectRulesReview" => Some(Self::Rules),
            "SelfSubjectReview" => Some(Self::Subject),
            _ => None,
        }
    }
}

/// Answers a review, which is asked for by POST alone.
pub(super) fn answer(call: &Call<'_>) -> Result<Reply, Status> {
    let review = Review::of_kind(&call.resource.names.kind);
    let (Some(review), &Method::POST, None) = (review, &call.request.method, &call.request.path.name) else {
        return Err(Status::method_not_allowed());
    };
    let (asked, warnings) = write::read_question(call)?;
    let answered = match review {
        Review::Access => {
            let problems = access_problems(&asked["spec"]);
            if !problems.is_empty() {
                // The API server names the group here, and no kind.
                return Err(Status::invalid(&call.resource.group, "", "", &problems));
            }
            with_status(call, asked, json!({"allowed": true}))?
        }
        Review::Rules => {
            if asked["spec"]["namespace"].as_str().unwrap_or_default().is_empty() {
                return Err(Status::bad_request("no namespace on request"));
            }
            answered_by(call, json!({}), all_rules())
        }
        Review::Subject => {
            let metadata = json!({"creationTimestamp": meta::time(call.api.now())});
            let mut answered = answered_by(
                call,
                Value::Null,
                json!({"userInfo": {"username": USER, "groups": GROUPS}}),
            );
            answered["metadata"] = metadata;
            answered
        }
    };
    Ok(Reply::value(201, &answered).warn(warnings))
}

/// The question with its answer; its fields belong to who asked.
fn with_status(call: &Call<'_>, asked: Value, status: Value) -> Result<Value, Status> {
    let schema = call.resource.schema.as_ref();
    let owned = fields::update(schema, None, asked, call.manager(), None, call.api.now());
    let mut answered = owned.map_err(|fields::TooLarge| Status::object_too_large())?;
    answered["status"] = status;
    Ok(answered)
}

/// An answer that repeats nothing of who asked; without `spec` where that is null.
fn answered_by(call: &Call<'_>, spec: Value, status: Value) -> Value {
    let mut answered = json!({
        "apiVersion": call.resource.api_version,
        "kind": call.resource.names.kind,
        "metadata": {},
        "status": status,
    });
    if !spec.is_null() {
        answered["spec"] = spec;
    }
    answered
}

fn all_rules() -> Value {
    json!({
        "incomplete": false,
        "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
        "resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    })
}

/// An action is one on a resource or one on a path.
fn access_problems(spec: &Value) -> Vec<FieldProblem> {
    match (&spec["resourceAttributes"], &spec["nonResourceAttributes"]) {
        (Value::Null, Value::Null) => {
            let rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![FieldProblem::invalid_number("spec.resourceAttributes", "null", rule)]
        }
        (Value::Null, _) | (_, Value::Null) => Vec::new(),
        (_, other) => {
            let other = json!({"Path": other["path"], "Verb": other["verb"]});
            let rule = "cannot be specified in combination with resourceAttributes";
            vec![FieldProblem::invalid_number(
                "spec.nonResourceAttributes",
                &other.to_string(),
                rule,
            )]
        }
    }
}
