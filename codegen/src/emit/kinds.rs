//! The Rust module of each kind: its table for the runtime, its queries, its types by name. Where these files lie is
//! known here; what is in them is not.

use super::rust_types::ident;
use super::rust_types::placement::Placement;
use super::{kind_table, query, registry, versions};
use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::{Kind, Model};

/// One directory for each kind, and the registry of all.
pub(super) fn emit(model: &Model, placement: &Placement) -> Artifacts {
    let mut files = vec![
        ("registry.rs".to_owned(), registry::file(model, "../..")),
        ("kinds/mod.rs".to_owned(), kinds_file(model)),
    ];
    for kind in &model.kinds {
        let root = "../../../..";
        let directory = format!("kinds/{}", kind.module);
        files.extend([
            (format!("{directory}/mod.rs"), module_file(model, kind)),
            (
                format!("{directory}/kind.rs"),
                kind_table::file(model, kind, placement, root),
            ),
            (format!("{directory}/query.rs"), query::file(model, kind, placement)),
        ]);
        let versions = versions::file(kind);
        files.extend(versions.map(|text| (format!("{directory}/versions.rs"), text)));
    }
    files
        .into_iter()
        .map(|(path, text)| (RelativePath::new(format!("generated/src/{path}")), text))
        .collect()
}

fn kinds_file(model: &Model) -> String {
    let mut modules: Vec<&str> = model.kinds.iter().map(|kind| kind.module.as_str()).collect();
    modules.sort_unstable();
    let declarations: String = modules
        .iter()
        .map(|module| format!("pub mod {};\n", ident::field(module)))
        .collect();
    format!("// {HEADER}\n\n//! The kinds, a module for each.\n\n{declarations}")
}

/// What the module names itself comes before what its types are called: an explicit import hides one by `*`.
fn module_file(model: &Model, kind: &Kind) -> String {
    let queries = model.queries.iter().filter(|query| query.kind == kind.name);
    let mut names: Vec<String> = queries.map(|query| query.name.function()).collect();
    names.extend(["column".to_owned(), "query".to_owned()]);
    names.extend(query::has_references(kind).then(|| "reference".to_owned()));
    names.sort_unstable();
    let (doc, names) = (doc(kind), names.join(", "));
    let module = ident::field(&kind.module);
    let versions = if kind.versions.is_empty() {
        ""
    } else {
        "mod versions;\n"
    };
    format!(
        "// {HEADER}\n\n{doc}\n\
         mod kind;\nmod query;\n{versions}\n\
         pub use self::kind::{{COLUMNS, KEYS, KIND, PRINTER_COLUMNS, REFERENCES}};\n\
         pub use self::query::constants::*;\n\
         pub use self::query::{{Query, {names}}};\n\
         pub use crate::types::{module}::*;\n"
    )
}

fn doc(kind: &Kind) -> String {
    let text = format!("`{}`: {}", kind.name, kind.doc);
    let lines = text
        .lines()
        .map(|line| format!("{}\n", format!("//! {line}").trim_end()));
    lines.collect()
}
