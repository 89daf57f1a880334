//! A platform, a kind and a registry in which nothing is declared. One that is written by hand says what it has and
//! takes the rest from here, so that a new field has its neutral value in one place.

use crate::kind::{Encoded, Kind, Platform, Problem, Registry, Scope};

impl Platform {
    /// Without a group and without words.
    pub const EMPTY: Self = Self {
        group: "",
        version: "",
        finalizer: "",
        deleting: "",
        immutable: "",
        restored_from: "",
        conversion_data: "",
    };
}

impl Kind {
    /// Without names and without a message, of objects that a cluster has in its namespaces.
    pub const EMPTY: Self = Self {
        name: "",
        group: "",
        version: "",
        versions: &[],
        plural: "",
        singular: "",
        short_names: &[],
        scope: Scope::Namespaced,
        table: "",
        cluster: true,
        immutable: false,
        history: false,
        events: false,
        columns: &[],
        keys: &[],
        printer_columns: &[],
        retention: None,
        references: &[],
        manifest: "",
        encode: |_| Encoded::default(),
        decode: |_| Err(vec![no_message()]),
    };
}

impl Registry {
    /// Without kinds, of [`Platform::EMPTY`].
    pub const EMPTY: Self = Self {
        platform: Platform::EMPTY,
        kinds: &[],
        schemas: &[],
        queries: &[],
        migrations: &[],
        foreign: &[],
        declared: &[],
        descriptors: &[],
        services: &[],
    };
}

fn no_message() -> Problem {
    Problem {
        path: String::new(),
        message: "the kind has no message".to_owned(),
    }
}
