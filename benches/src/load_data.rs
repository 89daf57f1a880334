//! The same rows by `LOAD DATA`, the fastest that the server itself offers, as a yardstick: into
//! Kindex's three tables, or into those that the reference has for the same kind. The files are
//! written before any clock runs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::try_join_all;
use jiff::Timestamp;
use kindex_model::projection::Version;
use kindex_model::value::Value;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

use crate::objects::sql_time;

/// Whose tables are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    /// Kindex's.
    Kindex,
    /// The reference's, which has no hash of the content.
    Reference,
}

/// One file for each table, its rows in order of uid.
pub struct Files {
    files: [(&'static str, String, PathBuf); 3],
}

/// Writes the rows that a writer to these tables would write.
pub fn write(directory: &Path, objects: &[Arc<Version>], into: Into) -> std::io::Result<Files> {
    let hash = match into {
        Into::Kindex => ", content_hash",
        Into::Reference => "",
    };
    let files = [
        (
            "run",
            "uid, group_ver, namespace, name, res_version, create_time, update_time, proto, json, \
             pipeline_namespace, pipeline_name, state, end_time",
        ),
        ("run_labels", "obj_uid, `key`, `value`"),
        ("run_annotations", "obj_uid, `key`, `value`"),
    ]
    .map(|(table, columns)| {
        let columns = format!("{columns}{}", if table == "run" { hash } else { "" });
        (table, columns, directory.join(format!("{table}.tsv")))
    });
    let mut sorted: Vec<&Version> = objects.iter().map(AsRef::as_ref).collect();
    sorted.sort_by(|a, b| a.object.metadata.uid.cmp(&b.object.metadata.uid));
    let open = |path: &PathBuf| File::create(path).map(BufWriter::new);
    let mut main = open(&files[0].2)?;
    let mut labels = open(&files[1].2)?;
    let mut annotations = open(&files[2].2)?;
    for version in sorted {
        let hash = (into == Into::Kindex).then(|| Some(version.hash.to_bytes().to_vec()));
        let row: Vec<_> = main_row(version).into_iter().chain(hash).collect();
        write_line(&mut main, &row)?;
        let metadata = &version.object.metadata;
        let uid = metadata.uid.0.as_bytes();
        for (file, map) in [
            (&mut labels, &metadata.labels),
            (&mut annotations, &metadata.annotations),
        ] {
            for (key, value) in map {
                let row = [uid, key.as_bytes(), value.as_bytes()];
                write_line(file, &row.map(|cell| Some(cell.to_vec())))?;
            }
        }
    }
    for mut file in [main, labels, annotations] {
        file.flush()?;
    }
    Ok(Files { files })
}

fn main_row(version: &Version) -> Vec<Option<Vec<u8>>> {
    let metadata = &version.object.metadata;
    let created = metadata.creation_timestamp.unwrap_or_default();
    let mut row: Vec<Option<Vec<u8>>> = [
        metadata.uid.0.to_string(),
        metadata.api_version.clone(),
        metadata.namespace.clone(),
        metadata.name.clone(),
        metadata.resource_version.to_string(),
        sql_time(created),
        sql_time(Timestamp::now()),
    ]
    .map(|text| Some(text.into_bytes()))
    .into();
    row.push(version.proto.clone());
    row.push(Some(version.object.text().as_bytes().to_vec()));
    row.extend(version.columns.iter().map(|value| match value {
        Value::Null => None,
        Value::Bool(flag) => Some(u8::from(*flag).to_string().into_bytes()),
        Value::Int(number) => Some(number.to_string().into_bytes()),
        Value::UInt(number) => Some(number.to_string().into_bytes()),
        Value::Double(number) => Some(number.to_string().into_bytes()),
        Value::Text(text) => Some(text.clone().into_bytes()),
        Value::Time(time) => Some(sql_time(*time).into_bytes()),
    }));
    row
}

/// The default format: tabs between cells, `\N` for NULL, a backslash before what is special.
fn write_line(file: &mut impl Write, cells: &[Option<Vec<u8>>]) -> std::io::Result<()> {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            file.write_all(b"\t")?;
        }
        let Some(bytes) = cell else {
            file.write_all(b"\\N")?;
            continue;
        };
        for &byte in bytes {
            match byte {
                b'\t' | b'\n' | b'\\' => file.write_all(&[b'\\', byte])?,
                0 => file.write_all(b"\\0")?,
                byte => file.write_all(&[byte])?,
            }
        }
    }
    file.write_all(b"\n")
}

/// Loads the files, one after the other, or at once on three connections with the checks of keys off.
///
/// # Errors
/// As the server says.
pub async fn load(options: &MySqlConnectOptions, files: &Files, at_once: bool) -> Result<(), sqlx::Error> {
    let load = |(table, columns, path): &(&'static str, String, PathBuf)| {
        let statement = format!(
            "LOAD DATA INFILE '{}' INTO TABLE `{table}` CHARACTER SET binary ({columns})",
            path.display()
        );
        async move {
            let mut connection = options.connect().await?;
            if at_once {
                let off = "SET SESSION unique_checks = 0, foreign_key_checks = 0";
                connection.execute(off).await?;
            }
            connection.execute(AssertSqlSafe(statement)).await?;
            connection.close().await
        }
    };
    if at_once {
        try_join_all(files.files.iter().map(load)).await?;
    } else {
        for file in &files.files {
            load(file).await?;
        }
    }
    Ok(())
}
