//! Chooses which row of a name is restored, and checks that the name is free. Pure.

use kindex_model::kind::Platform;
use kindex_model::object::Uid;
use kindex_query::{Life, Stored};

/// The choice among the rows of a name.
#[derive(Clone, Copy, Debug)]
pub enum Choice<'a> {
    /// This row is restored.
    Row(&'a Stored),
    /// Another object of the name exists, live or archived.
    Taken(&'a Stored),
    /// There is no such row.
    Absent,
}

/// Chooses among all rows of a name, which come as
/// [`rows_of_name`](kindex_store::RowsOfName::rows_of_name) gives them: the row of this uid; without
/// a uid, the archived row, else the one that was deleted last.
///
/// # Guarantees
/// A row that was restored before is chosen again, so that an interrupted restoration is completed.
/// No other row is chosen while an object of the name exists: creating one would close that object's row.
pub fn choose<'a>(rows: &'a [Stored], uid: Option<&Uid>, platform: &Platform) -> Choice<'a> {
    choose_under(rows, uid, rows, platform)
}

/// Like [`choose`], for an object that is restored under another name, whose rows are `there`.
pub fn choose_under<'a>(rows: &'a [Stored], uid: Option<&Uid>, there: &'a [Stored], platform: &Platform) -> Choice<'a> {
    let holder = there.iter().find(|row| row.life != Life::Deleted);
    let wanted = match uid {
        Some(uid) => rows.iter().find(|row| row.object.metadata.uid == *uid),
        None => rows.iter().find(|row| row.life != Life::Live).or(rows.first()),
    };
    match (wanted, holder) {
        (None, _) => Choice::Absent,
        (Some(row), _) if row.life == Life::Live => Choice::Taken(row),
        (Some(row), Some(holder)) if !same(row, holder) && !is_restored(holder, row, platform) => Choice::Taken(holder),
        (Some(row), _) => Choice::Row(row),
    }
}

fn same(one: &Stored, other: &Stored) -> bool {
    one.object.metadata.uid == other.object.metadata.uid
}

/// Whether the object in the cluster was restored from this row.
fn is_restored(holder: &Stored, row: &Stored, platform: &Platform) -> bool {
    let from = holder.object.metadata.annotations.get(platform.restored_from);
    holder.life == Life::Live && from.is_some_and(|uid| **uid == *row.object.metadata.uid.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restore::manifest::tests::PLATFORM;
    use kindex_model::object::Object;

    fn row(uid: &str, life: Life) -> Stored {
        from(uid, life, "")
    }

    fn from(uid: &str, life: Life, restored_from: &str) -> Stored {
        let text = serde_json::json!({"metadata": {
            "name": "a", "uid": uid, "resourceVersion": "1",
            "annotations": {"test/RestoredFrom": restored_from},
        }});
        Stored {
            object: Object::parse_str(&text.to_string()).expect("an object"),
            life,
            update_time: None,
            delete_time: None,
            evicted_time: None,
            replaced_by: None,
        }
    }

    fn chosen(rows: &[Stored], uid: Option<&str>) -> String {
        match choose(rows, uid.map(Uid::from).as_ref(), &PLATFORM) {
            Choice::Row(row) => row.object.metadata.uid.to_string(),
            Choice::Taken(row) => format!("taken by {}", row.object.metadata.uid),
            Choice::Absent => "absent".to_owned(),
        }
    }

    #[test]
    fn the_archived_row_comes_before_those_that_were_deleted_and_of_these_the_last() {
        let deleted = [row("new", Life::Deleted), row("old", Life::Deleted)];
        assert_eq!(chosen(&deleted, None), "new");
        assert_eq!(chosen(&deleted, Some("old")), "old");
        assert_eq!(chosen(&deleted, Some("other")), "absent");
        assert_eq!(chosen(&[], None), "absent");
        assert_eq!(chosen(&[row("e", Life::Archived), row("d", Life::Deleted)], None), "e");
    }

    #[test]
    fn nothing_takes_the_name_of_an_object_that_exists() {
        let live = [row("l", Life::Live), row("d", Life::Deleted)];
        assert_eq!(chosen(&live, None), "taken by l");
        assert_eq!(chosen(&live, Some("d")), "taken by l");
        assert_eq!(chosen(&live, Some("l")), "taken by l");
        assert_eq!(chosen(&live[..1], None), "taken by l");
        let archived = [row("e", Life::Archived), row("d", Life::Deleted)];
        assert_eq!(chosen(&archived, Some("d")), "taken by e");
    }

    #[test]
    fn another_name_has_to_be_free_and_the_objects_own_need_not() {
        let own = [row("new", Life::Live), row("old", Life::Deleted)];
        let under = |there: &[Stored], uid: Option<&str>| {
            let uid = uid.map(Uid::from);
            match choose_under(&own, uid.as_ref(), there, &PLATFORM) {
                Choice::Row(row) => row.object.metadata.uid.to_string(),
                Choice::Taken(row) => format!("taken by {}", row.object.metadata.uid),
                Choice::Absent => "absent".to_owned(),
            }
        };
        assert_eq!(under(&[], Some("old")), "old");
        assert_eq!(under(&[], None), "old");
        assert_eq!(under(&[], Some("new")), "taken by new");
        assert_eq!(under(&[row("gone", Life::Deleted)], Some("old")), "old");
        for life in [Life::Live, Life::Archived] {
            assert_eq!(under(&[row("there", life)], Some("old")), "taken by there");
        }
        assert_eq!(under(&[from("back", Life::Live, "old")], Some("old")), "old");
    }

    #[test]
    fn a_restoration_is_recognized_and_may_be_completed() {
        let restored = [
            from("n", Life::Live, "d"),
            row("d", Life::Deleted),
            row("x", Life::Deleted),
        ];
        assert_eq!(chosen(&restored, None), "d");
        assert_eq!(chosen(&restored, Some("x")), "taken by n");
        let left_again = [from("n", Life::Archived, "d"), row("d", Life::Deleted)];
        assert_eq!(chosen(&left_again, None), "n");
        assert_eq!(chosen(&left_again, Some("d")), "taken by n");
    }
}
