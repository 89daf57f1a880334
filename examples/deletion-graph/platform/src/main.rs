//! Kindex with the five kinds of the graph in one service.

use std::process::ExitCode;

use kindex::Platform;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: platform_generated::registry(),
        samples: &[],
    })
}
