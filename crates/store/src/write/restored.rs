//! Archived objects that were restored: what one of them holds goes over to the new object in the transaction that
//! closes its row, whichever process writes that. So one of the two holds it at every moment. Knows no dialect.

use std::collections::HashMap;

use jiff::Timestamp;
use kindex_model::object::Uid;
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;

use crate::cells::FoundRow;
use crate::driver::{Cells, Driver, Param};
use crate::row::{RowWrite, Written};
use crate::statements::references as sql;
use crate::write::batch::Batch;

/// By whom a reference counts as placed that came with its object from the cluster. Such a row is replaced by what the
/// object brings along again, which is the name of the former holder.
const PLACED_BY: &str = "kindex-restore";

/// A reference of the former holder, and its name from now on.
struct RenamedReference {
    kind: String,
    uid: String,
    former: String,
    name: ReferenceName,
    text: String,
    placed: Timestamp,
    placed_by: Option<String>,
}

impl<D: Driver> Batch<'_, D> {
    /// Gives restored objects what the objects hold from which they were restored, as far as the batch closes the rows
    /// of these. `superseded` has rows whose names others have now, each with the uid of the other.
    pub(crate) async fn hand_over_held(
        &mut self,
        writes: &[RowWrite],
        written: &[Written],
        found: &HashMap<Uid, FoundRow>,
        superseded: &[(&Uid, &Uid)],
    ) -> Result<(), sqlx::Error> {
        for (write, written) in writes.iter().zip(written) {
            let Some(former) = former(write, self.work.platform.restored_from) else {
                continue;
            };
            let uid = write.uid();
            let was_deleted = found.get(uid).is_some_and(|row| row.life() == Life::Deleted);
            let stays_deleted = was_deleted && *written == Written::Superseded;
            // Nobody would ever release what an object holds that is gone.
            if stays_deleted || superseded.iter().any(|(closed, _)| *closed == uid) {
                continue;
            }
            let is_closed = |other: &RowWrite| matches!(other, RowWrite::SoftDelete { uid } if *uid.0 == *former);
            let gave_way = |(closed, by): &(&Uid, &Uid)| *by == uid && *closed.0 == *former;
            if writes.iter().any(is_closed) || superseded.iter().any(gave_way) {
                self.rename_holder(former, uid).await?;
            }
        }
        Ok(())
    }

    /// Both rows of holders are locked: no reference of the former one is placed meanwhile.
    async fn rename_holder(&mut self, former: &str, uid: &Uid) -> Result<(), sqlx::Error> {
        let statement = sql::of_holder(self.work.sql.spelling());
        let mut held = Vec::new();
        for row in D::query(self.connection, statement, &[Param::Text(former)]).await? {
            let former = row.text(2)?;
            let name = former.parse::<ReferenceName>();
            let name = name.and_then(|name| ReferenceName::new(name.kind(), name.group(), &uid.0));
            // A row that names nobody is nobody's.
            let Ok(name) = name else { continue };
            held.push(RenamedReference {
                kind: row.text(0)?,
                uid: row.text(1)?,
                former,
                text: name.to_string(),
                name,
                placed: row.time(3)?.unwrap_or(self.work.now),
                placed_by: row.text_or_null(4)?,
            });
        }
        // What somebody has released meanwhile stays so: its target may be gone.
        let mut taken = Vec::new();
        for one in held {
            let params = [Param::Text(&one.kind), Param::Text(&one.uid), Param::Text(&one.former)];
            if D::execute(self.connection, sql::release(), &params).await? > 0 {
                taken.push(one);
            }
        }
        let rows: Vec<[Param<'_>; 8]> = taken.iter().map(RenamedReference::params).collect();
        self.execute_rows(&rows, |kind, rows| sql::place(kind.spelling(), rows))
            .await
    }
}

impl RenamedReference {
    fn params(&self) -> [Param<'_>; 8] {
        [
            Param::Text(&self.kind),
            Param::Text(&self.uid),
            Param::Text(&self.text),
            Param::Text(self.name.kind()),
            Param::Text(self.name.group()),
            Param::Text(self.name.uid()),
            Param::Time(self.placed),
            Param::Text(self.placed_by.as_deref().unwrap_or(PLACED_BY)),
        ]
    }
}

/// The uid of the object from which the object was restored that a write stores as one that exists.
fn former<'a>(write: &'a RowWrite, restored_from: &str) -> Option<&'a str> {
    match write {
        RowWrite::Store {
            version,
            life: Life::Live | Life::Archived,
            ..
        } => {
            let annotations = &version.object.metadata.annotations;
            annotations.get(restored_from).map(String::as_str)
        }
        RowWrite::Store {
            life: Life::Deleted, ..
        }
        | RowWrite::SoftDelete { .. }
        | RowWrite::Record { .. } => None,
    }
}
