//! Rows as structs: a field for each column, by its name.

/// A struct that is read from a row of SQLite.
macro_rules! row {
    ($(#[$attribute:meta])* $seen:vis struct $name:ident { $($field_seen:vis $field:ident: $type:ty,)+ }) => {
        $(#[$attribute])*
        $seen struct $name {
            $($field_seen $field: $type,)+
        }

        impl sqlx::FromRow<'_, sqlx::sqlite::SqliteRow> for $name {
            fn from_row(row: &sqlx::sqlite::SqliteRow) -> sqlx::Result<Self> {
                Ok(Self {
                    $($field: sqlx::Row::try_get(row, stringify!($field))?,)+
                })
            }
        }
    };
}

pub(super) use row;
