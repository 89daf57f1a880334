//! Brings everything that follows from `crds.toml` up to date before this crate is compiled. The environment variable
//! `KINDEX_CODEGEN` decides how: unset or `write` replaces what differs, `check` fails on any difference (for CI),
//! `off` compiles what is there. What is generated is decided in `kindex-codegen`; this file only runs it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fmt};

use kindex_codegen::artifact::{self, Mode};
use kindex_codegen::source::CRDS;

const VARIABLE: &str = "KINDEX_CODEGEN";

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    // Asked at run time: a path compiled in would be wrong for a target directory that was copied or cached.
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
    let root = Path::new(&package)
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf);
    let mode = match env::var(VARIABLE).as_deref() {
        Ok("off") => {
            // Compiled as it is, also where the declaration has errors.
            let generated = kindex_codegen::generate(&root);
            return keep(&generated.map_or_else(|_| Vec::new(), |generated| generated.descriptors));
        }
        Ok("check") => Mode::Check,
        Ok("write" | "") | Err(_) => Mode::Write,
        Ok(other) => {
            return fail(format!("{VARIABLE} is write, check or off, not \"{other}\""));
        }
    };
    // A published crate comes without the declaration and with sources that are current.
    if !root.join(CRDS).exists() {
        return keep(&[]);
    }
    run(&root, mode)
}

fn run(root: &Path, mode: Mode) -> ExitCode {
    let kindex_codegen::Generated {
        artifacts,
        descriptors,
        inputs,
        warnings,
    } = match kindex_codegen::generate(root) {
        Ok(generated) => generated,
        Err(errors) => {
            watch(&errors.inputs(root));
            return fail(errors);
        }
    };
    watch(&inputs);
    for warning in warnings {
        println!("cargo::warning={warning}");
    }
    // Outputs are watched too, so that an edit by hand is undone by the next build.
    for path in artifacts.keys() {
        println!("cargo::rerun-if-changed={}", root.join(path.as_str()).display());
    }
    match artifact::sync(root, &artifacts, mode) {
        Ok(differences) if mode == Mode::Check && !differences.is_empty() => {
            fail(artifact::explain(&differences, "cargo build"))
        }
        Ok(_) => keep(&descriptors),
        Err(error) => match std::error::Error::source(&error) {
            Some(cause) => fail(format!("{error}: {cause}")),
            None => fail(error),
        },
    }
}

fn watch(inputs: &[PathBuf]) {
    for input in inputs {
        println!("cargo::rerun-if-changed={}", input.display());
    }
}

/// Puts the descriptors where emitted code includes them. Without any, no service is known and gRPC is not served.
fn keep(descriptors: &[u8]) -> ExitCode {
    let directory = env::var_os("OUT_DIR").expect("cargo sets it for build scripts");
    let file = Path::new(&directory).join(kindex_codegen::DESCRIPTORS);
    match std::fs::write(&file, descriptors) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format_args!("{}: {error}", file.display())),
    }
}

/// Cargo shows the standard error of a script that exits with 1.
fn fail(reason: impl fmt::Display) -> ExitCode {
    eprintln!("{reason}");
    ExitCode::FAILURE
}
