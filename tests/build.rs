//! Lists the cases that are folders, so that each becomes a test with the folder's name: a case is found by itself, and
//! can be run alone. A case has a `crds.toml`; other folders are what cases share.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Where cases lie. The tests of each include the list of the same name.
const AREAS: [&str; 2] = ["golden", "reject"];

fn main() -> io::Result<()> {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
    let out = env::var_os("OUT_DIR").map_or_else(PathBuf::new, PathBuf::from);
    // The fixture's registry includes it; no test asks the fixture for its messages.
    fs::write(out.join("descriptors.binpb"), [])?;
    for area in AREAS {
        let folder = package.join("tests").join(area);
        println!("cargo::rerun-if-changed={}", folder.display());
        fs::write(out.join(format!("{area}.rs")), tests(&folder)?)?;
    }
    Ok(())
}

/// A test for each case, which hands its name to `check`.
fn tests(folder: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().join("crds.toml").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let tests = names
        .iter()
        .map(|name| format!("#[test]\nfn {name}() {{\n    super::check(\"{name}\");\n}}\n\n"));
    Ok(tests.collect())
}
