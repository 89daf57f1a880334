//! The part of the storage contract that every kind has: the columns that precede the extracted ones, Kindex's own
//! columns after them, and the two side tables; and the history that a kind may have. Names, order and meaning only;
//! the SQL types are the dialects' choice.

/// A column that every main table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BaseColumn {
    /// Kubernetes UID.
    Uid,
    /// API group and version: `michelangelo.api/v2`.
    GroupVer,
    /// Namespace of the object, empty for cluster-scoped kinds.
    Namespace,
    /// Name of the object.
    Name,
    /// `metadata.resourceVersion` as a number.
    ResVersion,
    /// `metadata.creationTimestamp`.
    CreateTime,
    /// Time of the last write that changed the row.
    UpdateTime,
    /// Time of the soft delete; NULL for a live row.
    DeleteTime,
    /// The object in message encoding; NULL where it does not fit its message.
    Proto,
    /// The exact JSON text of the object.
    Json,
    /// Set: the object is archived.
    EvictedTime,
    /// Hash of payload, labels and annotations; an equal hash means nothing to write.
    ContentHash,
    /// Place of the row in order of arrival, the primary key: what is written together lies together.
    Seq,
}

impl BaseColumn {
    /// The columns before the extracted ones, in table order.
    pub const LEADING: [Self; 10] = [
        Self::Uid,
        Self::GroupVer,
        Self::Namespace,
        Self::Name,
        Self::ResVersion,
        Self::CreateTime,
        Self::UpdateTime,
        Self::DeleteTime,
        Self::Proto,
        Self::Json,
    ];

    /// The columns after the extracted ones, in table order.
    pub const TRAILING: [Self; 3] = [Self::EvictedTime, Self::ContentHash, Self::Seq];

    /// All base columns, in table order.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::LEADING.into_iter().chain(Self::TRAILING)
    }

    /// The base column of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::all().find(|column| column.name() == name)
    }

    /// The SQL name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uid => "uid",
            Self::GroupVer => "group_ver",
            Self::Namespace => "namespace",
            Self::Name => "name",
            Self::ResVersion => "res_version",
            Self::CreateTime => "create_time",
            Self::UpdateTime => "update_time",
            Self::DeleteTime => "delete_time",
            Self::Proto => "proto",
            Self::Json => "json",
            Self::EvictedTime => "evicted_time",
            Self::ContentHash => "content_hash",
            Self::Seq => "seq",
        }
    }

    /// One sentence for documentation.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Uid => "Kubernetes object UID, unique.",
            Self::GroupVer => "API group and version.",
            Self::Namespace => "Kubernetes namespace.",
            Self::Name => "Kubernetes object name.",
            Self::ResVersion => "Kubernetes resource version, as a number.",
            Self::CreateTime => "Creation time of the object, from Kubernetes.",
            Self::UpdateTime => "Time of the last write that changed the row.",
            Self::DeleteTime => "Time of the soft delete, or NULL for live rows.",
            Self::Proto => "The object in protobuf encoding, or NULL where it does not fit its message.",
            Self::Json => "The exact JSON text of the object as the API server sent it.",
            Self::EvictedTime => "Time of the eviction from etcd, or NULL while the cluster holds the object.",
            Self::ContentHash => "Hash of payload, labels and annotations; equal means nothing to write.",
            Self::Seq => "Primary key, in order of arrival; has no meaning beyond that, and gaps.",
        }
    }

    /// Whether the column is NOT NULL.
    pub const fn required(self) -> bool {
        match self {
            Self::Uid
            | Self::GroupVer
            | Self::Namespace
            | Self::Name
            | Self::ResVersion
            | Self::CreateTime
            | Self::Json
            | Self::Seq => true,
            Self::UpdateTime | Self::DeleteTime | Self::Proto | Self::EvictedTime | Self::ContentHash => false,
        }
    }
}

/// A table beside the main table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideTable {
    /// `<table>_labels`.
    Labels,
    /// `<table>_annotations`.
    Annotations,
}

impl SideTable {
    /// Both side tables, in the order in which they follow the main table.
    pub const ALL: [Self; 2] = [Self::Labels, Self::Annotations];

    /// What is appended to the main table's name after an underscore.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Annotations => "annotations",
        }
    }
}

/// A column of a side table; both side tables have the same four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideColumn {
    /// Surrogate primary key; nothing reads it.
    Id,
    /// The `uid` of the row in the main table.
    ObjUid,
    /// Label or annotation key.
    Key,
    /// Label or annotation value.
    Value,
}

impl SideColumn {
    /// The four columns in table order.
    pub const ALL: [Self; 4] = [Self::Id, Self::ObjUid, Self::Key, Self::Value];

    /// The SQL name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::ObjUid => "obj_uid",
            Self::Key => "key",
            Self::Value => "value",
        }
    }
}

/// A column of a history table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistoryColumn {
    /// The `uid` of the row in the main table.
    ObjUid,
    /// Versions that a restored cluster took back are told from those it wrote under the same numbers.
    Branch,
    /// Resource version.
    ResVersion,
    /// When the version was first seen.
    SeenTime,
    /// How the payload is written.
    Encoding,
    /// The text of the version.
    Payload,
}

impl HistoryColumn {
    /// All columns in table order.
    pub const ALL: [Self; 6] = [
        Self::ObjUid,
        Self::Branch,
        Self::ResVersion,
        Self::SeenTime,
        Self::Encoding,
        Self::Payload,
    ];

    /// The primary key in order.
    pub const PRIMARY_KEY: [Self; 3] = [Self::ObjUid, Self::Branch, Self::ResVersion];

    /// What is appended to the main table's name after an underscore.
    pub const SUFFIX: &'static str = "history";

    /// The SQL name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ObjUid => "obj_uid",
            Self::Branch => "branch",
            Self::ResVersion => "res_version",
            Self::SeenTime => "seen_time",
            Self::Encoding => "encoding",
            Self::Payload => "payload",
        }
    }

    /// One sentence for documentation.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::ObjUid => "The `uid` of the object's row in the main table.",
            Self::Branch => "0; below 0 for versions that the cluster lost when it was restored from a backup.",
            Self::ResVersion => "Resource version of this text.",
            Self::SeenTime => "When Kindex first saw the version.",
            Self::Encoding => "1: the form that MySQL's `UNCOMPRESS()` reads.",
            Self::Payload => "The exact JSON text, compressed.",
        }
    }
}
