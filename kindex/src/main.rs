//! The `kindex` binary for the kinds of this repository's crds.toml.

use std::process::ExitCode;

use kindex::Platform;
use kindex::cleanup::Cleanups;
use kindex::platform::Sample;

/// A namespace and one object of each kind, each after what it refers to: the files of `samples/`, in order.
const SAMPLES: &[Sample] = include!(concat!(env!("OUT_DIR"), "/samples.rs"));

fn main() -> ExitCode {
    kindex::run(&Platform {
        registry: kindex_generated::registry(),
        samples: SAMPLES,
        cleanups: Cleanups::none(),
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_directory_is_a_sample() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
        let entries = fs::read_dir(directory).expect("the samples");
        let mut files: Vec<(String, String)> = entries
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension() == Some(OsStr::new("yaml")))
            .map(|path| {
                let name = path.file_name().expect("a file").to_string_lossy().into_owned();
                (name, fs::read_to_string(path).expect("readable"))
            })
            .collect();
        files.sort();
        let samples = SAMPLES
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        assert_eq!(samples.collect::<Vec<_>>(), files);
    }
}
