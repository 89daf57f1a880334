//! What people call a kind, on command lines and in events, references and notices.

use crate::kind::{Kind, Registry};

impl Registry {
    /// Finds a kind by name, singular, plural or short name, each also with its group behind a dot, without regard to
    /// case. A short name never hides another kind's name.
    pub fn find(&self, name: &str) -> Option<&'static Kind> {
        let (word, group) = match name.split_once('.') {
            Some((word, group)) => (word, Some(group)),
            None => (name, None),
        };
        let is_of_group = |kind: &&Kind| group.is_none_or(|group| kind.group.eq_ignore_ascii_case(group));
        let is_meant = |known: &&str| known.eq_ignore_ascii_case(word);
        let kinds = || self.kinds.iter().copied().filter(is_of_group);
        kinds()
            .find(|kind| [kind.name, kind.singular, kind.plural].iter().any(is_meant))
            .or_else(|| kinds().find(|kind| kind.short_names.iter().any(is_meant)))
    }

    /// The plural of a kind of another service, as references and rights call it: that of crds.toml, else the kind in
    /// lower case and an `s`, as of every kind that names no other.
    pub fn plural_elsewhere(&self, group: &str, kind: &str) -> String {
        let mut services = self.services.iter().filter(|service| service.group == group);
        let named = services.find_map(|service| service.plural(kind));
        named.map_or_else(|| format!("{}s", kind.to_ascii_lowercase()), str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Service;

    const RUN: Kind = Kind {
        name: "Run",
        singular: "run",
        plural: "runs",
        short_names: &["rn"],
        group: "g.example.com",
        ..Kind::EMPTY
    };
    const OTHER_RUN: Kind = Kind {
        group: "h.example.com",
        ..RUN
    };
    static KINDS: [&Kind; 2] = [&RUN, &OTHER_RUN];

    fn found(name: &str) -> Option<&'static str> {
        let registry = Registry {
            kinds: &KINDS,
            ..Registry::EMPTY
        };
        registry.find(name).map(|kind| kind.group)
    }

    #[test]
    fn a_kind_is_found_by_each_of_its_names_with_and_without_its_group() {
        for name in ["Run", "run", "RUNS", "rn"] {
            assert_eq!(found(name), Some("g.example.com"), "{name}");
            for group in ["g.example.com", "h.example.com"] {
                assert_eq!(found(&format!("{name}.{group}")), Some(group), "{name}");
            }
            assert_eq!(found(&format!("{name}.H.Example.com")), Some("h.example.com"));
            for wrong in ["", "example.com", "g", "g.example.com.h"] {
                assert_eq!(found(&format!("{name}.{wrong}")), None, "{name}.{wrong}");
            }
        }
        assert_eq!(found("jobs.g.example.com"), None);
    }

    #[test]
    fn a_kind_of_another_service_has_the_plural_of_its_declaration_or_an_s() {
        static REGION: Service = Service {
            name: "region",
            group: "region.example.com",
            cluster_scoped: &[],
            plurals: &[("CloudIdentity", "cloudidentities")],
            refers_to: &[],
            address: "https://region.example.com",
            ca_file: None,
            token_file: None,
        };
        static SERVICES: [&Service; 1] = [&REGION];
        let registry = Registry {
            services: &SERVICES,
            ..Registry::EMPTY
        };
        for (group, kind, plural) in [
            ("region.example.com", "cloudidentity", "cloudidentities"),
            ("region.example.com", "CloudIdentity", "cloudidentities"),
            ("region.example.com", "network", "networks"),
            ("region.example.com", "Address", "addresss"),
            ("compute.example.com", "cloudidentity", "cloudidentitys"),
        ] {
            assert_eq!(registry.plural_elsewhere(group, kind), plural, "{kind}.{group}");
        }
    }
}
