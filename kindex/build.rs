//! Collects the manifests of `samples/` for `kindex up --samples`, in the order of their file names. A new file is one
//! more sample; nothing else names it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../samples");
    println!("cargo::rerun-if-changed={}", directory.display());
    let entries = fs::read_dir(&directory)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let samples: String = files
        .iter()
        .filter_map(|path| Some((path.file_name()?.to_str()?, path.canonicalize().ok()?)))
        .map(|(name, path)| format!("    ({name:?}, include_str!({path:?})),\n"))
        .collect();
    let out = Path::new(&env::var("OUT_DIR")?).join("samples.rs");
    fs::write(out, format!("&[\n{samples}]\n"))?;
    Ok(())
}
