//! The emitted service definitions, compiled together with the platform's messages.

use std::collections::BTreeMap;

use protox::prost_reflect::{DescriptorPool, MessageDescriptor};

use super::{root, shipped, shipped_model};

/// All emitted `.proto` files, compiled.
fn compile() -> DescriptorPool {
    let emitted = tempfile::tempdir().expect("a temporary directory");
    let mut files = Vec::new();
    for (path, text) in shipped() {
        let Some(import_path) = path.as_str().strip_prefix("schema/proto/") else {
            continue;
        };
        let target = emitted.path().join(import_path);
        let directory = target.parent().expect("a file lies in a directory");
        std::fs::create_dir_all(directory).expect("a directory");
        std::fs::write(&target, text).expect("a file");
        files.push(target);
    }
    let includes = [root().join("proto"), emitted.path().to_path_buf()];
    let mut compiler = protox::Compiler::new(includes).expect("directories to look in");
    compiler.include_imports(true);
    compiler.open_files(files).unwrap_or_else(|error| panic!("{error:?}"));
    compiler.descriptor_pool()
}

fn fields(message: &MessageDescriptor) -> BTreeMap<u32, String> {
    message
        .fields()
        .map(|field| (field.number(), field.name().to_owned()))
        .collect()
}

#[test]
fn every_kind_has_a_service_with_michelangelos_calls_and_its_own_two() {
    let pool = compile();
    for kind in shipped_model().kinds {
        let name = format!("michelangelo.api.v2.{}Service", kind.name);
        let service = pool.get_service_by_name(&name);
        let service = service.unwrap_or_else(|| panic!("{name} is not emitted"));
        let calls: Vec<String> = service.methods().map(|method| method.name().to_owned()).collect();
        let kind = &kind.name;
        let known = [
            format!("Create{kind}"),
            format!("Get{kind}"),
            format!("Update{kind}"),
            format!("Update{kind}Status"),
            format!("Delete{kind}"),
            format!("Delete{kind}Collection"),
            format!("List{kind}"),
            format!("Watch{kind}"),
        ];
        assert_eq!(calls, known);
        let watch = service.methods().last().expect("the last call");
        assert!(watch.is_server_streaming());
    }
}

#[test]
fn requests_carry_michelangelos_field_numbers() {
    let pool = compile();
    let numbered = |message: &str| {
        let name = format!("michelangelo.api.v2.{message}");
        let message = pool.get_message_by_name(&name);
        let fields = fields(&message.unwrap_or_else(|| panic!("{name} is not emitted")));
        fields
            .into_iter()
            .map(|(number, name)| format!("{name}={number}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (message, known) in [
        ("CreatePipelineRunRequest", "pipeline_run=1 create_options=2"),
        ("CreatePipelineRunResponse", "pipeline_run=1"),
        ("GetPipelineRunRequest", "name=1 namespace=2 get_options=3"),
        ("GetPipelineRunResponse", "pipeline_run=1"),
        ("UpdatePipelineRunRequest", "pipeline_run=1 update_options=2"),
        ("UpdatePipelineRunResponse", "pipeline_run=1"),
        ("DeletePipelineRunRequest", "name=1 namespace=2 delete_options=3"),
        ("DeletePipelineRunResponse", ""),
        (
            "DeletePipelineRunCollectionRequest",
            "namespace=1 delete_options=2 list_options=3",
        ),
        ("DeletePipelineRunCollectionResponse", ""),
        (
            "ListPipelineRunRequest",
            "namespace=1 list_options=2 list_options_ext=3",
        ),
        ("ListPipelineRunResponse", "pipeline_run_list=1"),
        ("PipelineRunList", "type_meta=1 metadata=2 items=3"),
    ] {
        assert_eq!(numbered(message), known, "{message}");
    }
}
