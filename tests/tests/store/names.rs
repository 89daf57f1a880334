//! Names that come again with another uid: one incarnation is alive, the others are closed.

use kindex_runtime::store::{Life, Written};

use super::backend::Backend;
use super::widget::{WIDGET, at, soft_delete, widget};

scenarios!(
    a_recreated_name_closes_the_old_row,
    a_late_first_write_of_the_old_incarnation_stays_closed,
    both_incarnations_in_one_batch,
    other_names_and_namesakes_in_the_past_are_left_alone,
    a_revived_row_gives_way_to_a_younger_incarnation,
    two_writers_of_two_incarnations_leave_one_alive,
);

async fn a_recreated_name_closes_the_old_row(backend: Backend) {
    for old_life in [Life::Live, Life::Evicted] {
        let name = format!("{old_life:?}").to_lowercase();
        let (old, new) = (format!("{name}-1"), format!("{name}-2"));
        backend
            .write(widget(&old, &name, 10).store(old_life, false), at(0))
            .await;
        assert_eq!(
            backend.write(widget(&new, &name, 20).live(), at(1)).await,
            Written::Inserted
        );
        assert_eq!(backend.life(&old).await, Some(Life::Deleted));
        assert_eq!(backend.life(&new).await, Some(Life::Live));
        let found = backend.store.get_by_name(&WIDGET, "shop", &name).await;
        let found = found.expect("readable").expect("stored");
        assert_eq!(&*found.object.metadata.uid.0, new);
    }
}

async fn a_late_first_write_of_the_old_incarnation_stays_closed(backend: Backend) {
    backend.write(widget("u2", "a", 20).live(), at(0)).await;
    assert_eq!(
        backend.write(widget("u1", "a", 10).live(), at(1)).await,
        Written::Inserted
    );
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(backend.life("u2").await, Some(Life::Live));
}

async fn both_incarnations_in_one_batch(backend: Backend) {
    let batch = [widget("u1", "a", 20).live(), widget("u2", "a", 10).live()];
    backend.write_all(&batch, at(0)).await;
    assert_eq!(backend.life("u1").await, Some(Life::Live));
    assert_eq!(backend.life("u2").await, Some(Life::Deleted));
}

async fn other_names_and_namesakes_in_the_past_are_left_alone(backend: Backend) {
    backend.write(widget("u1", "a", 10).live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    backend.write(widget("u2", "A", 11).live(), at(2)).await;
    backend.write(widget("u3", "a ", 12).live(), at(2)).await;
    backend.write(widget("u4", "a", 13).live(), at(3)).await;
    let stored = backend.store.get_by_id(&WIDGET, &"u1".into()).await;
    let stored = stored.expect("readable").expect("stored");
    assert_eq!(stored.delete_time, Some(at(1)), "closed once");
    for uid in ["u2", "u3", "u4"] {
        assert_eq!(backend.life(uid).await, Some(Life::Live), "{uid}");
    }
}

async fn a_revived_row_gives_way_to_a_younger_incarnation(backend: Backend) {
    let old = widget("u1", "a", 10);
    backend.write(old.live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    backend.write(widget("u2", "a", 20).live(), at(2)).await;
    backend.write(old.store(Life::Live, true), at(3)).await;
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(backend.life("u2").await, Some(Life::Live));
}

async fn two_writers_of_two_incarnations_leave_one_alive(backend: Backend) {
    for round in 0..20 {
        let name = format!("n{round}");
        let (old, new) = (format!("{name}-old"), format!("{name}-new"));
        let old_write = [widget(&old, &name, 10).live()];
        let new_write = [widget(&new, &name, 20).live()];
        let (a, b) = tokio::join!(
            backend.store.write(&WIDGET, &old_write, at(0)),
            backend.store.write(&WIDGET, &new_write, at(0)),
        );
        a.expect("written");
        b.expect("written");
        assert_eq!(backend.life(&old).await, Some(Life::Deleted), "round {round}");
        assert_eq!(backend.life(&new).await, Some(Life::Live), "round {round}");
    }
}
