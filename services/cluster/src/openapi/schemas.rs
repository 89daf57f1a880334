//! The schemas of a document: those of the resources, with type and metadata filled in, and those of
//! `meta.k8s.io/v1` that they refer to. Knows nothing of paths.

use serde_json::{Map, Value, json};

use super::ResourceDoc;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
/// The names of the schemas that operations refer to.
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

const API_VERSION: &str = "The version of the schema that this object is written in.";
const KIND: &str = "What this object is, in the words of its API version.";

impl ResourceDoc {
    /// The schema's name in the document: the group backwards, the version, the kind (`com.example.v1.Widget`).
    pub(super) fn schema_name(&self, kind: &str) -> String {
        let group: Vec<&str> = match self.group.as_str() {
            "" => vec!["io", "k8s", "api", "core"],
            group => group.rsplit('.').collect(),
        };
        format!("{}.{}.{kind}", group.join("."), self.version)
    }

    pub(super) fn group_version_kind(&self, kind: &str) -> Value {
        json!({"group": self.group, "kind": kind, "version": self.version})
    }
}

/// Where a document refers to a schema.
pub(super) fn reference(schema_name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema_name}")})
}

/// The schema of a resource's objects.
pub(super) fn object(resource: &ResourceDoc) -> Value {
    let mut schema = if resource.schema.is_object() {
        resource.schema.clone()
    } else {
        json!({"type": "object"})
    };
    let own_metadata = schema
        .pointer("/properties/metadata/description")
        .and_then(Value::as_str);
    let metadata = own_metadata
        .filter(|text| !text.is_empty())
        .unwrap_or("Standard metadata of the object.")
        .to_owned();
    let fill = |schema: &mut Value, name: &str, property: Value| {
        schema["properties"][name] = property;
    };
    for (name, description) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        fill(&mut schema, name, json!({"type": "string", "description": description}));
    }
    fill(
        &mut schema,
        "metadata",
        described(&format!("{META}.ObjectMeta"), &metadata),
    );
    schema["x-kubernetes-group-version-kind"] = json!([resource.group_version_kind(&resource.kind)]);
    schema
}

/// The schema of a resource's lists.
pub(super) fn list(resource: &ResourceDoc) -> Value {
    json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": described(&format!("{META}.ListMeta"), "Standard metadata of the list."),
            "items": {
                "description": format!("The {} objects.", resource.kind),
                "type": "array",
                "items": reference(&resource.schema_name(&resource.kind)),
            },
        },
        "x-kubernetes-group-version-kind": [resource.group_version_kind(&resource.list_kind)],
    })
}

fn described(schema_name: &str, description: &str) -> Value {
    json!({"allOf": [reference(schema_name)], "description": description})
}

/// The schemas that every document has.
pub(super) fn metadata() -> Map<String, Value> {
    let schemas = [
        ("ObjectMeta", object_meta()),
        ("OwnerReference", owner_reference()),
        ("ManagedFieldsEntry", managed_fields_entry()),
        (
            "FieldsV1",
            record("A set of fields, as a trie of their paths.", &[], &[]),
        ),
        (
            "Time",
            json!({"description": "A time in the form of RFC 3339.", "type": "string", "format": "date-time"}),
        ),
        ("ListMeta", list_meta()),
        ("Status", status()),
        (
            "Patch",
            record("A patch, in the form that the content type says.", &[], &[]),
        ),
        ("DeleteOptions", delete_options()),
    ];
    schemas
        .into_iter()
        .map(|(name, schema)| (format!("{META}.{name}"), schema))
        .collect()
}

type Field = (&'static str, Value, &'static str);

/// An object schema; each field with its description.
fn record(description: &str, required: &[&str], fields: &[Field]) -> Value {
    let mut schema = json!({"description": description, "type": "object"});
    if !fields.is_empty() {
        let property = |(name, kind, description): &Field| {
            let mut kind = kind.clone();
            kind["description"] = json!(description);
            ((*name).to_owned(), kind)
        };
        schema["properties"] = fields.iter().map(property).collect::<Map<_, _>>().into();
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn text() -> Value {
    json!({"type": "string"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn integer() -> Value {
    json!({"type": "integer", "format": "int64"})
}

fn texts_by_name() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn of(name: &str) -> Value {
    json!({"allOf": [reference(&format!("{META}.{name}"))]})
}

fn object_meta() -> Value {
    let fields = [set_by_people(), set_by_the_server()].concat();
    record("What every stored object carries.", &[], &fields)
}

fn set_by_people() -> Vec<Field> {
    let owners = json!({
        "type": "array",
        "items": reference(&format!("{META}.OwnerReference")),
        "x-kubernetes-list-map-keys": ["uid"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "uid",
        "x-kubernetes-patch-strategy": "merge",
    });
    let finalizers = json!({
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "set",
        "x-kubernetes-patch-strategy": "merge",
    });
    vec![
        (
            "annotations",
            texts_by_name(),
            "Texts that tools attach to the object; not for selecting.",
        ),
        (
            "finalizers",
            finalizers,
            "What must be done before the object may go; it goes when the list is empty.",
        ),
        (
            "generateName",
            text(),
            "A prefix from which the server makes a unique name when name is empty.",
        ),
        (
            "labels",
            texts_by_name(),
            "Names and values by which objects are selected.",
        ),
        (
            "name",
            text(),
            "The name, unique within namespace and resource. Cannot be changed.",
        ),
        (
            "namespace",
            text(),
            "The namespace that the name is unique in. Cannot be changed.",
        ),
        (
            "ownerReferences",
            owners,
            "The objects that this one belongs to; it goes when they all are gone.",
        ),
    ]
}

fn set_by_the_server() -> Vec<Field> {
    let managed_fields = json!({
        "type": "array",
        "items": reference(&format!("{META}.ManagedFieldsEntry")),
        "x-kubernetes-list-type": "atomic",
    });
    vec![
        (
            "creationTimestamp",
            of("Time"),
            "When the object was created. Set by the server.",
        ),
        (
            "deletionGracePeriodSeconds",
            integer(),
            "How long the object may take to end. Set by the server.",
        ),
        (
            "deletionTimestamp",
            of("Time"),
            "When deletion was asked for. Set by the server.",
        ),
        (
            "generation",
            integer(),
            "Counts the changes of the desired state. Set by the server.",
        ),
        (
            "managedFields",
            managed_fields,
            "Who owns which fields. Kept by the server.",
        ),
        (
            "resourceVersion",
            text(),
            "Changes with every write. Give it back to write only on what was read.",
        ),
        ("selfLink", text(), "No longer filled in."),
        ("uid", text(), "Unique over space and time. Set by the server."),
    ]
}

fn owner_reference() -> Value {
    let mut schema = record(
        "Identifies an object that owns this one, in the same namespace or of the cluster.",
        &["apiVersion", "kind", "name", "uid"],
        &[
            ("apiVersion", text(), "API version of the owner."),
            (
                "blockOwnerDeletion",
                flag(),
                "Whether a foreground deletion of the owner waits for this object.",
            ),
            ("controller", flag(), "Whether the owner manages this object."),
            ("kind", text(), "Kind of the owner."),
            ("name", text(), "Name of the owner."),
            ("uid", text(), "UID of the owner."),
        ],
    );
    schema["x-kubernetes-map-type"] = json!("atomic");
    schema
}

fn managed_fields_entry() -> Value {
    record(
        "The fields of an object that one manager owns.",
        &[],
        &[
            ("apiVersion", text(), "The version in which the fields are named."),
            ("fieldsType", text(), "The form of the fields: FieldsV1."),
            ("fieldsV1", of("FieldsV1"), "The fields."),
            ("manager", text(), "Who owns them."),
            ("operation", text(), "How they came to be owned: Apply or Update."),
            (
                "subresource",
                text(),
                "The subresource through which they were written.",
            ),
            ("time", of("Time"), "When the set of fields last changed."),
        ],
    )
}

fn list_meta() -> Value {
    record(
        "What every list carries.",
        &[],
        &[
            ("continue", text(), "Where the next chunk begins; empty at the end."),
            (
                "remainingItemCount",
                integer(),
                "How many objects follow, where that is known.",
            ),
            ("resourceVersion", text(), "The version of the whole list."),
            ("selfLink", text(), "No longer filled in."),
        ],
    )
}

fn status() -> Value {
    record(
        "The outcome of a request that does not answer with an object.",
        &[],
        &[
            ("apiVersion", text(), API_VERSION),
            (
                "code",
                json!({"type": "integer", "format": "int32"}),
                "The HTTP status code.",
            ),
            ("details", json!({"type": "object"}), "What the outcome is about."),
            ("kind", text(), KIND),
            ("message", text(), "The outcome in words."),
            ("metadata", of("ListMeta"), "Standard metadata."),
            ("reason", text(), "Why, in one word."),
            ("status", text(), "Success or Failure."),
        ],
    )
}

fn delete_options() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"});
    record(
        "How to delete.",
        &[],
        &[
            ("apiVersion", text(), API_VERSION),
            ("dryRun", texts, "'All' deletes nothing."),
            ("gracePeriodSeconds", integer(), "How long the object may take to end."),
            ("kind", text(), KIND),
            (
                "orphanDependents",
                flag(),
                "Whether dependents stay. Use propagationPolicy instead.",
            ),
            (
                "preconditions",
                json!({"type": "object"}),
                "The uid and resourceVersion that the object must have.",
            ),
            (
                "propagationPolicy",
                text(),
                "What becomes of dependents: Orphan, Background or Foreground.",
            ),
        ],
    )
}
