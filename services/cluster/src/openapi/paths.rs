//! The paths of a resource with their operations and parameters. Knows nothing of schemas but their names.

use kindex_kube_api::media::OBJECT_TYPES;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::{API, APIS, Verb, parameter};
use kindex_kube_api::scope::Scope;
use serde_json::{Map, Value, json};

use super::ResourceDoc;
use super::schemas::{self, reference};

/// A query parameter: name, type, description.
type Parameter = (&'static str, &'static str, &'static str);

const PRETTY: Parameter = (parameter::PRETTY, "string", "If 'true', the output is pretty printed.");
const DRY_RUN: Parameter = (
    parameter::DRY_RUN,
    "string",
    "'All' processes the request without storing anything.",
);
const FIELD_MANAGER: Parameter = (
    parameter::FIELD_MANAGER,
    "string",
    "Who or what makes the change. Required for apply, at most 128 characters.",
);
const FIELD_VALIDATION: Parameter = (
    parameter::FIELD_VALIDATION,
    "string",
    "What to do about unknown and duplicate fields. Ignore: drop them. Warn: drop them and answer with a warning for each. \
     Strict: refuse the request, naming all of them.",
);
const FORCE: Parameter = (
    "force",
    "boolean",
    "Take over fields that other managers own. Only for apply.",
);

const LIST: [Parameter; 11] = [
    PRETTY,
    (
        parameter::ALLOW_WATCH_BOOKMARKS,
        "boolean",
        "Ask for events of type BOOKMARK in a watch.",
    ),
    (
        parameter::CONTINUE,
        "string",
        "Where the next chunk of a list begins, from the answer with the one before.",
    ),
    (parameter::FIELD_SELECTOR, "string", "Only objects whose fields match."),
    (parameter::LABEL_SELECTOR, "string", "Only objects whose labels match."),
    (parameter::LIMIT, "integer", "At most this many objects in one answer."),
    (
        parameter::RESOURCE_VERSION,
        "string",
        "How old the answer may be, or where a watch begins.",
    ),
    (
        parameter::RESOURCE_VERSION_MATCH,
        "string",
        "How resourceVersion is meant: NotOlderThan or Exact.",
    ),
    (
        parameter::SEND_INITIAL_EVENTS,
        "boolean",
        "Begin a watch with the objects that there are.",
    ),
    (parameter::TIMEOUT_SECONDS, "integer", "How long the request may take."),
    (
        parameter::WATCH,
        "boolean",
        "Stream the changes instead of listing the objects.",
    ),
];
const READ: [Parameter; 1] = [PRETTY];
const WRITE: [Parameter; 4] = [PRETTY, DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
const PATCH: [Parameter; 5] = [PRETTY, DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];
const DELETE: [Parameter; 5] = [
    PRETTY,
    DRY_RUN,
    (
        parameter::GRACE_PERIOD_SECONDS,
        "integer",
        "How long the object may take to end.",
    ),
    (
        parameter::ORPHAN_DEPENDENTS,
        "boolean",
        "Whether dependents stay. Use propagationPolicy instead.",
    ),
    (
        parameter::PROPAGATION_POLICY,
        "string",
        "What becomes of dependents: Orphan, Background or Foreground.",
    ),
];

const PATCH_TYPES: [&str; 3] = [
    PatchType::Json.media_type(),
    PatchType::Merge.media_type(),
    PatchType::Apply.media_type(),
];

/// One operation, as the tables below say it.
struct Operation {
    method: &'static str,
    verb: Verb,
    parameters: &'static [Parameter],
    body: Body,
    answer: Answer,
}

impl Operation {
    /// The action of an operation: `list`, `post`, `deletecollection` …
    fn action(&self) -> &'static str {
        match self.verb {
            Verb::Create => "post",
            Verb::Update => "put",
            Verb::Get
            | Verb::List
            | Verb::Watch
            | Verb::Patch
            | Verb::Delete
            | Verb::DeleteCollection
            | Verb::Impersonate => self.verb.as_str(),
        }
    }

    /// The first word of an operation's id: `read`, `replace` …
    fn id(&self) -> &'static str {
        match self.verb {
            Verb::Get => "read",
            Verb::Update => "replace",
            Verb::List
            | Verb::Watch
            | Verb::Create
            | Verb::Patch
            | Verb::Delete
            | Verb::DeleteCollection
            | Verb::Impersonate => self.verb.as_str(),
        }
    }
}

#[derive(Clone, Copy)]
enum Body {
    Nothing,
    Object,
    Patch,
    DeleteOptions,
}

#[derive(Clone, Copy)]
enum Answer {
    Object,
    List,
    Status,
}

const fn operation(
    method: &'static str,
    verb: Verb,
    parameters: &'static [Parameter],
    body: Body,
    answer: Answer,
) -> Operation {
    Operation {
        method,
        verb,
        parameters,
        body,
        answer,
    }
}

const LIST_OPERATION: Operation = operation("get", Verb::List, &LIST, Body::Nothing, Answer::List);
const COLLECTION: [Operation; 3] = [
    LIST_OPERATION,
    operation("post", Verb::Create, &WRITE, Body::Object, Answer::Object),
    operation(
        "delete",
        Verb::DeleteCollection,
        &LIST,
        Body::DeleteOptions,
        Answer::Status,
    ),
];
const READ_REPLACE_PATCH: [Operation; 3] = [
    operation("get", Verb::Get, &READ, Body::Nothing, Answer::Object),
    operation("put", Verb::Update, &WRITE, Body::Object, Answer::Object),
    operation("patch", Verb::Patch, &PATCH, Body::Patch, Answer::Object),
];
const DELETE_OPERATION: Operation = operation("delete", Verb::Delete, &DELETE, Body::DeleteOptions, Answer::Status);

/// Adds the paths of `resource`.
pub(super) fn add(group_version: &str, resource: &ResourceDoc, paths: &mut Map<String, Value>) {
    let prefix = if resource.group.is_empty() { API } else { APIS };
    let plural = &resource.plural;
    let everywhere = format!("{prefix}/{group_version}/{plural}");
    let collection = if resource.namespaced {
        let all = PathScope {
            resource,
            namespaced: false,
            named: false,
            suffix: "ForAllNamespaces",
        };
        paths.insert(everywhere, all.item([&LIST_OPERATION]));
        format!("{prefix}/{group_version}/namespaces/{{namespace}}/{plural}")
    } else {
        everywhere
    };
    let place = |named: bool, suffix: &'static str| PathScope {
        resource,
        namespaced: resource.namespaced,
        named,
        suffix,
    };
    paths.insert(
        format!("{collection}/{{name}}"),
        place(true, "").item(READ_REPLACE_PATCH.iter().chain([&DELETE_OPERATION])),
    );
    if resource.status {
        paths.insert(
            format!("{collection}/{{name}}/status"),
            place(true, "Status").item(&READ_REPLACE_PATCH),
        );
    }
    paths.insert(collection, place(false, "").item(&COLLECTION));
}

/// A path, by what is in it.
struct PathScope<'a> {
    resource: &'a ResourceDoc,
    namespaced: bool,
    named: bool,
    suffix: &'static str,
}

impl PathScope<'_> {
    fn item<'o>(&self, operations: impl IntoIterator<Item = &'o Operation>) -> Value {
        let mut item: Map<String, Value> = operations
            .into_iter()
            .map(|operation| (operation.method.to_owned(), self.operation(operation)))
            .collect();
        let mut parameters = Vec::new();
        if self.named {
            parameters.push(in_path("name", &format!("name of the {}", self.resource.kind)));
        }
        if self.namespaced {
            parameters.push(in_path("namespace", "the namespace of the objects"));
        }
        if !parameters.is_empty() {
            item.insert("parameters".to_owned(), parameters.into());
        }
        item.into()
    }

    fn operation(&self, operation: &Operation) -> Value {
        let kind = &self.resource.kind;
        let scope = if self.namespaced {
            Scope::Namespaced.as_str()
        } else {
            ""
        };
        let schema = match operation.answer {
            Answer::Object => reference(&self.resource.schema_name(kind)),
            Answer::List => reference(&self.resource.schema_name(&self.resource.list_kind)),
            Answer::Status => reference(schemas::STATUS),
        };
        let mut described = json!({
            "operationId": format!("{}{scope}{kind}{}", operation.id(), self.suffix),
            "description": format!("{} {kind}", operation.id()),
            "parameters": operation.parameters.iter().map(in_query).collect::<Vec<_>>(),
            "responses": {"200": {"description": "OK", "content": content(&OBJECT_TYPES, &schema)}},
            "x-kubernetes-action": operation.action(),
            "x-kubernetes-group-version-kind": self.resource.group_version_kind(kind),
        });
        let (types, body): (&[&str], _) = match operation.body {
            Body::Nothing => return described,
            Body::Object => (&OBJECT_TYPES, reference(&self.resource.schema_name(kind))),
            Body::Patch => (&PATCH_TYPES, reference(schemas::PATCH)),
            Body::DeleteOptions => (&OBJECT_TYPES, reference(schemas::DELETE_OPTIONS)),
        };
        described["requestBody"] = json!({"content": content(types, &body)});
        described
    }
}

fn content(types: &[&str], schema: &Value) -> Value {
    types
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "schema": schema })))
        .collect::<Map<_, _>>()
        .into()
}

fn in_query((name, kind, description): &Parameter) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": kind, "uniqueItems": true},
    })
}

fn in_path(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": description,
        "schema": {"type": "string", "uniqueItems": true},
    })
}
