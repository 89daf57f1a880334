//! The `kindex` command for the kinds of the fixture `traps`, one of which has several versions.

use std::process::ExitCode;

use kindex::Platform;
use kindex::cleanup::Cleanups;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: kindex_tests::registry::registry(),
        samples: &[],
        cleanups: Cleanups::none(),
    })
}
