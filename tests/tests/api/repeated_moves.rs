//! A move of an archived holder that is repeated: whoever made it first may have ended before all was done.

use super::moves_across::{Both, faulty_region};

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_is_lacking_is_placed() {
    let both = Both::start().await;
    let held = both.create_archived().await;
    let tried = both.try_to_move(&both.operations, "a", true).await.expect("it is so");
    assert!(
        tried.unchanged && !both.has_reference("a", &held).await,
        "nothing was written"
    );
    let moved = both.try_to_move(&both.operations, "a", false).await.expect("it is so");
    assert!(moved.unchanged && both.has_reference("a", &held).await);
    both.end().await;
}

/// As if all were well where the reference could not be placed.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_placed_is_an_error() {
    let both = Both::start().await;
    both.create_archived().await;
    let (peers, _) = faulty_region("PUT a?renew=true").await;
    let operations = both.compute.operations().with_peers(peers);
    let refused = both.try_to_move(&operations, "a", false).await;
    assert_eq!(refused.expect_err("it does not answer").code, 503);
    both.end().await;
}
