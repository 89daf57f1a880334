//! A tree of objects that hold each other: a project, and five levels of others below it, in one namespace.
//!
//! The kinds are those of the repository. Their declared references lead from a pipeline over its runs to their
//! revisions. Here, models go with their family instead of blocking it, and two kinds have one more reference, by a
//! label: families to a project, pipelines to a model.

use kindex_generated::kinds::{model, model_family, pipeline, pipeline_run, project, revision};
use kindex_model::kind::{Kind, Registry};
use kindex_model::reference::{Named, OnDelete, Reference, Target};
use serde_json::json;

/// Where all objects are.
pub const NAMESPACE: &str = "bench";

/// Levels below the root.
pub const LEVELS: usize = 5;
/// The kind of the root, then that of each level below it.
pub static KINDS: [&Kind; LEVELS + 1] = [
    &project::KIND,
    &FAMILY,
    &MODEL,
    &PIPELINE,
    &pipeline_run::KIND,
    &revision::KIND,
];

static FAMILY: Kind = Kind {
    references: &[Reference {
        targets: &[target("Project")],
        ..PARENT
    }],
    ..model_family::KIND
};
static MODEL: Kind = Kind {
    references: &[Reference {
        on_delete: OnDelete::Cascade,
        ..model::REFERENCES[0]
    }],
    ..model::KIND
};
static PIPELINE: Kind = Kind {
    references: &[Reference {
        targets: &[target("Model")],
        ..PARENT
    }],
    ..pipeline::KIND
};
/// By a label.
const PARENT: Reference = Reference {
    name: "parent",
    targets: &[],
    kind_column: None,
    path: &["metadata", "labels", "parent"],
    named: Named::Name,
    columns: &[],
    owned: false,
    on_delete: OnDelete::Cascade,
};

const fn target(kind: &'static str) -> Target {
    Target {
        service: None,
        group: "michelangelo.api",
        kind,
    }
}

/// That of the repository, with the kinds of the tree.
pub fn registry() -> Registry {
    let generated = kindex_generated::registry();
    let kinds = generated.kinds.iter().map(|&kind| {
        let mut of_tree = KINDS.into_iter();
        of_tree.find(|of_tree| of_tree.name == kind.name).unwrap_or(kind)
    });
    Registry {
        kinds: kinds.collect::<Vec<_>>().leak(),
        ..generated
    }
}

/// How many objects each level has; on all but the last one as many below each object of the level above.
#[derive(Clone, Copy)]
pub struct Tree {
    /// From the root down.
    pub sizes: [usize; LEVELS + 1],
}

impl Tree {
    /// As wide as it can be with so many objects below the root; the last level has what is left.
    ///
    /// # Panics
    /// When there are fewer than levels.
    pub fn new(descendants: usize) -> Self {
        assert!(descendants >= LEVELS, "one object on each level at least");
        let widths = (1..).map(|width: usize| {
            let level = |level| width.pow(u32::try_from(level).expect("few levels"));
            std::array::from_fn(level)
        });
        let fits = |sizes: &[usize; LEVELS + 1]| sizes.iter().skip(1).sum::<usize>() <= descendants;
        let mut sizes = widths.take_while(fits).last().expect("one of width 1 fits");
        sizes[LEVELS] = descendants - sizes[1..LEVELS].iter().sum::<usize>();
        Self { sizes }
    }

    /// One object on each level, and on the last one all that are left: they hold the same object.
    ///
    /// # Panics
    /// When there are fewer than levels.
    pub fn wide(descendants: usize) -> Self {
        assert!(descendants >= LEVELS, "one object on each level at least");
        let mut sizes = [1; LEVELS + 1];
        sizes[LEVELS] = descendants + 1 - LEVELS;
        Self { sizes }
    }

    /// All objects, with the root.
    pub fn objects(self) -> usize {
        self.sizes.iter().sum()
    }

    /// Each object but the root has one.
    pub fn references(self) -> usize {
        self.objects() - 1
    }

    /// About 2 KiB with all that the server adds.
    ///
    /// # Panics
    /// When there is no such level.
    pub fn object(self, level: usize, index: usize) -> String {
        let kind = KINDS[level];
        let parent = level.checked_sub(1).map(|above| name(above, index % self.sizes[above]));
        let named = json!({"namespace": NAMESPACE, "name": parent});
        json!({
            "apiVersion": kind.api_version(),
            "kind": kind.name,
            "metadata": {
                "name": name(level, index),
                "namespace": NAMESPACE,
                "labels": {"parent": parent.unwrap_or_default()},
                "annotations": {"example.org/note": "x".repeat(1_500)},
            },
            "spec": match kind.name {
                "Model" => json!({"modelFamily": named}),
                "PipelineRun" => json!({"pipeline": named}),
                "Revision" => json!({"baseResource": named, "baseType": {"kind": KINDS[level - 1].name}}),
                _ => json!({}),
            },
        })
        .to_string()
    }
}

/// The name of an object.
pub fn name(level: usize, index: usize) -> String {
    format!("it-{level}-{index:06}")
}

/// Where the objects of a level are.
///
/// # Panics
/// When there is no such level.
pub fn path(level: usize) -> String {
    let kind = KINDS[level];
    format!("/apis/{}/namespaces/{NAMESPACE}/{}", kind.api_version(), kind.plural)
}
