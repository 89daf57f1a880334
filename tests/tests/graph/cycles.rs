//! Objects that name each other in a cycle, which is possible within one kind: the deletion of each of them waits for
//! itself. Nothing is released by itself, and people are told the path.

use kube::api::{Patch, PatchParams};
use kube::{Error, ResourceExt as _};
use serde_json::json;

use super::Stage;
use super::kinds::GROUP;

/// Each holder with its target.
const CYCLE: [(&str, &str); 3] = [("a", "b"), ("b", "c"), ("c", "a")];
/// Each is held by the next one, and the last by the first.
const PATH: [&str; 3] = ["a", "c", "b"];

impl Stage {
    /// Three zones that name each other by a field, each of them held by another one.
    async fn cycle(&self, field: &str) {
        for (name, named) in CYCLE {
            self.create("Zone", name, json!({ (field): named })).await;
        }
        for (holder, target) in CYCLE {
            let reference = self.reference("Zone", holder).await;
            self.until(|| self.has(("Zone", target), &reference)).await;
        }
    }

    /// Whether one of them was told the whole path: the last one to wait is, at the latest.
    async fn is_path_reported(&self) -> bool {
        for (begin, first) in PATH.into_iter().enumerate() {
            let names = (begin..=begin + PATH.len()).map(|at| PATH[at % PATH.len()]);
            let names = names.map(|name| format!("zone.{GROUP} default/{name}"));
            let path = names.collect::<Vec<_>>().join(" is held by ");
            if self.is_reported(first, "DeletionCycle", &path).await {
                return true;
            }
        }
        false
    }

    /// As `kindex references drop` does it: in the version that was read, so that nothing is undone that the service
    /// writes meanwhile.
    async fn drop_reference(&self, target: &str, reference: &str) {
        let dropped = || async {
            let found = self.get("Zone", target).await.expect("it waits");
            let left: Vec<_> = found.finalizers().iter().filter(|one| *one != reference).collect();
            let patch = json!({"metadata": {
                "resourceVersion": found.resource_version(),
                "finalizers": left,
                "annotations": {"platform.example.com/release-references": reference},
            }});
            let zones = self.api("Zone");
            let patched = zones.patch(target, &PatchParams::default(), &Patch::Merge(patch)).await;
            match patched {
                Ok(_) => true,
                Err(Error::Api(status)) if status.code == 409 => false,
                Err(error) => panic!("{error}"),
            }
        };
        self.until(dropped).await;
    }

    async fn has_zones(&self) -> bool {
        for name in PATH {
            if self.get("Zone", name).await.is_some() {
                return true;
            }
        }
        false
    }
}

/// Three zones name each other by a field, and some of them are deleted by users. All of them go once somebody drops
/// the reference of one.
async fn a_cycle_ends(field: &str, deleted: &[&str], dropped: (&str, &str)) {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.cycle(field).await;
    for name in deleted {
        stage.delete("Zone", name).await;
    }
    stage.until(|| stage.is_path_reported()).await;
    for (holder, target) in CYCLE {
        let reference = stage.reference("Zone", holder).await;
        assert!(
            stage.has(("Zone", target), &reference).await,
            "{holder} holds {target} still"
        );
    }
    let (holder, target) = dropped;
    let reference = stage.reference("Zone", holder).await;
    stage.drop_reference(target, &reference).await;
    stage.until(|| async { !stage.has_zones().await }).await;
    stop.cancel();
    running.await.expect("it ends");
}

#[tokio::test]
async fn objects_that_own_each_other_in_a_cycle_go_once_a_reference_is_dropped() {
    a_cycle_ends("parent", &["a"], CYCLE[0]).await;
}

#[tokio::test]
async fn objects_that_go_with_each_other_in_a_cycle_go_once_a_reference_is_dropped() {
    a_cycle_ends("backup", &["a"], CYCLE[2]).await;
}

#[tokio::test]
async fn objects_that_block_each_other_in_a_cycle_go_once_a_reference_is_dropped() {
    a_cycle_ends("uses", &["a", "b", "c"], CYCLE[1]).await;
}
