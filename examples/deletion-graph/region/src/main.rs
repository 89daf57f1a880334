//! Kindex of the region service, with cloud identities, networks and server groups.

use std::process::ExitCode;

use kindex::Platform;
use kindex::cleanup::Cleanups;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: region_generated::registry(),
        samples: &[],
        cleanups: Cleanups::none(),
    })
}
