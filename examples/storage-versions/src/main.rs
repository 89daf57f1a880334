//! Kindex with one kind, Model.

use std::process::ExitCode;

use kindex::Platform;
use kindex::cleanup::Cleanups;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: zoo_generated::registry(),
        samples: &[],
        cleanups: Cleanups::none(),
    })
}
