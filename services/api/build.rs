//! Makes Rust of `proto/`: messages and servers of references and events, and the descriptors that reflection shows.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = ["kindex/references/v1/references.proto", "kindex/events/v1/events.proto"];
    let descriptors = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_transport(false)
        .build_client(false)
        .compile_fds(descriptors)?;
    Ok(())
}
