//! The validated model: what `lower` produces and every emitter reads.
//!
//! Everything in here has been checked and decided. Names are newtypes, choices are closed enums, order is final:
//! an emitter walks the model and prints, it never validates, defaults or sorts. The model knows no file, no TOML
//! position and no SQL dialect.

mod base;

mod name;

mod message;

mod query;

mod sql_type;

mod column;

mod mapping;

mod reference;

mod kind;

use std::collections::BTreeMap;

use prost_types::FileDescriptorSet;

pub use base::{BaseColumn, HistoryColumn, SideColumn, SideTable};
pub use column::{Column, ColumnType, Group, Part, Path, Segment};
pub use kind::{
    Key, Kind, Platform, PrinterColumn, PrinterType, Retention, RetentionStates, Scope, Shape, SubresourceStatus,
    Version,
};
pub use mapping::{FieldMap, MapRule};
pub use message::{
    Cardinality, Enum, EnumValue, Field, FieldType, KubernetesType, MapKey, Message, Oneof, Scalar, WellKnown,
};
pub(crate) use name::default_plural;
pub use name::{
    ApiVersion, ColumnName, EnumName, GroupName, KeyName, KindName, MessageName, NameError, QualifiedName, QueryName,
    ServiceName, TableName, snake_case,
};
pub use query::{ColumnRef, Comparison, Condition, Direction, Literal, Operand, Order, Query};
pub use reference::{Holder, Named, OnDelete, Reference, ReferenceTarget, Service, ServiceKind, TargetKind};
pub use sql_type::SqlType;

/// Everything that is emitted, in its final order.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What all kinds share: the default API group and version, finalizer, annotations, database name.
    pub platform: Platform,
    /// The kinds in the order of their declaration in `crds.toml`.
    pub kinds: Vec<Kind>,
    /// The other services in the order of their declaration.
    pub services: Vec<Service>,
    /// Every message of every compiled `.proto` file, also those that no kind uses.
    pub messages: BTreeMap<MessageName, Message>,
    /// Every enum of every compiled `.proto` file.
    pub enums: BTreeMap<EnumName, Enum>,
    /// The named queries in the order of their declaration.
    pub queries: Vec<Query>,
    /// All compiled files, dependencies before dependents, with source info (comments). The files made from inline
    /// fields and from CRD manifests are among them.
    pub descriptors: FileDescriptorSet,
    /// Every version that a kind was ever declared in, by kind and version.
    pub declared: Vec<DeclaredVersion>,
    /// The text of the `.proto` files that were made from inline fields or CRD manifests, by their import path.
    pub made_protos: BTreeMap<String, String>,
}

/// A version that a kind, which need not be declared any more, is or was declared in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredVersion {
    /// `PipelineRun`.
    pub kind: String,
    /// Its API group at that time.
    pub group: String,
    /// `v1beta1`.
    pub version: String,
    /// Its storage version hash.
    pub hash: String,
    /// Whether the lock says that no cluster stores it any more.
    pub dropped: bool,
}

impl Model {
    /// The kind of that name, if it is declared.
    pub fn kind(&self, name: &KindName) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.name == *name)
    }

    /// The message of that name.
    ///
    /// # Panics
    /// If the name does not come from this model: `lower` resolves every message name that it puts into the model.
    pub fn message(&self, name: &MessageName) -> &Message {
        self.messages
            .get(name)
            .expect("lower resolves every message name in the model")
    }

    /// The enum of that name; the same contract as [`Model::message`].
    ///
    /// # Panics
    /// If the name does not come from this model.
    pub fn enumeration(&self, name: &EnumName) -> &Enum {
        self.enums
            .get(name)
            .expect("lower resolves every enum name in the model")
    }
}
