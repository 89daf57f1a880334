//! Contents that come while their upload ends, or while the store does not answer.

use axum::body::Body;
use futures::stream;
use sqlx::Sqlite;
use sqlx::pool::PoolConnection;

use super::{TestArtifacts, md5, reason, setup};
use crate::artifacts::commands::{Drop as DropUpload, Finalize};
use crate::artifacts::upload::checksum;
use crate::artifacts::verdict::Content;

/// All connections that read, so that nobody else has one.
async fn readers(test: &TestArtifacts) -> Vec<PoolConnection<Sqlite>> {
    let readers = test.fixture.store.readers();
    let mut all = Vec::new();
    for _ in 0..readers.options().get_max_connections() {
        all.push(readers.acquire().await.expect("a connection"));
    }
    all
}

/// As if an upload were gone because the store did not answer: the next answer, that it is open, had all of its files
/// deleted.
#[tokio::test]
async fn a_read_that_fails_deletes_nothing_of_an_open_upload() {
    let test = setup().await;
    let upload = test.create("x", "hello").await;
    let mut held = readers(&test).await;
    let mut broken = held.pop().expect("a connection");
    let statement = "CREATE TEMP TABLE upload (without_columns)";
    sqlx::query(statement).execute(&mut *broken).await.expect("hidden");
    drop(held.pop());
    let pool = test.fixture.store.readers().clone();
    // The read after the content gets the broken connection, and the one after that the other.
    let content = stream::once(async move {
        let other = pool.acquire().await.expect("a connection");
        for (connection, idle) in [(broken, 1), (other, 2)] {
            drop(connection);
            while pool.num_idle() < idle {
                tokio::task::yield_now().await;
            }
        }
        Ok::<_, std::io::Error>("hello")
    });
    let content = Body::from_stream(content);
    let answer = test.send("PUT", &upload.presigned_url, &upload, content).await;
    assert_eq!(reason(answer), "STORE_UNAVAILABLE");
    assert_eq!(test.files(), 1);
    drop(held);
    for mut connection in readers(&test).await {
        let statement = "DROP TABLE IF EXISTS temp.upload";
        sqlx::query(statement).execute(&mut *connection).await.expect("shown");
    }
    test.finalize(&upload.upload_id, "hello").await.expect("an artifact");
    assert_eq!(test.fetch("x").await, Ok("hello".to_owned()));
}

#[tokio::test]
async fn what_comes_after_the_end_of_an_upload_is_deleted_but_not_the_artifact() {
    for (is_artifact, expected) in [(true, ("UPLOAD_FINALIZED", 1)), (false, ("UPLOAD_NOT_FOUND", 0))] {
        let test = setup().await;
        let upload = test.announce("x", 5, String::new()).await.expect("an upload");
        test.put(&upload, "hello").await.expect("a file");
        let (store, id) = (test.fixture.store.clone(), upload.upload_id.clone());
        let late = stream::once(async move {
            let claimed = Content {
                bytes: 5,
                checksum: checksum("", &md5("hello")).expect("a checksum"),
            };
            if is_artifact {
                let received = vec![claimed];
                let command = Finalize { id, claimed, received };
                store.write(command).await.expect("finalized");
            } else {
                store.write(DropUpload { id }).await.expect("dropped");
            }
            Ok::<_, std::io::Error>("other")
        });
        let late = Body::from_stream(late);
        let answer = test.send("PUT", &upload.presigned_url, &upload, late).await;
        assert_eq!((reason(answer), test.files()), expected);
        assert_eq!(test.fetch("x").await.is_ok(), is_artifact);
    }
}

/// What the store did not answer for is deleted by the next attempt.
#[tokio::test]
async fn an_attempt_after_the_end_of_an_upload_deletes_what_an_earlier_one_left() {
    let test = setup().await;
    let upload = test.announce("x", 5, String::new()).await.expect("an upload");
    test.put(&upload, "hello").await.expect("a file");
    let id = upload.upload_id.clone();
    test.fixture.store.write(DropUpload { id }).await.expect("dropped");
    assert_eq!(test.files(), 1);
    assert_eq!(reason(test.put(&upload, "hello").await), "UPLOAD_NOT_FOUND");
    assert_eq!(test.files(), 0);
}
