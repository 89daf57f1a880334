//! The `kindex` binary for the kinds of this repository's crds.toml.

use std::process::ExitCode;

use kindex::Platform;
use kindex::platform::Sample;

macro_rules! sample {
    ($file:literal) => {
        ($file, include_str!(concat!("../../samples/", $file)))
    };
}

/// A namespace and one object of each kind, each after what it refers to.
const SAMPLES: &[Sample] = &[
    sample!("00-namespace.yaml"),
    sample!("01-project.yaml"),
    sample!("02-model-family.yaml"),
    sample!("03-model.yaml"),
    sample!("04-pipeline.yaml"),
    sample!("05-pipeline-run.yaml"),
    sample!("06-inference-server.yaml"),
    sample!("07-revision.yaml"),
    sample!("08-cluster.yaml"),
    sample!("09-ray-cluster.yaml"),
    sample!("10-ray-job.yaml"),
    sample!("11-spark-job.yaml"),
    sample!("12-trigger-run.yaml"),
    sample!("13-deployment.yaml"),
];

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: kindex_generated::registry(),
        samples: SAMPLES,
    })
}
