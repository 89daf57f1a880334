//! A training job that logs to the runs service of `kindex up`.
//!
//! ```console
//! $ kindex up
//! $ cargo run -p kindex-runs-client --example train
//! ```

use std::time::Duration;

use kindex_runs_client::{Error, Run, Settings, Status};

fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).unwrap_or("http://127.0.0.1:50051".to_owned());
    let settings = Settings::new(url, "demo").name("from Rust").param("lr", 0.1);
    let run = Run::start(settings)?;
    println!("run {}", run.id());
    for step in 0..1000 {
        let loss = 1.0 / (1.0 + f64::from(step) * 0.01);
        run.log(step.into(), &[("loss", loss), ("accuracy", 1.0 - loss)])?;
    }
    let report = run.finish(Status::Finished, Duration::from_secs(60))?;
    println!("{} points are stored", report.accepted + report.deduplicated);
    Ok(())
}
