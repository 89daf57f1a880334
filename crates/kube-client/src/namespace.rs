//! Whether a write was refused for its namespace alone.

use kindex_kube_api::status::Outcome;

use super::classify::outcome;

/// Whether the cluster has no such namespace, or is about to have none: a namespace that is being deleted takes nothing
/// more.
pub(super) fn is_without_namespace(error: &kube::Error) -> bool {
    outcome(error).is_some_and(|outcome| outcome.is_not_found() || outcome == Outcome::NamespaceTerminating)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    /// The cause of Kubernetes.
    const TERMINATING: &str = "NamespaceTerminating";

    /// As if a namespace that is being deleted took events, or every refusal were about the namespace.
    #[test]
    fn a_namespace_is_missing_where_it_is_not_there_or_is_being_deleted() {
        for (code, cause, expected) in [
            (404, "", true),
            (403, TERMINATING, true),
            (403, "", false),
            (422, TERMINATING, false),
        ] {
            let causes = json!([{"reason": cause, "message": "m", "field": "metadata.namespace"}]);
            let status = json!({"status": "Failure", "code": code, "message": "m", "details": {"causes": causes}});
            let status: Status = serde_json::from_value(status).expect("a status");
            let found = is_without_namespace(&kube::Error::Api(Box::new(status)));
            assert_eq!(found, expected, "{code} {cause:?}");
        }
    }
}
