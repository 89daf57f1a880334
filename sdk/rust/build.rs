//! Makes Rust of the service's own `proto/`: the messages, and the client of what a training job calls.

use std::error::Error;

/// Where the service has them.
const PROTO: &str = "../../services/runs/proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let descriptors = protox::compile(["mlrun/v1/ingest.proto"], [PROTO])?;
    tonic_prost_build::configure()
        .build_server(false)
        .build_transport(false)
        .compile_fds(descriptors)?;
    Ok(())
}
