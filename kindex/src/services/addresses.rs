//! Where other services are: the flag of every command that asks them.

use clap::{ArgMatches, Args};
use kindex_model::kind::Registry;
use kindex_model::reference::Service;

use crate::error::CommandResult;
use crate::service_flag;

/// Where other services are.
#[derive(Clone, Debug, Args)]
pub(super) struct AddressArgs {
    /// Where the API server of another service answers, instead of where `[services]` in crds.toml says.
    #[arg(long = "service", value_name = "NAME=URL")]
    services: Vec<String>,
}

impl AddressArgs {
    /// Those among flags that are declared elsewhere; none where nobody has declared them.
    pub(super) fn among(flags: &ArgMatches) -> Self {
        let services = flags.try_get_many::<String>("services").ok().flatten();
        Self {
            services: services.into_iter().flatten().cloned().collect(),
        }
    }

    /// Whether one is given.
    pub(super) fn is_given(&self) -> bool {
        !self.services.is_empty()
    }

    /// The services that are not where crds.toml says, and where they are.
    ///
    /// # Errors
    /// Those of [`service_flag::declared`].
    pub(super) fn moved(&self, registry: &Registry) -> CommandResult<Vec<(&'static Service, &str)>> {
        let given = self.services.iter();
        given.map(|said| service_flag::declared(registry, said)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    static REGION: Service = Service {
        name: "region",
        group: "region.example.com",
        cluster_scoped: &[],
        refers_to: &[],
        address: "https://region",
        ca_file: None,
        token_file: None,
    };
    static SERVICES: &[&Service] = &[&REGION];

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        addresses: AddressArgs,
    }

    fn registry() -> Registry {
        Registry {
            services: SERVICES,
            ..kindex_generated::registry()
        }
    }

    #[test]
    fn a_service_is_given_by_its_name_or_its_group() {
        for name in ["region", "region.example.com"] {
            let given = format!("{name}=http://127.0.0.1:1/a=b");
            let line = Line::parse_from(["kindex", "--service", &given]);
            let moved = line.addresses.moved(&registry()).expect("a service");
            let shown: Vec<_> = moved.iter().map(|(service, url)| (service.group, *url)).collect();
            assert_eq!(shown, [("region.example.com", "http://127.0.0.1:1/a=b")]);
        }
    }

    #[test]
    fn a_service_that_is_not_declared_and_what_is_no_url_are_refused() {
        for (given, why) in [
            ("nonsense", "--service nonsense: no NAME=URL"),
            (
                "region=httpx",
                "--service region=httpx: \"httpx\" is no http:// or https:// URL",
            ),
            ("identity=http://identity", "crds.toml declares no service identity"),
        ] {
            let line = Line::parse_from(["kindex", "--service", given]);
            let refused = line.addresses.moved(&registry()).expect_err("refused");
            assert!(refused.to_string().contains(why), "{refused}");
        }
    }

    #[test]
    fn flags_of_others_are_read_where_they_are_declared() {
        let flags = Line::command().get_matches_from(["kindex", "--service", "region=http://a"]);
        assert!(AddressArgs::among(&flags).is_given());
        let flags = clap::Command::new("kindex").get_matches_from(["kindex"]);
        assert!(!AddressArgs::among(&flags).is_given());
    }
}
