//! Kindex of the identity service, with projects.

use std::process::ExitCode;

use kindex::Platform;
use kindex::cleanup::Cleanups;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: identity_generated::registry(),
        samples: &[],
        cleanups: Cleanups::none(),
    })
}
