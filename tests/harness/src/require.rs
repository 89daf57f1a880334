//! Which real components this run must have: a component that is absent is passed over
//! where nobody asked for it, and a failure where `KINDEX_REQUIRE` names it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

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
    passed_over(&format!("{component} is not installed"));
    false
}

/// Says of the test that runs, once, that it is passed over or a part of it, and why: on stderr, past the capture of
/// what passing tests print.
pub fn passed_over(why: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = line_of(&mut SAID.lock().unwrap_or_else(PoisonError::into_inner), test, why);
    if let Some(line) = line {
        // Nobody reads it, then nobody misses it.
        let _unread = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// What is to be said, unless it was.
fn line_of(reported: &mut BTreeSet<String>, test: &str, why: &str) -> Option<String> {
    let line = format!("passed over: {test}: {why}\n");
    reported.insert(line.clone()).then_some(line)
}

/// The full path of a program, searched where an interactive shell and where root would.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_that_is_passed_over_is_said_once_with_its_reason() {
        let mut reported = BTreeSet::new();
        let first = line_of(&mut reported, "store::a", "mysql is not installed");
        assert_eq!(
            first.as_deref(),
            Some("passed over: store::a: mysql is not installed\n")
        );
        assert_eq!(line_of(&mut reported, "store::a", "mysql is not installed"), None);
        assert!(line_of(&mut reported, "store::b", "mysql is not installed").is_some());
        assert!(line_of(&mut reported, "store::a", "another reason").is_some());
    }
}
