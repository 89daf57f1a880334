//! This ingester as one of several: where their leases are, and by what name this one holds them.

use std::num::NonZeroUsize;
use std::time::Duration;

use kindex_runtime::Division;
use kindex_runtime::replicas::{Place, Timing};
use rand::RngExt;

use crate::cli::ReplicasArgs;
use crate::client::Access;

/// What begins the names of the leases.
const GROUP: &str = "kindex-ingester";

/// How the kinds are divided, as the command line says.
pub(crate) fn division(args: &ReplicasArgs) -> Division {
    match (args.shards, args.leader_elect) {
        (Some(shards), _) => Division::Shards(shards.get()),
        (None, true) => Division::Shards(NonZeroUsize::MIN.get()),
        (None, false) => Division::Alone,
    }
}

/// Where the leases are, and how long they last.
pub(crate) fn place(args: &ReplicasArgs, access: &Access) -> (Place, Timing) {
    let namespace = args.lease_namespace.clone();
    let place = Place {
        client: access.client.clone(),
        namespace: namespace.unwrap_or_else(|| access.config.default_namespace.clone()),
        group: GROUP.to_owned(),
        me: me(&args.replica_name),
    };
    let lease = Duration::from_secs(args.lease_seconds.get().into());
    (place, Timing::of_lease(lease))
}

/// A name that two processes of one pod do not share either, as a part of a lease's name.
fn me(name: &str) -> String {
    let plain = name.to_lowercase();
    let plain: String = plain
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(48)
        .collect();
    let plain = plain.trim_matches('-');
    let number: u32 = rand::rng().random();
    if plain.is_empty() {
        format!("{number:08x}")
    } else {
        format!("{plain}-{number:08x}")
    }
}

#[cfg(test)]
mod tests {
    use super::me;

    #[test]
    fn a_name_fits_into_that_of_a_lease_and_its_label() {
        for name in ["kindex-0", "Host.Example.", "", "--", &"x".repeat(300)] {
            let me = me(name);
            assert!(me.len() <= 63 && !me.starts_with('-'), "{me}");
            assert!(
                me.chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{me}"
            );
        }
        assert_ne!(me("one"), me("one"));
    }
}
