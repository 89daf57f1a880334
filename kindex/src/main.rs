//! The `kindex` binary for the kinds of this repository's crds.toml.

use std::process::ExitCode;

use kindex::Platform;
use kindex::platform::Sample;

/// A namespace and one object of each kind, each after what it refers to: the files of `samples/`, in order.
const SAMPLES: &[Sample] = include!(concat!(env!("OUT_DIR"), "/samples.rs"));

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: kindex_generated::registry(),
        samples: SAMPLES,
    })
}
