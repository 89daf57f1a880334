//! Tables as they are in a database, read from its catalog. Live here means as it is, against what crds.toml wants; it
//! says nothing of the state of objects.

/// A table of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTable {
    /// Its name.
    pub name: String,
    /// The collation of columns that are added to it; `None` where the engine has no such thing.
    pub collation: Option<String>,
    /// Its columns in order.
    pub columns: Vec<LiveColumn>,
    /// The columns of its primary key in order; empty where it has none.
    pub primary_key: Vec<String>,
    /// Its other keys by name.
    pub keys: Vec<LiveKey>,
}

/// A column of such a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveColumn {
    /// Its name.
    pub name: String,
    /// Its type in the engine's words, in small letters, without display widths.
    pub ty: String,
    /// Whether it is NOT NULL.
    pub required: bool,
    /// Whether a row that does not name it gets a value all the same: a default, a number of the engine's.
    pub has_default: bool,
    /// How its texts compare; `None` where they are none.
    pub collation: Option<String>,
}

/// A key beside the primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveKey {
    /// Its name.
    pub name: String,
    /// Its columns in order.
    pub columns: Vec<String>,
    /// Whether no two rows may have the same values.
    pub unique: bool,
}
