//! Kindex with the five kinds of the graph in one service. Its cloud is a directory: a file with the name of a cluster
//! is its machine.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use kindex::Platform;
use kindex::cleanup::{Answer, Cleanup, CleanupError, Cleanups, Deleted, async_trait};
use platform_generated::kinds::cluster;

/// The directory.
struct Machines(PathBuf);

#[async_trait]
impl Cleanup for Machines {
    /// Says in the file that it is to be removed, as long as there is one.
    async fn clean_up(&self, deleted: &Deleted) -> Result<Answer, CleanupError> {
        let machine = self.0.join(&deleted.name);
        match OpenOptions::new().write(true).truncate(true).open(&machine) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Answer::Gone),
            Err(error) => Err(error.into()),
            Ok(mut file) => {
                file.write_all(b"to be removed\n")?;
                Ok(Answer::Pending {
                    what: format!("the machine {}", machine.display()),
                    again_after: Some(Duration::from_secs(1)),
                })
            }
        }
    }
}

fn main() -> ExitCode {
    let machines = std::env::var_os("MACHINES").unwrap_or_else(|| "machines".into());
    kindex::run(&Platform {
        registry: platform_generated::registry(),
        samples: &[],
        cleanups: Cleanups::none().with(&cluster::KIND, Machines(machines.into())),
    })
}
