//! Archived objects that have something outside: they go by their own deletion alone, and their cleanup is shown what
//! SQL has of them.

use kindex_deletion::archive::{Archive as _, Holder, HolderScope};
use kindex_deletion::cleanup::{Answer, Cleanup, CleanupError, Cleanups, Deleted, async_trait};
use kindex_deletion::kinds::name_of;
use kindex_model::deletion::Phase;
use kindex_query::Life;
use serde_json::Value;

use super::backend::Backend;
use super::tombstones::{LINKED, Linked, seen};
use super::widget::at;

scenarios!(what_has_something_outside_gets_a_tombstone_where_others_go_at_once,);

struct Nothing;

#[async_trait]
impl Cleanup for Nothing {
    async fn clean_up(&self, _: &Deleted) -> Result<Answer, CleanupError> {
        Ok(Answer::Gone)
    }
}

async fn what_has_something_outside_gets_a_tombstone_where_others_go_at_once(backend: Backend) {
    let Linked { backend, archive } = Linked::on(backend).await;
    let archive = archive.with_cleanups(&Cleanups::none().with(&LINKED, Nothing));
    let linked = Linked { backend, archive };
    linked.evict("t", "").await;
    linked.evict("h", "t").await;
    let kind = name_of(&LINKED);
    let text = async || {
        let text = linked.archive.tombstone_text(&kind, "h").await;
        text.expect("readable")
    };
    assert!(text().await.is_none(), "nobody has deleted it");
    let holders = linked.holders("t", HolderScope::Archived).await;
    let holders: Vec<&Holder> = holders.iter().collect();
    let gone = linked.archive.delete(&seen("t", "t"), &holders, at(3)).await;
    assert_eq!(gone.expect("an answer"), [""; 0], "it is not cleaned up yet");
    let read = linked.read("h").await.expect("a tombstone");
    assert!(linked.record(&read, Phase::Draining).await);
    let text = text().await.expect("a tombstone");
    let object: Value = serde_json::from_str(text.text()).expect("an object is JSON");
    assert_eq!(object["metadata"]["uid"], "h");
    assert_eq!(object["spec"]["group"], "t");
    let read = linked.read("h").await.expect("a tombstone");
    assert_eq!(read.phase, Some(Phase::Draining));
    assert!(linked.record(&read, Phase::Finalizing).await);
    let read = linked.read("h").await.expect("a tombstone");
    let entered = read.phases.iter();
    let entered: Vec<(&str, &str)> = entered.map(|one| (&*one.name, &*one.reason)).collect();
    assert_eq!(entered, [("Draining", "NotInUse"), ("Finalizing", "NothingLeft")]);
    assert_eq!(read.phases[0].last_transition_time, at(3), "when it was recorded");
    assert!(linked.end(&read).await);
    assert_eq!(linked.backend.life("h").await, Some(Life::Deleted));
}
