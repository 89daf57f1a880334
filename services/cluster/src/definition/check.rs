//! The rules of `apiextensions.k8s.io/v1` for a CustomResourceDefinition, with the API server's messages.

use kindex_kube_api::names::{rfc1035_label_problem, subdomain_problem};
use kindex_kube_api::schema::Structural;
use kindex_kube_api::scope::Scope;
use kindex_kube_api::status::FieldProblem;
use serde_json::Value;

use super::selectable;
use super::serve::versions;

/// Types that a printer column may have.
const COLUMN_TYPES: &str = "boolean,date,integer,number,string";

/// Everything that is wrong with `definition`; `before` is what it was, for an update.
pub(crate) fn problems(definition: &Value, before: Option<&Value>) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    check_name(definition, &mut found);
    check_group(definition, &mut found);
    check_scope(definition, &mut found);
    check_versions(definition, before, &mut found);
    check_names(definition, &mut found);
    check_stored_versions(definition, &mut found);
    if let Some(before) = before {
        check_immutable(definition, before, &mut found);
    }
    found
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn check_name(definition: &Value, found: &mut Vec<FieldProblem>) {
    let name = text(definition, "/metadata/name");
    if name
        != format!(
            "{}.{}",
            text(definition, "/spec/names/plural"),
            text(definition, "/spec/group")
        )
    {
        found.push(FieldProblem::invalid(
            "metadata.name",
            name,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
}

fn check_group(definition: &Value, found: &mut Vec<FieldProblem>) {
    let group = text(definition, "/spec/group");
    if group.is_empty() {
        found.push(FieldProblem::required("spec.group", ""));
    } else if let Some(problem) = subdomain_problem(group) {
        found.push(FieldProblem::invalid("spec.group", group, &problem));
    } else if !group.contains('.') {
        found.push(FieldProblem::invalid(
            "spec.group",
            group,
            "should be a domain with at least one dot",
        ));
    }
}

fn check_scope(definition: &Value, found: &mut Vec<FieldProblem>) {
    match text(definition, "/spec/scope") {
        "" => found.push(FieldProblem::required("spec.scope", "")),
        word if Scope::read(word).is_some() => {}
        other => found.push(FieldProblem::not_supported(
            "spec.scope",
            other,
            &Scope::ALL.map(Scope::as_str),
        )),
    }
}

fn check_versions(definition: &Value, before: Option<&Value>, found: &mut Vec<FieldProblem>) {
    let mut names: Vec<&str> = Vec::new();
    let several = versions(definition).count() > 1;
    for (at, version) in versions(definition).enumerate() {
        let path = format!("spec.versions[{at}]");
        let name = text(version, "/name");
        if let Some(problem) = rfc1035_label_problem(name) {
            found.push(FieldProblem::invalid(format!("{path}.name"), name, &problem));
        }
        names.push(name);
        match version.pointer("/schema/openAPIV3Schema") {
            None => found.push(FieldProblem::required(
                format!("{path}.schema.openAPIV3Schema"),
                if several { "schemas are required" } else { "" },
            )),
            Some(schema) => {
                let root = if several {
                    format!("{path}.schema")
                } else {
                    "spec.validation".to_owned()
                };
                check_schema(schema, &format!("{root}.openAPIV3Schema"), found);
            }
        }
        // The API server checks what all versions have in common as if it stood above them.
        let path = if several { path.as_str() } else { "spec" };
        check_columns(version, path, found);
        check_selectable(version, before, path, found);
    }
    names.sort_unstable();
    let shown = definition
        .pointer("/spec/versions")
        .cloned()
        .unwrap_or_default()
        .to_string();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        found.push(FieldProblem::invalid(
            "spec.versions",
            &shown,
            "must contain unique version names",
        ));
    }
    if versions(definition)
        .filter(|version| version["storage"] == true)
        .count()
        != 1
    {
        let rule = "must have exactly one version marked as storage version";
        found.push(FieldProblem::invalid("spec.versions", &shown, rule));
    }
}

fn check_schema(schema: &Value, path: &str, found: &mut Vec<FieldProblem>) {
    if let Err(errors) = Structural::parse_at(schema, path) {
        found.extend(errors.into_iter().map(FieldProblem::from));
    }
}

fn check_columns(version: &Value, path: &str, found: &mut Vec<FieldProblem>) {
    for (at, column) in version["additionalPrinterColumns"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = format!("{path}.additionalPrinterColumns[{at}]");
        if text(column, "/name").is_empty() {
            found.push(FieldProblem::required(format!("{path}.name"), ""));
        }
        let kind = text(column, "/type");
        let rule = format!("must be one of {COLUMN_TYPES}");
        if kind.is_empty() {
            found.push(FieldProblem::required(format!("{path}.type"), &rule));
        } else if !COLUMN_TYPES.split(',').any(|allowed| allowed == kind) {
            found.push(FieldProblem::invalid(format!("{path}.type"), kind, &rule));
        }
        if text(column, "/jsonPath").is_empty() {
            found.push(FieldProblem::required(format!("{path}.JSONPath"), ""));
        }
    }
}

/// The fields stay as they were where their version's are: what was accepted before stays.
fn check_selectable(version: &Value, before: Option<&Value>, path: &str, found: &mut Vec<FieldProblem>) {
    let schema = version.pointer("/schema/openAPIV3Schema").map(Structural::parse);
    // What is wrong with the schema is said of the schema.
    let Some(Ok(schema)) = schema else { return };
    let same = |former: &&Value| former["name"] == version["name"];
    let before = before.and_then(|before| versions(before).find(same));
    let before = before.map(|former| &former["selectableFields"]);
    let path = format!("{path}.selectableFields");
    selectable::check(&version["selectableFields"], before, &schema, &path, found);
}

fn check_names(definition: &Value, found: &mut Vec<FieldProblem>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let path = format!("spec.names.{field}");
        let name = text(definition, &format!("/spec/names/{field}"));
        if name.is_empty() {
            found.push(FieldProblem::required(path, ""));
        } else if let Some(problem) = rfc1035_label_problem(&name.to_lowercase()) {
            let mixed = field.to_lowercase().ends_with("kind");
            let rule = if mixed {
                format!("may have mixed case, but should otherwise match: {problem}")
            } else {
                problem
            };
            found.push(FieldProblem::invalid(path, name, &rule));
        } else if field == "plural" && name != name.to_lowercase() {
            let rule = rfc1035_label_problem(name).unwrap_or_default();
            found.push(FieldProblem::invalid(path, name, &rule));
        }
    }
    let (kind, list_kind) = (
        text(definition, "/spec/names/kind"),
        text(definition, "/spec/names/listKind"),
    );
    if !kind.is_empty() && kind == list_kind {
        found.push(FieldProblem::invalid(
            "spec.names.listKind",
            list_kind,
            "kind and listKind may not be the same",
        ));
    }
    for field in ["shortNames", "categories"] {
        for (at, name) in definition["spec"]["names"][field]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let name = name.as_str().unwrap_or_default();
            if let Some(problem) = rfc1035_label_problem(name) {
                found.push(FieldProblem::invalid(
                    format!("spec.names.{field}[{at}]"),
                    name,
                    &problem,
                ));
            }
        }
    }
}

fn check_stored_versions(definition: &Value, found: &mut Vec<FieldProblem>) {
    for (at, stored) in definition["status"]["storedVersions"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let stored = stored.as_str().unwrap_or_default();
        if !versions(definition).any(|version| version["name"] == stored) {
            let rule = format!(
                "missing from spec.versions; {stored} was previously a storage version, and must remain in spec.versions until \
                 a storage migration ensures no data remains persisted in {stored} and removes {stored} from \
                 status.storedVersions"
            );
            found.push(FieldProblem::invalid(
                format!("status.storedVersions[{at}]"),
                stored,
                &rule,
            ));
        }
    }
}

fn check_immutable(definition: &Value, before: &Value, found: &mut Vec<FieldProblem>) {
    let established = super::is_established(before);
    let fields = [
        ("/spec/group", "spec.group", true),
        ("/spec/names/plural", "spec.names.plural", true),
        ("/spec/scope", "spec.scope", established),
        ("/spec/names/kind", "spec.names.kind", established),
    ];
    for (pointer, path, fixed) in fields {
        if fixed && definition.pointer(pointer) != before.pointer(pointer) {
            found.push(FieldProblem::invalid(
                path,
                text(definition, pointer),
                "field is immutable",
            ));
        }
    }
}
