//! Turns `crds.toml` and `proto/` into everything that Kindex generates: text in, text out.
//!
//! The pipeline is `read → parse → lower → emit → write`. [`model`] is its waist: what comes before validates, what
//! comes after prints. This crate knows no Kubernetes client and no database driver.
//!
//! ```no_run
//! use kindex_codegen::artifact::{Mode, sync};
//!
//! let root = std::path::Path::new(".");
//! let generated = kindex_codegen::generate(root)?;
//! let differences = sync(root, &generated.artifacts, Mode::Check)?;
//! assert!(differences.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod grammar;
pub mod source;

pub mod model;

pub mod graph;

pub mod dialect;

pub mod diag;

pub mod spec;

pub mod artifact;

pub mod lock;

pub mod lower;

pub mod plan;

pub mod lint;

pub mod emit;

mod declarations;

use std::path::{Path, PathBuf};

use artifact::Artifacts;
use diag::{Collector, Diagnostics, messages};
use graph::Graph;
use lock::Lock;
use lower::{Lowered, Manifests};
use model::Model;
use source::{ReadError, Sources};
use spec::Spec;

/// What follows from a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Every emitted file.
    pub artifacts: Artifacts,
    /// All messages and services, as an encoded `google.protobuf.FileDescriptorSet`: for the build to compile in.
    pub descriptors: Vec<u8>,
    /// The files and directories that were read and exist, for build scripts to watch. The lock is not among them: it
    /// is an output too.
    pub inputs: Vec<PathBuf>,
    /// What is not wrong and yet wants a person's attention, each on one line.
    pub warnings: Vec<String>,
}

/// The name of the file in the build's own directory in which emitted code finds the descriptors.
pub const DESCRIPTORS: &str = "descriptors.binpb";

/// Reads the declaration below `root` and returns every file that follows from it.
///
/// # Guarantees
/// Nothing is written. Equal inputs give equal artifacts, byte by byte, whatever the machine, the time or the
/// features the caller was compiled with. Migrations are not planned: that is [`plan()`]'s.
///
/// # Errors
/// Every error in the declaration, sorted by position.
pub fn generate(root: &Path) -> Result<Generated, Diagnostics> {
    let Input { sources, lowered, .. } = read(root)?;
    let inputs = sources.inputs(root);
    let mut broken = Collector::default();
    let planned = plan::check(&sources, &lowered.lock, &mut broken);
    let mut warnings: Vec<String> = broken.into_diagnostics(sources).lines().collect();
    let pending = plan::pending(&lowered.model, &lowered.lock, &planned);
    warnings.extend(plan::reminder(&pending));
    Ok(Generated {
        artifacts: emitted(&lowered.model, &lowered.lock, &planned),
        descriptors: emit::descriptors(&lowered.model),
        inputs,
        warnings,
    })
}

/// What `kindex plan` comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The migration; `None` where the planned ones lead to what is declared.
    pub next: Option<plan::Next>,
    /// Every emitted file as it is with the migration, and the migration itself.
    pub artifacts: Artifacts,
    /// What is not wrong and yet wants a person's attention, each on one line.
    pub warnings: Vec<String>,
}

/// Plans the migration from the last one to the declaration below `root`. `options` say what it is called and
/// what may pass in it.
///
/// # Guarantees
/// Nothing is written. The emitted files are those of [`generate`], once the migration is among its inputs.
///
/// # Errors
/// Every error in the declaration, or every break in the chain of migrations.
pub fn plan(root: &Path, options: &plan::MigrationOptions) -> Result<Planned, Diagnostics> {
    let Input { sources, spec, lowered } = read(root)?;
    let mut broken = Collector::default();
    let mut planned = plan::check(&sources, &lowered.lock, &mut broken);
    if !broken.is_empty() {
        let broken = broken.into_diagnostics(sources);
        return Err(broken.concluding("among the migrations; nothing was planned"));
    }
    let mut doubts = Collector::default();
    plan::warn_of_unknown_was(&spec, &lowered, &mut doubts);
    let steps = plan::pending(&lowered.model, &lowered.lock, &planned);
    let added = (!steps.is_empty()).then(|| plan::add(steps, options, &planned, &lowered.model, &sources));
    let (next, lock, files) = match added {
        Some(plan::Addition { next, files, structure }) => (Some(next), lowered.lock.with_structure(structure), files),
        None => (None, lowered.lock, plan::files(&sources)),
    };
    planned.extend(next.iter().map(|next| next.migration.clone()));
    let mut artifacts = emitted(&lowered.model, &lock, &planned);
    artifacts.extend(files);
    let warnings = doubts.into_diagnostics(sources).lines().collect();
    Ok(Planned {
        next,
        artifacts,
        warnings,
    })
}

/// Valid but risky migrations and declarations below `root`.
///
/// # Errors
/// Every error in the declaration, or every break in the chain of migrations.
pub fn lint(root: &Path) -> Result<lint::Report, Diagnostics> {
    let Input { sources, spec, lowered } = read(root)?;
    let mut broken = Collector::default();
    let planned = plan::check(&sources, &lowered.lock, &mut broken);
    if !broken.is_empty() {
        let broken = broken.into_diagnostics(sources);
        return Err(broken.concluding("among the migrations"));
    }
    let pending = plan::pending(&lowered.model, &lowered.lock, &planned);
    Ok(lint::Report {
        reminder: plan::reminder(&pending),
        ..lint::lint(&spec, &lowered, &sources)
    })
}

/// Which kinds refer to which, in the declaration below `root` and in those in the files `others` together. What lies
/// beside these files is read as well.
///
/// # Errors
/// Every error in one of the declarations, or everything in which they do not go together: kinds that one of them
/// lacks, and deletions that would wait for ever.
pub fn graph(root: &Path, others: &[PathBuf]) -> Result<Graph, Diagnostics> {
    let refused = |errors: Diagnostics| errors.concluding("in the declaration; nothing was printed");
    let sources = source::read_file(&source::declaration_in(root)).map_err(|error| refused(unreadable(error)))?;
    let mut declarations = vec![read_from(root, sources).map_err(refused)?];
    for file in others {
        let sources = source::read_file(file).map_err(unreadable)?;
        let other = read_from(source::directory_of(file), sources);
        declarations.push(other.map_err(|errors| errors.concluding("in another declaration; nothing was printed"))?);
    }
    declarations::graph(&declarations)
}

/// Every emitted file as it is once `migrations.sum` holds the files below `root` as they are, after an edit on
/// purpose.
///
/// # Errors
/// Every error in the declaration, or files of migrations that make no chain.
pub fn rehash(root: &Path) -> Result<Artifacts, Diagnostics> {
    let Input { sources, lowered, .. } = read(root)?;
    let sources = plan::summed(&sources);
    let mut broken = Collector::default();
    let planned = plan::read(&sources, &mut broken);
    if !broken.is_empty() {
        let broken = broken.into_diagnostics(sources);
        return Err(broken.concluding("among the migrations; nothing was written"));
    }
    let structure = plan::sealed(&lowered.lock.structure, &planned);
    let lock = lowered.lock.with_structure(structure);
    let mut artifacts = emitted(&lowered.model, &lock, &planned);
    artifacts.extend(plan::files(&sources));
    Ok(artifacts)
}

/// Every emitted file.
fn emitted(model: &Model, lock: &Lock, planned: &[plan::Migration]) -> Artifacts {
    let mut artifacts = emit::all(model, planned);
    artifacts.extend(lock.emit());
    artifacts
}

/// The first half of [`generate`]: the model and the lock of the declaration below `root`.
///
/// # Errors
/// Every error in the declaration, sorted by position.
pub fn lower(root: &Path) -> Result<Lowered, Diagnostics> {
    read(root).map(|input| input.lowered)
}

/// A declaration without errors.
struct Input {
    sources: Sources,
    spec: Spec,
    lowered: Lowered,
}

fn unreadable(error: ReadError) -> Diagnostics {
    let mut found = Collector::default();
    let path = error.path.display().to_string();
    found.push(messages::unreadable(&path, &error.source.to_string()));
    found.into_diagnostics(Sources::of_crds(""))
}

fn read(root: &Path) -> Result<Input, Diagnostics> {
    read_from(root, source::read(root).map_err(unreadable)?)
}

fn read_from(root: &Path, mut sources: Sources) -> Result<Input, Diagnostics> {
    let mut found = Collector::default();
    let spec = spec::parse(&sources, &mut found);
    let manifests = read_manifests(root, &spec, &mut sources, &mut found);
    let old_lock = lock::parse(&sources, &mut found);
    match lower::lower(&spec, &manifests, &sources, &old_lock, &mut found) {
        Some(lowered) => Ok(Input { sources, spec, lowered }),
        None => Err(found.into_diagnostics(sources)),
    }
}

/// The texts behind every `crd = "…"`. Which they are is known only once `crds.toml` is parsed.
fn read_manifests(root: &Path, spec: &Spec, sources: &mut Sources, found: &mut Collector) -> Manifests {
    let mut manifests = Manifests::new();
    for path in spec.kinds.iter().filter_map(|kind| kind.crd.as_ref()) {
        match source::read_text(root, &path.value) {
            Ok(text) => {
                let file = sources.add(path.value.clone(), text);
                manifests.insert(path.value.clone(), file);
            }
            Err(error) => {
                let why = error.source.to_string();
                found.push(messages::unreadable_manifest(path, &why));
            }
        }
    }
    manifests
}
