//! References that others place in the name of an object.

use kube::ResourceExt as _;
use serde_json::json;

use super::Stage;

impl Stage {
    async fn place(&self, (kind, name): (&str, &str), reference: &str) {
        let found = self.get(kind, name).await.expect("it is there");
        let finalizers = [found.finalizers(), &[reference.to_owned()]].concat();
        self.patch(kind, name, json!({"metadata": {"finalizers": finalizers}}))
            .await;
    }
}

#[tokio::test]
async fn a_reference_on_what_no_field_can_name_stays_until_its_holder_goes() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    stage.create("Network", "m", json!({})).await;
    let reference = stage.reference("Cluster", "c").await;
    let (identity, network) = (("CloudIdentity", "i"), ("Network", "m"));
    // Of two that it would release, the identity comes first.
    stage.place(identity, &reference).await;
    stage.place(network, &reference).await;
    stage.until(|| async { !stage.bears(network, &reference).await }).await;
    assert!(stage.bears(identity, &reference).await, "no field can name an identity");
    stage.delete("Cluster", "c").await;
    stage.until(|| async { !stage.bears(identity, &reference).await }).await;
    stop.cancel();
    running.await.expect("it ends");
}
