//! Which real components this run must have: a component that is absent is passed over
//! where nobody asked for it, and a failure where `KINDEX_REQUIRE` names it.

use std::path::PathBuf;

/// Whether a test that needs `component` runs.
///
/// # Panics
/// When the component was not found and the environment's `KINDEX_REQUIRE`, a list with
/// commas, names it.
pub fn require(component: &str, found: bool) -> bool {
    if found {
        return true;
    }
    let required = std::env::var("KINDEX_REQUIRE").unwrap_or_default();
    let named = required.split(',').any(|name| name.trim() == component);
    assert!(
        !named,
        "{component} is not installed, and KINDEX_REQUIRE={required} asks for it"
    );
    eprintln!("{component} is not installed: this test is passed over");
    false
}

/// The full path of a program, searched where an interactive shell and where root would.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}
