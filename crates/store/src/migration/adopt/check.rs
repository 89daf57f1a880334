//! Checks that the values of a table fit its new types, before anything is changed, so that no statement fails halfway.

use kindex_model::object::Object;

use crate::adoption::{AdoptionBlocker, AdoptionSql, Definition, Example};
use crate::connections::{Connections, failure};
use crate::driver::{Cells, Driver, Param, Purpose, Statement};
use crate::error::StoreError;
use crate::live::LiveTable;
use crate::occupied::Occupied;

/// Everything in a main table or in one of its side tables that does not fit. Extracted columns are
/// not asked about: their values are read anew.
pub(super) async fn check<D: Driver>(
    connections: &Connections<D>,
    sql: &dyn AdoptionSql,
    live: &LiveTable,
    wanted: &Definition<'_>,
    extracted: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<AdoptionBlocker>, StoreError> {
    let mut blockers = Vec::new();
    let base = wanted.columns.iter().filter(|column| !extracted(column.name));
    for column in base {
        let Some(found) = live.columns.iter().find(|it| it.name == column.name) else {
            continue;
        };
        for check in sql.value_checks(live, found, column) {
            if let Some((rows, first)) = count_with_example(connections, Statement::once(check.question)).await? {
                blockers.push((check.blocker)(&Example { rows, first: &first }));
            }
        }
    }
    let has = |name: &str| live.columns.iter().any(|column| column.name == name);
    if has("json") {
        blockers.extend(objects(connections, sql, &live.name).await?);
    }
    if has("obj_uid") && has("key") {
        blockers.extend(keys(connections, sql, &live.name).await?);
    }
    Ok(blockers)
}

/// How many rows there are and one of them; `None` where there is none.
async fn count_with_example<D: Driver>(
    connections: &Connections<D>,
    question: Statement,
) -> Result<Option<(i64, String)>, StoreError> {
    let failed = |error| failure::<D>(super::SUBJECT, error);
    let rows = without_time_limit(connections, question, &[]).await.map_err(failed)?;
    let row = rows.first().expect("an aggregate without groups has one row");
    let count = row.int(0).map_err(failed)?;
    let first = row.text_or_null(1).map_err(failed)?.unwrap_or_default();
    Ok((count > 0).then_some((count, first)))
}

/// Without a limit of time: each of these questions reads a whole table. Whoever gives up meanwhile leaves no
/// connection in the pool that is still at it.
pub(super) async fn without_time_limit<D: Driver>(
    connections: &Connections<D>,
    question: Statement,
    params: &[Param<'_>],
) -> Result<Vec<D::Row>, sqlx::Error> {
    let mut connection = Occupied::<D>::new(connections.acquire(Purpose::Read).await?);
    let rows = D::query(&mut connection, question, params).await?;
    drop(connection.ended());
    Ok(rows)
}

async fn keys<D: Driver>(
    connections: &Connections<D>,
    sql: &dyn AdoptionSql,
    table: &str,
) -> Result<Option<AdoptionBlocker>, StoreError> {
    let failed = |error| failure::<D>(super::SUBJECT, error);
    let question = Statement::once(sql.twice(table));
    let rows = without_time_limit(connections, question, &[]).await.map_err(failed)?;
    let blocker = rows.first().map(|row| {
        let (uid, key) = (row.text(0)?, row.text(1)?);
        Ok(sql.found_twice(table, &uid, &key, row.int(2)?, row.int(3)?))
    });
    blocker.transpose().map_err(failed)
}

/// Reads all rows that may hold no object, so many at a time: an engine calls objects of many levels invalid too, and
/// any number of these may come before one that is none.
async fn objects<D: Driver>(
    connections: &Connections<D>,
    sql: &dyn AdoptionSql,
    table: &str,
) -> Result<Option<AdoptionBlocker>, StoreError> {
    let failed = |error| failure::<D>(super::SUBJECT, error);
    let (mut first, mut count, mut after) = (None, 0, None::<String>);
    loop {
        let params: Vec<Param<'_>> = after.iter().map(|uid| Param::Text(uid)).collect();
        let question = Statement::once(sql.unsure_rows(table, after.is_some()));
        let rows = without_time_limit(connections, question, &params)
            .await
            .map_err(failed)?;
        let Some(last) = rows.last() else { break };
        for row in &rows {
            let (uid, text) = (row.text(0).map_err(failed)?, row.text_or_null(1).map_err(failed)?);
            if let Some(why) = refusal(&uid, text.as_deref()) {
                count += 1;
                first.get_or_insert((uid, why));
            }
        }
        after = Some(last.text(0).map_err(failed)?);
    }
    Ok(first.map(|(uid, why)| sql.no_object(table, &uid, &why, count)))
}

/// Why a text is not the object of that uid, if it is not.
fn refusal(uid: &str, text: Option<&str>) -> Option<String> {
    let Some(text) = text else {
        return Some("it is NULL".to_owned());
    };
    match Object::parse_str(text) {
        Err(error) => Some(error.to_string()),
        Ok(object) if &*object.metadata.uid.0 != uid => Some(format!("it has uid `{}`", object.metadata.uid)),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_must_be_the_object_of_its_row() {
        let text = |uid: &str| format!(r#"{{"metadata":{{"name":"a","uid":"{uid}","resourceVersion":"1"}}}}"#);
        assert_eq!(refusal("u", Some(&text("u"))), None);
        assert!(refusal("u", Some(&text("v"))).expect("another one").contains("uid `v`"));
        for (text, why) in [
            (None, "NULL"),
            (Some("{"), "not a Kubernetes object"),
            (Some("{}"), "missing"),
        ] {
            let refusal = refusal("u", text).expect("no object");
            assert!(refusal.contains(why), "{refusal}");
        }
    }
}
