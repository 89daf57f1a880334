//! Kindex of the compute service, with clusters.

use std::process::ExitCode;

use kindex::Platform;
use kindex::cleanup::Cleanups;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: compute_generated::registry(),
        samples: &[],
        cleanups: Cleanups::none(),
    })
}
