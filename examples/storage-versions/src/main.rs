//! Kindex with one kind, Model.

use std::process::ExitCode;

use kindex::Platform;

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: zoo_generated::registry(),
        samples: &[],
    })
}
