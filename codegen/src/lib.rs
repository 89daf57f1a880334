//! Turns `crds.toml` and `proto/` into everything that Kindex generates: text in, text out.
//!
//! The pipeline is `read → parse → lower → emit → write`. [`model`] is its waist: what comes before validates, what
//! comes after prints. This crate knows no Kubernetes client and no database driver.
//!
//! ```no_run
//! use kindex_codegen::artifact::{Mode, sync};
//!
//! let root = std::path::Path::new(".");
//! let artifacts = kindex_codegen::generate(root)?;
//! let differences = sync(root, &artifacts, Mode::Check)?;
//! assert!(differences.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod grammar;
pub mod source;

pub mod model;

pub mod diag;

pub mod spec;

pub mod artifact;

pub mod lock;

pub mod lower;

pub mod dialect;

pub mod emit;

use std::path::{Path, PathBuf};

use artifact::Artifacts;
use diag::{Collector, Diagnostics, messages};
use lower::{Lowered, Manifests};
use source::Sources;
use spec::Spec;

/// Reads the declaration below `root` and returns every file that follows from it.
///
/// # Guarantees
/// Nothing is written. Equal inputs give equal artifacts, byte by byte, whatever the machine, the time or the
/// features the caller was compiled with.
///
/// # Errors
/// Every mistake in the declaration, sorted by position.
pub fn generate(root: &Path) -> Result<Artifacts, Diagnostics> {
    let Lowered { model, lock } = lower(root)?;
    let mut artifacts = emit::all(&model);
    artifacts.extend(lock.emit());
    Ok(artifacts)
}

/// The first half of [`generate`]: the model and the lock of the declaration below `root`.
///
/// # Errors
/// Every mistake in the declaration, sorted by position.
pub fn lower(root: &Path) -> Result<Lowered, Diagnostics> {
    let mut sources = match source::read(root) {
        Ok(sources) => sources,
        Err(error) => {
            let mut found = Collector::default();
            let path = error.path.display().to_string();
            found.push(messages::unreadable(&path, &error.source.to_string()));
            return Err(found.into_diagnostics(Sources::of_crds("")));
        }
    };
    let mut found = Collector::default();
    let spec = spec::parse(&sources, &mut found);
    let manifests = read_manifests(root, &spec, &mut sources, &mut found);
    let old_lock = lock::parse(&sources, &mut found);
    let lowered = lower::lower(&spec, &manifests, &sources, &old_lock, &mut found);
    lowered.ok_or_else(|| found.into_diagnostics(sources))
}

/// The files and directories below `root` that [`generate`] reads and that exist, for build scripts to watch. The
/// lock is not among them: it is an output too.
pub fn inputs(root: &Path) -> Vec<PathBuf> {
    let mut inputs = vec![PathBuf::from(source::CRDS), PathBuf::from(source::PROTO_DIRECTORY)];
    if let Ok(text) = source::read_text(root, source::CRDS) {
        let spec = spec::parse(&Sources::of_crds(text), &mut Collector::default());
        let manifests = spec.kinds.into_iter().filter_map(|kind| kind.crd);
        inputs.extend(manifests.map(|path| PathBuf::from(path.value)));
    }
    let full = inputs.into_iter().map(|path| root.join(path));
    full.filter(|path| path.exists()).collect()
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
