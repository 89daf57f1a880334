//! The texts that rows had before they were converted: read, removed with their version, and removed with their row.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;

use crate::cells::version_of_gone;
use crate::connections::{Connections, failure};
use crate::conversion::{DroppedTexts, KeptText, sql};
use crate::dialect::Spelling;
use crate::driver::{Cells, Driver, Param, Raw};
use crate::error::StoreError;
use crate::packed;
use crate::statements::padded_list;

pub(super) async fn of_row<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    uid: &Uid,
) -> Result<Vec<KeptText>, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let params = [Param::Text(kind.name), Param::Text(&uid.0)];
    let rows = connections.query(sql::of_row(), &params).await.map_err(failed)?;
    let mut texts = Vec::with_capacity(rows.len());
    for row in &rows {
        let payload = row.bytes(3).map_err(failed)?.unwrap_or_default();
        let text = packed::unpack(row.int(2).map_err(failed)?, &payload);
        texts.push(KeptText {
            group_ver: row.text(0).map_err(failed)?,
            res_version: version_of_gone(row, 1).map_err(failed)?,
            text: text.map_err(|message| StoreError::Corrupt {
                kind: kind.name.to_owned(),
                uid: uid.to_string(),
                message: format!("the text before its conversion: {message}"),
            })?,
        });
    }
    Ok(texts)
}

pub(super) async fn drop_version<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    group_ver: &str,
    after: Option<&Uid>,
    limit: u32,
) -> Result<DroppedTexts, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let (kind, after) = (Param::Text(kind.name), Param::Text(after.map_or("", |uid| &uid.0)));
    let params = [kind, after, Param::Int(limit.into())];
    let rows = connections.query(sql::last_kept(), &params).await.map_err(failed)?;
    let last = rows.first().map(|row| row.text_or_null(0)).transpose();
    let Some(last) = last.map_err(failed)?.flatten() else {
        return Ok(DroppedTexts::default());
    };
    let params = [kind, after, Param::Text(&last), Param::Text(group_ver)];
    let texts = connections.execute(sql::drop_version(), &params).await;
    Ok(DroppedTexts {
        texts: texts.map_err(failed)?,
        last: Some(Uid::from(last.as_str())),
    })
}

/// Removes the texts of rows that are removed. A kind that has one version now may have had another one.
pub(crate) async fn forget<D: Driver>(
    connection: &mut Raw<D>,
    kind: &Kind,
    spelling: &'static dyn Spelling,
    uids: &[&str],
) -> Result<(), sqlx::Error> {
    let mut params = vec![Param::Text(kind.name)];
    params.extend(padded_list(uids));
    D::execute(connection, sql::forget(spelling, params.len() - 1), &params).await?;
    Ok(())
}
