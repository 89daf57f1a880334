//! Kindex of the identity service, with projects.

use std::process::ExitCode;

use kindex::Platform;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: identity_generated::registry(),
        samples: &[],
    })
}
