//! Kindex of the compute service, with clusters.

use std::process::ExitCode;

use kindex::Platform;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: compute_generated::registry(),
        samples: &[],
    })
}
