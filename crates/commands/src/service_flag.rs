//! `--service NAME=URL` of all commands: where the API server of another service answers. Asks none of them.

use std::collections::BTreeSet;

use kindex_model::kind::Registry;
use kindex_model::reference::Service;

use crate::error::{CommandError, CommandResult};
use crate::url;

/// Group and URL of each `--service` of a command that asks about holders. These may be of services that crds.toml does
/// not declare.
///
/// # Errors
/// One that is no NAME=URL, or has neither the name of a declared service nor a group.
pub(crate) fn addresses<'a>(registry: &Registry, services: &'a [String]) -> CommandResult<Vec<(&'a str, &'a str)>> {
    services.iter().map(|said| address(registry, said)).collect()
}

fn address<'a>(registry: &Registry, said: &'a str) -> CommandResult<(&'a str, &'a str)> {
    let (name, url) = name_and_url(said)?;
    match service(registry, name) {
        Some(service) => Ok((service.group, url)),
        None if name.contains('.') => Ok((name, url)),
        None => Err(undeclared(registry, said, name)),
    }
}

/// The service that a `--service` is about, and its URL.
///
/// # Errors
/// One that is no NAME=URL, or that crds.toml does not declare.
pub(crate) fn declared<'a>(registry: &Registry, said: &'a str) -> CommandResult<(&'static Service, &'a str)> {
    let (name, url) = name_and_url(said)?;
    let found = service(registry, name).ok_or_else(|| undeclared(registry, said, name))?;
    Ok((found, url))
}

fn name_and_url(said: &str) -> CommandResult<(&str, &str)> {
    let Some((name, url)) = said.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        let wrong = CommandError::usage(format_args!("--service {said}: no NAME=URL"));
        return Err(wrong.hint("write it like region=https://region.example.com:6443"));
    };
    url::check(format_args!("--service {said}"), url)?;
    Ok((name, url))
}

/// The service of a name, or with kinds of this group.
fn service(registry: &Registry, name: &str) -> Option<&'static Service> {
    services(registry).find(|service| [service.name, service.group].contains(&name))
}

/// The services that crds.toml declares, some of them more than once.
pub(crate) fn services(registry: &Registry) -> impl Iterator<Item = &'static Service> {
    let references = registry.kinds.iter().flat_map(|kind| kind.references);
    let named = references.flat_map(|reference| reference.targets);
    let services = registry.services.iter().copied();
    services.chain(named.filter_map(|target| target.service))
}

fn undeclared(registry: &Registry, said: &str, name: &str) -> CommandError {
    let unknown = format!("--service {said}: crds.toml declares no service {name}");
    CommandError::usage(unknown).hint(known(registry))
}

/// Which services there are to name.
pub(crate) fn known(registry: &Registry) -> String {
    let names = services(registry).map(|service| format!("{} ({})", service.name, service.group));
    let names: BTreeSet<String> = names.collect();
    match names.is_empty() {
        true => "[services] in crds.toml declares none".to_owned(),
        false => format!("declared are: {}", Vec::from_iter(names).join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{GROUP, listing_region};

    #[test]
    fn a_service_is_given_by_its_name_or_its_group() {
        let services = ["region=http://a", "region.example.com=http://b/c=d"].map(str::to_owned);
        let pairs = addresses(&listing_region(), &services).expect("a service");
        assert_eq!(pairs, [(GROUP, "http://a"), (GROUP, "http://b/c=d")]);
        for (said, url) in [(&services[0], "http://a"), (&services[1], "http://b/c=d")] {
            let (service, found) = declared(&listing_region(), said).expect("a service");
            assert_eq!((service.group, found), (GROUP, url));
        }
        let other = ["other.example.com=http://b".to_owned()];
        let pairs = addresses(&listing_region(), &other).expect("holders may be of any group");
        assert_eq!(pairs, [("other.example.com", "http://b")]);
    }

    #[test]
    fn what_is_no_service_or_no_url_is_refused_by_all_commands_alike() {
        for (wrong, why) in [
            ("nonsense", "--service nonsense: no NAME=URL"),
            ("=http://a", "--service =http://a: no NAME=URL"),
            (
                "region=httpx",
                "--service region=httpx: \"httpx\" is not an http:// or https:// URL",
            ),
            (
                "region.example.com=ftp://a",
                "\"ftp://a\" is not an http:// or https:// URL",
            ),
            (
                "regio=http://a",
                "crds.toml declares no service regio\n  hint: declared are: region (region.example.com)",
            ),
        ] {
            let services = [wrong.to_owned()];
            let refused = [
                addresses(&listing_region(), &services).map(drop),
                declared(&listing_region(), wrong).map(drop),
            ];
            for refused in refused {
                let said = refused.expect_err(wrong).to_string();
                assert!(said.contains(why), "{said}");
            }
        }
        let undeclared = declared(&listing_region(), "other.example.com=http://a").map(drop);
        let said = undeclared.expect_err("nothing of ours names its objects").to_string();
        assert!(
            said.contains("crds.toml declares no service other.example.com"),
            "{said}"
        );
    }
}
