//! The `kindex` command for the kinds of this repository, where each model may have a file outside of the cluster, in
//! the directory that `OUTSIDE` names. What the file says, its cleanup does; it goes on once the file is gone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use kindex::Platform;
use kindex::cleanup::{Answer, Cleanup, CleanupError, Cleanups, Deleted, async_trait};

struct Files(PathBuf);

#[async_trait]
impl Cleanup for Files {
    async fn clean_up(&self, deleted: &Deleted) -> Result<Answer, CleanupError> {
        let calls = self.0.join(format!("{}.calls", deleted.name));
        let mut calls = OpenOptions::new().create(true).append(true).open(calls)?;
        writeln!(calls, "{}", deleted.uid)?;
        match fs::read_to_string(self.0.join(&deleted.name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Answer::Gone),
            Err(error) => Err(error.into()),
            Ok(text) if text == "fail" => Err("the disk is away".into()),
            Ok(text) if text == "panic" => panic!("a file that panics"),
            Ok(text) => Ok(Answer::Pending {
                what: format!("the file of {} says {text}", deleted.name),
                again_after: Some(Duration::from_secs(1)),
            }),
        }
    }
}

fn main() -> ExitCode {
    let directory = std::env::var_os("OUTSIDE").map(PathBuf::from);
    let files = || Files(directory.clone().unwrap_or_default());
    let cleanups = Cleanups::none().with(&kindex_generated::kinds::model::KIND, files());
    kindex::run(&Platform {
        registry: kindex_generated::registry(),
        samples: &[],
        cleanups: match std::env::var_os("OUTSIDE_STRANGE") {
            Some(_) => cleanups.with(&kindex_tests::kinds::trial::KIND, files()),
            None => cleanups,
        },
    })
}
