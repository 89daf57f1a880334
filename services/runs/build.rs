//! Makes Rust of `proto/`: messages, servers and clients, and the descriptors that reflection shows.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

const FILES: [&str; 3] = ["mlrun/v1/common.proto", "mlrun/v1/ingest.proto", "mlrun/v1/query.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::wire::Codec")
        // Written by hand, see `src/wire/`.
        .extern_path(".mlrun.v1.MetricBatch", "crate::wire::MetricColumns")
        .extern_path(".mlrun.v1.MetricPoint", "crate::wire::MetricPoint")
        .extern_path(".mlrun.v1.MetricStats", "crate::wire::MetricStats")
        .compile_fds(descriptors)?;
    Ok(())
}
