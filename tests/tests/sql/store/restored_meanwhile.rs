//! Archived holders that are restored while somebody reads who holds an object, over every database.

use futures::future::join;
use kindex_deletion::archive::{Archive as _, HolderScope};
use kindex_model::object::Uid;

use super::backend::Backend;
use super::tombstones::{LINKED, Linked, name, seen};
use super::widget::{at, widget};

scenarios!(a_holder_that_is_restored_is_met_by_whoever_reads_meanwhile);

/// Holders, each of an object of its own.
const HOLDERS: usize = 30;
/// As many reads as begin before the row of a holder has gone over to the restored one, in it, and after that.
const READS: usize = 8;

/// As if an object were freed because its only holder was read under its former uid when it had a new one.
async fn a_holder_that_is_restored_is_met_by_whoever_reads_meanwhile(backend: Backend) {
    let linked = Linked::on(backend).await;
    for number in 0..HOLDERS {
        let [old, new, holder, held] = ["old", "new", "a", "t"].map(|what| format!("{what}-{number}"));
        let archived = widget(&old, &holder, 70).archived();
        linked.backend.write(archived, at(1)).await;
        let (names, target) = ([name(&old)], Uid::from(held.as_str()));
        let kept = linked
            .backend
            .store
            .keep_references(&LINKED, &names, (&LINKED, &target), "jane", at(2));
        kept.await.expect("kept");

        let restored = widget(&new, &holder, 80).annotation("test/RestoredFrom", &old);
        let target = seen(&held, &held);
        let read = async {
            for _ in 0..READS {
                let page = linked.archive.holders(&target, HolderScope::Rows, None).await;
                assert_eq!(page.expect("readable").holders.len(), 1, "{held}");
            }
        };
        join(read, linked.backend.write(restored.live(), at(3))).await;
        let page = linked.archive.holders(&target, HolderScope::Rows, None).await;
        let holders = page.expect("readable").holders;
        assert!(holders.iter().map(|found| &found.uid).eq([&new]), "{holders:?}");
    }
}
