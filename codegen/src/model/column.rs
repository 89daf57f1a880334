//! Extracted columns: where the value is found in an object, what it is, and how SQL holds it. Base columns live in
//! `base`; dialects and Rust types are unknown here.

use super::{BaseColumn, ColumnName, EnumName, SqlType};

/// A field of an object that is copied into its own SQL column. Every extracted column is nullable: NULL means that
/// the field is absent or cannot be read as `ty`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// SQL name, unique in the table.
    pub name: ColumnName,
    /// Where the value is found, from the root of the object.
    pub path: Path,
    /// What is read there.
    pub ty: ColumnType,
    /// How SQL holds it: the default of `ty`, or the declared override, which is known to fit `ty`.
    pub sql: SqlType,
    /// The name that the column had before, for the planner of migrations.
    pub was: Option<ColumnName>,
    /// Set for the columns that one entry of `crds.toml` made together.
    pub group: Option<Group>,
    /// Documentation; never empty: the declared text, else the field's comment, else a sentence naming the path.
    pub doc: String,
}

/// Membership in a composite column such as a ResourceIdentifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The name written in `crds.toml`: `pipeline` for `pipeline_namespace` and `pipeline_name`.
    pub name: ColumnName,
    /// Which part of the composite this column is.
    pub part: Part,
}

/// The parts of the composites that become more than one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// `namespace` of a ResourceIdentifier.
    ResourceNamespace,
    /// `name` of a ResourceIdentifier; always the column after its namespace.
    ResourceName,
    /// `name` of a UserInfo.
    UserName,
    /// `proxy_user` of a UserInfo; always the column after its name.
    UserProxyUser,
}

impl Part {
    /// Whether it is one half of a ResourceIdentifier.
    pub fn is_of_a_resource(self) -> bool {
        matches!(self, Self::ResourceNamespace | Self::ResourceName)
    }
}

/// The way from the root of an object to a value, never empty, without lists or maps in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// From the root inwards: `spec`, `pipeline`, `namespace`.
    pub segments: Vec<Segment>,
}

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Name in the JSON of the object: `trainingFramework`.
    pub json: String,
    /// Name of the proto field: `training_framework`.
    pub proto: String,
}

impl Path {
    /// The JSON names, from the root.
    pub fn json(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map(|segment| segment.json.as_str())
    }

    /// The proto field names, from the root.
    pub fn proto(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map(|segment| segment.proto.as_str())
    }

    /// `spec.trainingFramework`, as a manifest shows it.
    pub fn json_dotted(&self) -> String {
        self.json().collect::<Vec<_>>().join(".")
    }

    /// `spec.training_framework`, as the message declares it.
    pub fn proto_dotted(&self) -> String {
        self.proto().collect::<Vec<_>>().join(".")
    }
}

/// What is read from the JSON of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ColumnType {
    /// A string.
    Text,
    /// The full name of an enum value; an unknown name is kept, a number is turned into its name.
    Enum(EnumName),
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer, read from a JSON number or a string.
    Int64,
    /// An unsigned 64-bit integer, read from a JSON number or a string.
    UInt64,
    /// A bool.
    Bool,
    /// A floating-point number.
    Double,
    /// An RFC 3339 time, held in UTC.
    Timestamp,
}

impl ColumnType {
    /// The SQL type where `crds.toml` names none.
    pub const fn default_sql(&self) -> SqlType {
        match self {
            Self::Text | Self::Enum(_) => SqlType::VarChar(255),
            Self::Int32 => SqlType::Int,
            Self::Int64 => SqlType::BigInt,
            Self::UInt64 => SqlType::BigIntUnsigned,
            Self::Bool => SqlType::Boolean,
            Self::Double => SqlType::Double,
            Self::Timestamp => SqlType::DateTime(6),
        }
    }

    /// Whether a column of type `sql` can hold this value without a change of its meaning.
    pub const fn fits(&self, sql: SqlType) -> bool {
        use SqlType as Sql;
        match self {
            Self::Text => matches!(sql, Sql::VarChar(_) | Sql::Text | Sql::MediumText | Sql::LongText),
            Self::Enum(_) => matches!(sql, Sql::VarChar(_) | Sql::Text),
            Self::Int32 | Self::Int64 => matches!(
                sql,
                Sql::TinyInt | Sql::SmallInt | Sql::Int | Sql::BigInt | Sql::Decimal(_, _)
            ),
            Self::UInt64 => matches!(sql, Sql::BigIntUnsigned | Sql::Decimal(_, _)),
            Self::Bool => matches!(sql, Sql::Boolean | Sql::TinyInt),
            Self::Double => matches!(sql, Sql::Double | Sql::Decimal(_, _)),
            Self::Timestamp => matches!(sql, Sql::DateTime(_) | Sql::Date),
        }
    }

    /// The word for documentation: `string`, `enum`, `timestamp`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Enum(_) => "enum",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Bool => "bool",
            Self::Double => "double",
            Self::Timestamp => "timestamp",
        }
    }
}

impl From<BaseColumn> for ColumnName {
    fn from(column: BaseColumn) -> Self {
        Self::parse(column.name()).expect("base columns have valid SQL names")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_sql_type_always_fits() {
        let state = EnumName::parse("a.State").expect("valid");
        for ty in [
            ColumnType::Text,
            ColumnType::Enum(state),
            ColumnType::Int32,
            ColumnType::Int64,
            ColumnType::UInt64,
            ColumnType::Bool,
            ColumnType::Double,
            ColumnType::Timestamp,
        ] {
            assert!(ty.fits(ty.default_sql()), "{ty:?}");
        }
    }

    #[test]
    fn text_does_not_fit_a_number() {
        assert!(!ColumnType::Text.fits(SqlType::Int));
        assert!(!ColumnType::Int64.fits(SqlType::VarChar(20)));
    }
}
