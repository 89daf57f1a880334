//! The columns of a kind's tables, as `kubectl get` shows them. Knows nothing of objects.

use kindex_kube_api::table::PrinterColumn;
use kindex_model::kind::{self, Kind};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DefinitionSpec {
    versions: Vec<DefinitionVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DefinitionVersion {
    name: String,
    additional_printer_columns: Vec<PrinterColumn>,
}

/// As the CRD of a kind has them for a version. A version without any has the age alone.
pub fn printer_columns(kind: &Kind, version: &str) -> Vec<PrinterColumn> {
    let known = if version == kind.version {
        kind.printer_columns
    } else {
        &[]
    };
    columns(known, kind.manifest, version)
}

fn columns(known: &[kind::PrinterColumn], manifest: &str, version: &str) -> Vec<PrinterColumn> {
    let mut columns: Vec<PrinterColumn> = known.iter().map(declared).collect();
    if columns.is_empty() {
        columns = of_manifest(manifest, version);
    }
    if columns.is_empty() {
        columns.push(PrinterColumn::age());
    }
    columns
}

fn declared(column: &kind::PrinterColumn) -> PrinterColumn {
    PrinterColumn {
        name: column.name.to_owned(),
        kind: column.ty.to_owned(),
        format: column.format.to_owned(),
        description: column.description.to_owned(),
        priority: column.priority,
        json_path: column.json_path.to_owned(),
    }
}

/// Those of a hand-written kind are in its manifest alone.
fn of_manifest(manifest: &str, version: &str) -> Vec<PrinterColumn> {
    let definition: Definition = serde_saphyr::from_str(manifest).unwrap_or_default();
    let mut versions = definition.spec.versions.into_iter();
    let version = versions.find(|candidate| candidate.name == version);
    version
        .map(|version| version.additional_printer_columns)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "
spec:
  versions:
  - name: v1
    additionalPrinterColumns: [{name: Old, type: string, jsonPath: .spec.old}]
  - name: v2
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size, priority: 1}]
";

    fn names(columns: &[PrinterColumn]) -> Vec<&str> {
        columns.iter().map(|column| column.name.as_str()).collect()
    }

    #[test]
    fn a_kind_shows_its_own_columns_then_those_of_its_manifest_and_else_the_age() {
        let own = kind::PrinterColumn {
            name: "Secret",
            ty: "string",
            format: "",
            description: "Where the key is.",
            priority: 0,
            json_path: ".spec.secretName",
        };
        let shown = columns(&[own], "", "v2");
        assert_eq!(names(&shown), ["Secret"], "a CRD that declares no age shows none");
        assert_eq!(
            (&*shown[0].kind, &*shown[0].description, &*shown[0].json_path),
            ("string", "Where the key is.", ".spec.secretName")
        );
        let shown = columns(&[], MANIFEST, "v2");
        assert_eq!((names(&shown), shown[0].priority), (vec!["Size"], 1));
        assert_eq!(names(&columns(&[], "", "v2")), ["Age"]);
        assert_eq!(names(&columns(&[], MANIFEST, "v3")), ["Age"]);
    }
}
