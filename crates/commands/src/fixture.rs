//! What unit tests begin with: another service and what names it, and the flags of a command as they are typed.

use clap::{Args, Command};
use kindex_generated::kinds::model;
use kindex_model::kind::{Kind, Registry};
use kindex_model::reference::{Named, OnDelete, Reference, Service, Target};

/// API group of the other service.
pub(crate) const GROUP: &str = "region.example.com";

/// The other service. Nobody listens at its address.
pub(crate) static REGION: Service = Service {
    name: "region",
    group: GROUP,
    cluster_scoped: &[],
    plurals: &[],
    refers_to: &[],
    address: "http://127.0.0.1:1",
    ca_file: None,
    token_file: None,
};
static SERVICES: &[&Service] = &[&REGION];

/// A field that names networks of the region.
pub(crate) const NETWORK: Reference = Reference {
    name: "network",
    targets: &[Target {
        service: Some(&REGION),
        group: GROUP,
        kind: "Network",
    }],
    kind_column: None,
    path: &["spec", "network"],
    named: Named::Name,
    columns: &[],
    owned: false,
    on_delete: OnDelete::Block,
};

/// Models, which name networks of the region.
pub(crate) static IN_NETWORKS: Kind = Kind {
    references: &[NETWORK],
    ..model::KIND
};
static KINDS: &[&Kind] = &[&IN_NETWORKS];

/// The region is among the declared services, and no kind names its objects.
pub(crate) fn listing_region() -> Registry {
    Registry {
        services: SERVICES,
        ..kindex_generated::registry()
    }
}

/// A kind names objects of the region, which is not among the declared services.
pub(crate) fn naming_region() -> Registry {
    Registry {
        kinds: KINDS,
        ..kindex_generated::registry()
    }
}

/// The flags of a command, from what is typed after its name.
pub(crate) fn typed<A: Args>(words: &[&str]) -> A {
    let command = A::augment_args(Command::new("kindex").no_binary_name(true));
    let flags = command
        .try_get_matches_from(words)
        .unwrap_or_else(|error| panic!("{error}"));
    A::from_arg_matches(&flags).unwrap_or_else(|error| panic!("{error}"))
}
