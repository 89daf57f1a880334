//! What the emitted roles grant, as the witness of requests would say it.

use std::collections::BTreeSet;

use kindex_harness::witness::Permission;
use serde_json::Value;

use super::root;

/// What emitted roles grant.
pub(super) fn granted(roles: &[&str]) -> BTreeSet<Permission> {
    let mut permissions = BTreeSet::new();
    for role in roles {
        let text = std::fs::read_to_string(root().join(format!("schema/rbac/{role}.yaml"))).expect("a file");
        let role: Value = serde_saphyr::from_str(&text).expect("YAML");
        for rule in role["rules"].as_array().expect("rules") {
            let words = |field: &str| -> Vec<String> {
                let words = rule[field].as_array().expect("a list").iter();
                words.map(|word| word.as_str().expect("text").to_owned()).collect()
            };
            for (verb, resource) in words("verbs").iter().flat_map(|verb| {
                words("resources")
                    .into_iter()
                    .map(move |resource| (verb.clone(), resource))
            }) {
                permissions.insert((verb, words("apiGroups")[0].clone(), resource));
            }
        }
    }
    permissions
}
