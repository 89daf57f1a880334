//! The rules of lowering, on the reference of `crds.toml` and on small declarations. Errors have their own cases
//! under `tests/reject`.

use std::path::Path;

use super::{Lowered, Manifests, lower};
use crate::diag::{Collector, Diagnostics};
use crate::grammar::{FILE, Section, Sort};
use crate::model::{
    Cardinality, ColumnType, FieldType, Holder, KindName, MapKey, Message, MessageName, Model, Named, OnDelete, Part,
    Reference, ReferenceTarget, Scalar, Shape, SqlType, SubresourceStatus, WellKnown,
};
use crate::source::Sources;
use crate::{lock, spec};

const REFERENCE: &str = include_str!("../reference.toml");

const TRIAL: &str = r#"
syntax = "proto3";
package reference.v1;
import "k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto";
import "michelangelo/api/resource.proto";
import "michelangelo/api/v2/user.proto";

// A trial as the message has it.
message Trial {
  k8s.io.apimachinery.pkg.apis.meta.v1.TypeMeta type_meta = 1;
  k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 2;
  TrialSpec spec = 3;
  TrialStatus status = 4;
}
message TrialSpec {
  // Name of the algorithm.
  // On two lines.
  string algorithm = 1;
  michelangelo.api.ResourceIdentifier model = 2;
  michelangelo.api.ResourceIdentifier subject = 3;
  string subject_kind = 4;
  michelangelo.api.v2.UserInfo author = 5;
  string keeper = 6;
}
message TrialStatus {
  State state = 1;
  repeated Step steps = 2;
  map<int32, Step> by_number = 3;
  optional int64 attempts = 4;
  oneof outcome {
    string report = 5;
    bool skipped = 6;
  }
}
message Step { repeated Step children = 1; }
enum State { STATE_INVALID = 0; STATE_DONE = 1; }
"#;

const WIDGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  names: { kind: Widget, plural: widgets, singular: widget }
  scope: Cluster
  versions:
    - name: v1alpha1
      served: true
      storage: false
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              description: What is wanted.
              properties:
                size: { type: integer, format: int32, description: How big. }
                port: { x-kubernetes-int-or-string: true }
                "git-ref": { type: string }
                since: { type: string, format: date-time }
                labels: { type: object, additionalProperties: { type: string } }
                anything: { type: object, x-kubernetes-preserve-unknown-fields: true }
                parts:
                  type: array
                  items: { type: object, properties: { name: { type: string } } }
"#;

/// Lowers a declaration with the messages above and, if given, the lock of an earlier run.
fn lower_text(crds: &str, old_lock: Option<&str>) -> Result<Lowered, Diagnostics> {
    let mut sources = Sources::of_crds(crds);
    sources.add_proto("reference/v1/trial.proto", TRIAL);
    let resource = include_str!("../../../proto/michelangelo/api/resource.proto");
    sources.add_proto("michelangelo/api/resource.proto", resource);
    let user = include_str!("../../../proto/michelangelo/api/v2/user.proto");
    sources.add_proto("michelangelo/api/v2/user.proto", user);
    let mut manifests = Manifests::new();
    let file = sources.add("widgets.yaml", WIDGETS);
    manifests.insert("widgets.yaml".to_owned(), file);
    if let Some(text) = old_lock {
        sources.add_lock(text);
    }
    let mut found = Collector::default();
    let spec = spec::parse(&sources, &mut found);
    let old_lock = lock::parse(&sources, &mut found);
    let lowered = lower(&spec, &manifests, &sources, &old_lock, &mut found);
    lowered.ok_or_else(|| found.into_diagnostics(sources))
}

fn lower_reference() -> Lowered {
    lower_text(REFERENCE, None).unwrap_or_else(|errors| panic!("{errors}"))
}

fn message<'m>(model: &'m Model, name: &str) -> &'m Message {
    model.message(&MessageName::parse(name).expect("valid"))
}

fn kind<'m>(model: &'m Model, name: &str) -> &'m crate::model::Kind {
    let name = KindName::parse(name).expect("valid");
    model.kind(&name).expect("declared")
}

/// The platform's table, so that small declarations need not repeat it.
fn with_platform(kinds: &str) -> String {
    let end = REFERENCE.find("# --- A kind").expect("the platform comes first");
    format!("{}\n{kinds}", &REFERENCE[..end])
}

#[test]
fn the_reference_has_no_error_and_every_key() {
    let lowered = lower_reference();
    assert_eq!(lowered.model.kinds.len(), 3);
    let table: toml::Table = REFERENCE.parse().expect("valid TOML");
    let mut missing = Vec::new();
    find_missing(&FILE, &[&table], &mut missing);
    assert!(missing.is_empty(), "not in reference.toml: {missing:?}");
}

/// A key counts as documented if one of the tables that belong to its section has it.
fn find_missing(section: &Section, tables: &[&toml::Table], missing: &mut Vec<String>) {
    for key in section.keys {
        let values: Vec<&toml::Value> = tables.iter().filter_map(|table| table.get(key.name)).collect();
        if values.is_empty() {
            missing.push(format!("{}.{}", section.name, key.name));
        }
        let inner: Vec<&toml::Table> = values.iter().filter_map(|value| value.as_table()).collect();
        match key.sort {
            Sort::Table(section) => find_missing(section, &inner, missing),
            Sort::Each { section, .. } | Sort::Entries { section, .. } => {
                let items = values.iter().filter_map(|value| value.as_array()).flatten();
                let entries = inner.iter().flat_map(|table| table.values()).chain(items);
                let entries: Vec<&toml::Table> = entries.filter_map(toml::Value::as_table).collect();
                find_missing(section, &entries, missing);
            }
            Sort::Text | Sort::Texts | Sort::Flag | Sort::Count | Sort::Scalar | Sort::Choice(_) | Sort::Fields => {}
        }
    }
}

/// What is declared again may be stored again.
#[test]
fn the_lock_has_every_version_and_forgets_that_one_was_dropped() {
    let declared = with_platform("[kinds.Run]\nfields = { spec = { size = \"int32\" } }\n[kinds.Run.versions.v1]\n");
    let old = "dropped Run michelangelo.api/v1 a-cluster\ndropped Run michelangelo.api/v1beta1\n\
               version Run michelangelo.api/v1beta1 AAAAAAAAAAA=\n";
    let lowered = lower_text(&declared, Some(old)).unwrap_or_else(|errors| panic!("{errors}"));
    let text = lowered.lock.emit().into_values().next().expect("one file");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" Run ")).collect();
    let facts: Vec<&str> = lines
        .iter()
        .map(|line| line.rsplit_once(' ').map_or(*line, |(fact, _)| fact))
        .collect();
    assert_eq!(
        facts,
        [
            "dropped Run",
            "version Run michelangelo.api/v1",
            "version Run michelangelo.api/v1beta1",
            "version Run michelangelo.api/v2",
        ]
    );
    assert_eq!(lines[0], "dropped Run michelangelo.api/v1beta1");
}

#[test]
fn columns_follow_from_the_types_of_their_fields() {
    let model = lower_reference().model;
    let trial = kind(&model, "Trial");
    let columns: Vec<(&str, SqlType)> = trial
        .columns
        .iter()
        .map(|column| (column.name.as_str(), column.sql))
        .collect();
    let text = SqlType::VarChar(255);
    assert_eq!(
        columns,
        [
            ("algorithm", text),
            ("state", SqlType::VarChar(64)),
            ("kept_by", text),
            ("model_namespace", text),
            ("model_name", text),
            ("subject_namespace", text),
            ("subject_name", text),
            ("subject_kind", text),
            ("author_name", text),
            ("author_proxy_user", text),
        ]
    );
    assert!(matches!(trial.columns[1].ty, ColumnType::Enum(_)));
    assert!(trial.columns[2].was.as_ref().is_some_and(|was| was == "keeper"));
    let proxy = &trial.columns[9];
    assert_eq!(proxy.path.json_dotted(), "spec.author.proxyUser");
    assert_eq!(proxy.path.proto_dotted(), "spec.author.proxy_user");
    assert_eq!(proxy.group.as_ref().map(|group| group.part), Some(Part::UserProxyUser));
    assert_eq!(trial.columns[0].doc, "Name of the algorithm.\nOn two lines.");
}

#[test]
fn a_resource_identifier_has_one_key_and_a_user_info_two() {
    let model = lower_reference().model;
    let keys: Vec<String> = kind(&model, "Trial")
        .keys
        .iter()
        .map(|key| {
            let columns: Vec<&str> = key.columns.iter().map(AsRef::as_ref).collect();
            format!("{}({})", key.name, columns.join(","))
        })
        .collect();
    assert_eq!(
        keys,
        [
            "trial_namespace_name(namespace,name)",
            "trial_create_time(create_time)",
            "trial_delete_time(delete_time)",
            "trial_state(state)",
            "trial_model(model_namespace,model_name)",
            "trial_author_name(author_name)",
            "trial_author_proxy_user(author_proxy_user)",
        ]
    );
}

#[test]
fn references_name_a_kind_or_the_column_that_holds_it() {
    let model = lower_reference().model;
    let references = &kind(&model, "Trial").references;
    let (model, subject, keeper) = (&references[0], &references[1], &references[2]);
    assert_eq!(targets(model), "Experiment");
    assert_eq!((model.owned, model.on_delete), (false, OnDelete::Cascade));
    assert!(matches!(&subject.target, ReferenceTarget::KindIn { column, .. } if *column == "subject_kind"));
    assert_eq!(targets(subject), "Experiment people.Team");
    assert_eq!(subject.on_delete, OnDelete::Orphan);
    assert_eq!((keeper.owned, keeper.on_delete), (true, OnDelete::Cascade));
    assert!(matches!(&keeper.holder, Holder::Path { path, named: Named::Name } if path.json_dotted() == "spec.keeper"));
}

/// What a reference may name.
fn targets(reference: &Reference) -> String {
    let targets = reference.target.kinds().iter().map(ToString::to_string);
    targets.collect::<Vec<_>>().join(" ")
}

/// The column may hold any kind; a kind that is to name itself says so.
#[test]
fn a_column_with_the_kind_stands_for_all_kinds_but_its_own() {
    let model = lower_text(
        &REFERENCE.replace(r#", kinds = ["Experiment", "people.Team"]"#, ""),
        None,
    );
    let model = model.unwrap_or_else(|errors| panic!("{errors}")).model;
    assert_eq!(targets(&kind(&model, "Trial").references[1]), "Experiment Widget");
}

#[test]
fn a_retention_rule_names_its_states_and_their_column() {
    let model = lower_reference().model;
    let rule = kind(&model, "Trial").retention.as_ref().expect("declared");
    assert_eq!(
        (rule.keep_days, rule.keep_last_per_namespace, rule.evicted),
        (Some(90), Some(100), false)
    );
    let states = rule.states.as_ref().expect("declared");
    assert_eq!(
        (states.column.as_str(), &*states.values),
        ("state", &["STATE_DONE".to_owned()][..])
    );
    assert!(kind(&model, "Experiment").retention.is_none());
}

#[test]
fn the_annotation_of_restored_objects_has_the_prefix_of_the_others() {
    let text = REFERENCE.replace("restored_from =", "# restored_from =");
    let model = lower_text(&text, None).expect("no error").model;
    assert_eq!(model.platform.restored_from, "michelangelo/RestoredFrom");
}

#[test]
fn printer_columns_end_with_the_age() {
    let model = lower_reference().model;
    let headings: Vec<&str> = kind(&model, "Trial")
        .printer_columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(headings, ["State", "Age"]);
}

#[test]
fn messages_keep_cardinality_oneofs_and_comments() {
    let model = lower_reference().model;
    assert_eq!(
        message(&model, "reference.v1.Trial").doc,
        "A trial as the message has it."
    );
    let status = message(&model, "reference.v1.TrialStatus");
    let field = |name: &str| status.field_by_json_name(name).expect("declared");
    assert_eq!(field("steps").cardinality, Cardinality::Repeated);
    assert_eq!(field("byNumber").cardinality, Cardinality::Map(MapKey::Integer));
    assert_eq!(field("attempts").cardinality, Cardinality::Optional);
    assert_eq!(field("attempts").oneof, None, "its oneof is synthetic");
    assert_eq!(field("skipped").oneof, Some(0));
    assert_eq!(status.oneofs.len(), 1);
}

#[test]
fn messages_that_contain_themselves_are_marked() {
    let model = lower_reference().model;
    assert!(message(&model, "reference.v1.Step").recursive);
    assert!(!message(&model, "reference.v1.TrialStatus").recursive);
}

#[test]
fn inline_fields_become_a_message() {
    let model = lower_reference().model;
    let experiment = kind(&model, "Experiment");
    assert!(matches!(experiment.shape, Shape::Inline(_)));
    assert_eq!(
        experiment.spec,
        MessageName::parse("michelangelo.api.v2.ExperimentSpec").expect("valid")
    );
    let spec = model.message(&experiment.spec);
    let ty = |name: &str| spec.field_by_json_name(name).expect("declared").ty.clone();
    assert_eq!(ty("deadline"), FieldType::WellKnown(WellKnown::Timestamp));
    assert_eq!(ty("tags"), FieldType::Scalar(Scalar::String));
    let limits = MessageName::parse("michelangelo.api.v2.ExperimentSpec.Limits").expect("valid");
    assert_eq!(ty("limits"), FieldType::Message(limits));
    let text = &model.made_protos["michelangelo/api/v2/experiment.proto"];
    assert!(text.contains("optional int32 retries = 3;"), "{text}");
}

#[test]
fn numbers_of_inline_fields_outlive_the_fields() {
    let first = with_platform(
        r#"[kinds.Note]
fields = { spec = { title = "string", body = "string", color = ["RED", "BLUE"] } }"#,
    );
    let lowered = lower_text(&first, None).unwrap_or_else(|errors| panic!("{errors}"));
    let lock = lowered.lock.emit().into_values().next().expect("one file");
    let second = with_platform(
        r#"[kinds.Note]
fields = { spec = { body = "string", author = "string", color = ["GREEN", "RED"] } }"#,
    );
    let lowered = lower_text(&second, Some(&lock)).unwrap_or_else(|errors| panic!("{errors}"));
    let text = &lowered.model.made_protos["michelangelo/api/v2/note.proto"];
    for line in [
        "reserved 1; // title",
        "string body = 2;",
        "string author = 4;",
        "RED = 0;",
        "reserved 1; // BLUE",
        "GREEN = 2;",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn a_number_does_not_change_its_type() {
    let first = with_platform("[kinds.Note]\nfields = { spec = { size = \"int32\" } }");
    let lowered = lower_text(&first, None).unwrap_or_else(|errors| panic!("{errors}"));
    let lock = lowered.lock.emit().into_values().next().expect("one file");
    let second = with_platform("[kinds.Note]\nfields = { spec = { size = \"string\" } }");
    let errors = lower_text(&second, Some(&lock)).expect_err("the number stands for int32");
    let title = errors.titles().next().expect("one error");
    assert!(title.contains("proto tag 1 of \"size\" is reused"), "{title}");
}

#[test]
fn a_manifest_becomes_a_message_and_keeps_its_names() {
    let model = lower_reference().model;
    let widget = kind(&model, "Widget");
    assert!(matches!(&widget.shape, Shape::Crd { manifest, .. } if manifest == "widgets.yaml"));
    assert_eq!(
        (widget.api_version().as_str(), widget.scope.as_str()),
        ("example.com/v1", "Cluster")
    );
    assert_eq!(widget.status, SubresourceStatus::Absent);
    assert_eq!(widget.columns[0].doc, "How big.");
    let spec = model.message(&widget.spec);
    let field = |name: &str| spec.field_by_json_name(name).expect("declared");
    assert_eq!(field("port").ty, FieldType::WellKnown(WellKnown::Value));
    assert_eq!(field("since").ty, FieldType::WellKnown(WellKnown::Timestamp));
    assert_eq!(field("labels").cardinality, Cardinality::Map(MapKey::String));
    assert_eq!(field("anything").ty, FieldType::WellKnown(WellKnown::Struct));
    assert_eq!(field("parts").cardinality, Cardinality::Repeated);
    assert_eq!(field("git-ref").name, "git_ref");
}

#[test]
fn a_kind_may_refer_to_itself() {
    let text = with_platform(
        r#"[kinds.Folder]
fields = { spec = { parent = "ResourceIdentifier" } }
columns = { parent = "spec.parent" }
references = { parent = { kind = "Folder", column = "parent", on_delete = "cascade" } }"#,
    );
    assert!(lower_text(&text, None).is_ok());
}

#[test]
fn the_shipped_declaration_has_the_columns_and_keys_of_the_contract() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let model = crate::lower(&root).unwrap_or_else(|errors| panic!("{errors}")).model;
    let mut contract = String::new();
    for kind in &model.kinds {
        let columns: Vec<&str> = kind.columns.iter().map(|column| column.name.as_str()).collect();
        let keys: Vec<&str> = kind.keys[3..].iter().map(|key| key.name.as_str()).collect();
        contract.push_str(&format!("{}: {} | {}\n", kind.table, columns.join(" "), keys.join(" ")));
    }
    assert_eq!(contract, include_str!("contract.txt"));
    let columns: usize = model.kinds.iter().map(|kind| kind.columns.len()).sum();
    assert_eq!((model.kinds.len(), columns), (13, 52));
    let model_kind = kind(&model, "Model");
    assert!(!model_kind.immutable, "models leave etcd by annotation");
    assert_eq!(kind(&model, "ModelFamily").plural, "modelfamilys");
}

#[test]
fn generating_ten_times_gives_the_same_bytes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let first = crate::generate(&root).unwrap_or_else(|errors| panic!("{errors}"));
    for _ in 0..9 {
        assert_eq!(crate::generate(&root).expect("as before"), first);
    }
}
