//! Where other services are: the flag of every command that asks them.

use axum::http::Uri;
use clap::{ArgMatches, Args};
use kindex_model::kind::Registry;
use kindex_model::reference::Service;

use crate::error::{CommandError, CommandResult};

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
    /// One that is no NAME=URL, or that crds.toml does not declare.
    pub(super) fn moved(&self, registry: &Registry) -> CommandResult<Vec<(&'static Service, &str)>> {
        self.services.iter().map(|said| moved(registry, said)).collect()
    }
}

fn moved<'a>(registry: &Registry, said: &'a str) -> CommandResult<(&'static Service, &'a str)> {
    let Some((name, url)) = said.split_once('=').filter(|(_, url)| is_url(url)) else {
        let wrong = CommandError::usage(format_args!("--service {said}: no NAME=URL"));
        return Err(wrong.hint("write it like region=https://region.example.com:6443"));
    };
    let mut services = registry.services.iter().copied();
    match services.find(|service| [service.name, service.group].contains(&name)) {
        Some(service) => Ok((service, url)),
        None => {
            let unknown = format!("--service {said}: crds.toml declares no service {name}");
            Err(CommandError::usage(unknown).hint("[services] has their names and addresses"))
        }
    }
}

/// Over HTTP, to somebody.
fn is_url(text: &str) -> bool {
    let url = text.parse::<Uri>();
    url.is_ok_and(|url| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some())
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
            ("region=httpx", "--service region=httpx: no NAME=URL"),
            ("region=ftp://region", "--service region=ftp://region: no NAME=URL"),
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
