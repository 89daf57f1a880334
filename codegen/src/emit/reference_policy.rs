//! What keeps references on objects: a policy by which kube-apiserver refuses to take finalizers off that are
//! references, unless Kindex does so, or somebody who may speak for the holder says which one.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>

use serde::Serialize;

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::{Kind, Model};

/// Where the manifest is for people, and where the chart has the same file, to the byte.
const PATHS: [&str; 2] = [
    "schema/admission/references.yaml",
    "deploy/helm/kindex/files/references.yaml",
];

/// The accounts of the chart that take references off; it puts those of its release in their place.
const ACCOUNTS: &str = "['system:serviceaccount:kindex:kindex-api', 'system:serviceaccount:kindex:kindex-deletion', \
    'system:serviceaccount:kindex:kindex-ingester']";
/// Whose members may take off every reference.
const GROUPS: &str = "['kindex:reference-operators']";

/// What a write that takes finalizers off, or puts some on, is recognized by: all others cost nothing.
const CHANGES: &str = "has(oldObject.metadata.finalizers) && (!has(object.metadata.finalizers) \
    || oldObject.metadata.finalizers != object.metadata.finalizers)";
/// As `ReferenceName::of_finalizer` of the model of kinds reads them.
const TAKEN_OFF: &str = "oldObject.metadata.finalizers.filter(f, \
    f.matches('^[a-z0-9-]+([.][a-z0-9-]+)+/[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$') \
    && !(f in variables.kept))";
/// Those of them that nobody names, or whose holder the user may not speak for. That is the right which the API wants
/// of whoever releases a reference of a holder that it does not know: to update `references` of all objects of its
/// kind. As there, the plural of a kind that is not among the plurals is taken to be the kind and an `s`.
///
/// Of what an expression may cost (`PerCallLimit` of `k8s.io/apiserver/pkg/apis/cel`), a check takes more than a third
/// (`CallCost` of `k8s.io/apiserver/pkg/cel/library`): with three of them, kube-apiserver refuses the change.
const REFUSED: &str = "variables.takenOff.filter(f, !(f in variables.released) \
    || !authorizer.group(f.substring(f.indexOf('.') + 1, f.indexOf('/')))\
    .resource(f.substring(0, f.indexOf('/')) in variables.plurals \
    ? variables.plurals[f.substring(0, f.indexOf('/'))] : f.substring(0, f.indexOf('.')) + 's')\
    .subresource('references').check('update').allowed())";
const KEPT: &str = "has(object.metadata.finalizers) ? object.metadata.finalizers : []";
/// What costs most comes last, and is evaluated for others alone: the accounts release many references at once, after
/// the API has checked the same right of its caller.
const ALLOWED: &str = "request.userInfo.username in variables.accounts \
    || request.userInfo.groups.exists(group, group in variables.groups) || variables.refused.size() == 0";

/// One file, in each of its places.
pub(super) fn emit(model: &Model) -> Artifacts {
    let list = List {
        api_version: "v1",
        kind: "List",
        items: (policy(model), binding(model)),
    };
    let yaml = serde_saphyr::to_string(&list).expect("a manifest holds only text");
    let text = format!("# {HEADER}\n{yaml}");
    let files = PATHS.map(|path| (RelativePath::new(path), text.clone()));
    files.into_iter().collect()
}

fn name(model: &Model) -> String {
    format!("references.{}", model.platform.group)
}

fn policy(model: &Model) -> Manifest<Policy> {
    // As `kindex references drop` writes it.
    let annotation = format!("{}/release-references", model.platform.group);
    let released = format!(
        "has(object.metadata.annotations) && '{annotation}' in object.metadata.annotations \
         ? object.metadata.annotations['{annotation}'].split(',') : []"
    );
    // Here nobody can be asked for rights: all that are taken off are named.
    let message = format!(
        "'references keep this object for those who use it, and are released by way of kindex api: ' \
         + variables.takenOff.join(', ') + '. For what is left behind: kindex references drop KIND/NAME REFERENCE \
         --force --reason TEXT, or name the references in the annotation {annotation}. Both take the right to update \
         the subresource references of their holders'"
    );
    let variable = |name, expression: &str| Variable {
        name,
        expression: expression.to_owned(),
    };
    Manifest {
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        metadata: Metadata { name: name(model) },
        spec: Policy {
            failure_policy: "Fail",
            match_constraints: Constraints {
                resource_rules: rules(model),
            },
            match_conditions: [variable("changes-finalizers", CHANGES)],
            variables: [
                variable("accounts", ACCOUNTS),
                variable("groups", GROUPS),
                variable("kept", KEPT),
                variable("released", &released),
                variable("takenOff", TAKEN_OFF),
                variable("plurals", &plurals(model)),
                variable("refused", REFUSED),
            ],
            validations: [Validation {
                expression: ALLOWED,
                message_expression: message,
                reason: "Forbidden",
            }],
        },
    }
}

fn binding(model: &Model) -> Manifest<Binding> {
    Manifest {
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: Metadata { name: name(model) },
        spec: Binding {
            policy_name: name(model),
            validation_actions: ["Deny"],
        },
    }
}

/// Of each kind, as references call it, the plural. Of other services those alone that nobody can guess.
fn plurals(model: &Model) -> String {
    let own = model.kinds.iter();
    let own = own.map(|kind| (kind.name.as_str(), &kind.group, kind.plural.as_str()));
    let others = model.services.iter().flat_map(|service| {
        let (group, plurals) = (&service.group, service.odd_plurals());
        plurals.map(move |(kind, plural)| (kind, group, plural))
    });
    let plurals = own.chain(others).map(|(kind, group, plural)| {
        let kind = kind.to_ascii_lowercase();
        format!("'{kind}.{group}': '{plural}'")
    });
    let plurals: Vec<_> = plurals.collect();
    format!("{{{}}}", plurals.join(", "))
}

/// Every kind that the cluster has: others than those of the declared graph may be held too. Where it has none, every
/// kind, since kube-apiserver takes no policy without rules.
fn rules(model: &Model) -> Vec<Rule> {
    let has_some = model.kinds.iter().any(|kind| kind.cluster);
    let kinds = model.kinds.iter().filter(|kind| kind.cluster || !has_some);
    let mut groups: Vec<&str> = kinds.clone().map(|kind| kind.group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    let rule = |group: &str| {
        let kinds = kinds.clone().filter(|kind| kind.group.as_str() == group);
        Rule {
            api_groups: [group.to_owned()],
            api_versions: ["*"],
            operations: ["UPDATE"],
            resources: kinds.map(|kind: &Kind| kind.plural.clone()).collect(),
        }
    };
    groups.into_iter().map(rule).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: &'static str,
    kind: &'static str,
    items: (Manifest<Policy>, Manifest<Binding>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<S> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: S,
}

#[derive(Serialize)]
struct Metadata {
    name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    failure_policy: &'static str,
    match_constraints: Constraints,
    match_conditions: [Variable; 1],
    variables: [Variable; 7],
    validations: [Validation; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Constraints {
    resource_rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: [String; 1],
    api_versions: [&'static str; 1],
    operations: [&'static str; 1],
    resources: Vec<String>,
}

#[derive(Serialize)]
struct Variable {
    name: &'static str,
    expression: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Validation {
    expression: &'static str,
    message_expression: String,
    reason: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    policy_name: String,
    validation_actions: [&'static str; 1],
}
