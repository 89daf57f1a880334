//! Where other services are: the flag of every command that asks them.

use clap::{ArgMatches, Args};
use kindex_model::kind::Registry;
use kindex_model::reference::Service;

use crate::error::CommandResult;
use crate::service_flag;

/// Where other services are.
#[derive(Clone, Debug, Args)]
pub struct AddressArgs {
    /// Where the API server of another service answers, instead of where `[services]` in crds.toml says.
    #[arg(long = "service", value_name = "NAME=URL")]
    services: Vec<String>,
}

impl AddressArgs {
    /// Those among flags that are declared elsewhere; none where nobody has declared them.
    pub fn among(flags: &ArgMatches) -> Self {
        let services = flags.try_get_many::<String>("services").ok().flatten();
        Self {
            services: services.into_iter().flatten().cloned().collect(),
        }
    }

    /// Whether one is given.
    pub fn is_given(&self) -> bool {
        !self.services.is_empty()
    }

    /// The services that are not where crds.toml says, and where they are.
    ///
    /// # Errors
    /// One that is no NAME=URL, or that crds.toml does not declare.
    pub fn moved(&self, registry: &Registry) -> CommandResult<Vec<(&'static Service, &str)>> {
        let given = self.services.iter();
        given.map(|said| service_flag::declared(registry, said)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::fixture::{REGION, listing_region};

    #[test]
    fn flags_of_others_are_read_where_they_are_declared() {
        let command = AddressArgs::augment_args(Command::new("kindex"));
        let flags = command.get_matches_from(["kindex", "--service", "region=http://a"]);
        let given = AddressArgs::among(&flags);
        assert!(given.is_given());
        let moved = given.moved(&listing_region()).expect("a service");
        assert_eq!(moved, [(&REGION, "http://a")]);
        let flags = Command::new("kindex").get_matches_from(["kindex"]);
        assert!(!AddressArgs::among(&flags).is_given());
    }
}
