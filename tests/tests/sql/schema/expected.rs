//! What operators of Michelangelo know their tables to be: main tables, extracted columns in table order, keys. Written
//! by hand and compared with what is emitted, so that a slip in crds.toml or in an emitter shows.

/// A main table.
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Extracted columns with their types in MySQL.
    pub columns: &'static [(&'static str, &'static str)],
    /// Keys beyond those that every main table has.
    pub keys: &'static [(&'static str, &'static [&'static str])],
}

const NAME: &str = "varchar(255)";

/// In the order of crds.toml.
pub const TABLES: [Table; 13] = [
    Table {
        name: "project",
        columns: &[("tier", "int")],
        keys: &[],
    },
    Table {
        name: "modelfamily",
        columns: &[("model_family_name", NAME)],
        keys: &[],
    },
    Table {
        name: "model",
        columns: &[
            ("algorithm", NAME),
            ("training_framework", NAME),
            ("owner", NAME),
            ("source", NAME),
            ("description", "varchar(768)"),
            ("model_kind", NAME),
            ("package_type", NAME),
            ("revision_id", "int"),
            ("src_pipeline_run_namespace", NAME),
            ("src_pipeline_run_name", NAME),
            ("model_family_namespace", NAME),
            ("model_family_name", NAME),
            ("feature_eval_report_namespace", NAME),
            ("feature_eval_report_name", NAME),
            ("performance_eval_report_namespace", NAME),
            ("performance_eval_report_name", NAME),
            ("feature_quality_report_namespace", NAME),
            ("feature_quality_report_name", NAME),
            ("explainability_report_namespace", NAME),
            ("explainability_report_name", NAME),
        ],
        keys: &[("model_algorithm", &["algorithm"]), ("model_owner", &["owner"])],
    },
    Table {
        name: "pipeline",
        columns: &[("owner", NAME), ("pipeline_type", NAME)],
        keys: &[("pipeline_owner", &["owner"])],
    },
    Table {
        name: "pipelinerun",
        columns: &[
            ("pipeline_namespace", NAME),
            ("pipeline_name", NAME),
            ("revision_namespace", NAME),
            ("revision_name", NAME),
            ("resume_pipeline_run_namespace", NAME),
            ("resume_pipeline_run_name", NAME),
            ("state", NAME),
            ("actor", NAME),
            ("end_time", "datetime(6)"),
            ("exception_type", NAME),
        ],
        keys: &[
            ("pipelinerun_pipeline", &["pipeline_namespace", "pipeline_name"]),
            ("pipelinerun_state", &["state"]),
        ],
    },
    Table {
        name: "inferenceserver",
        columns: &[("state", NAME)],
        keys: &[("inferenceserver_state", &["state"])],
    },
    Table {
        name: "revision",
        columns: &[
            ("base_resource_namespace", NAME),
            ("base_resource_name", NAME),
            ("base_type", NAME),
            ("commit_branch", NAME),
            ("git_ref", NAME),
            ("owner", NAME),
        ],
        keys: &[(
            "revision_base_resource",
            &["base_resource_namespace", "base_resource_name"],
        )],
    },
    Table {
        name: "cluster",
        columns: &[],
        keys: &[],
    },
    Table {
        name: "raycluster",
        columns: &[],
        keys: &[],
    },
    Table {
        name: "rayjob",
        columns: &[],
        keys: &[],
    },
    Table {
        name: "triggerrun",
        columns: &[
            ("pipeline_namespace", NAME),
            ("pipeline_name", NAME),
            ("revision_namespace", NAME),
            ("revision_name", NAME),
            ("state", NAME),
            ("auto_flip", "tinyint(1)"),
        ],
        keys: &[
            ("triggerrun_pipeline", &["pipeline_namespace", "pipeline_name"]),
            ("triggerrun_state", &["state"]),
        ],
    },
    Table {
        name: "deployment",
        columns: &[
            ("state", NAME),
            ("target_definition_type", NAME),
            ("current_revision_namespace", NAME),
            ("current_revision_name", NAME),
            ("deletion_requested_timestamp", "datetime(6)"),
        ],
        keys: &[("deployment_state", &["state"])],
    },
    Table {
        name: "sparkjob",
        columns: &[],
        keys: &[],
    },
];
