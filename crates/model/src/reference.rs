//! References between kinds as the runtime knows them: static tables that the generator emits. They are the edges of
//! the declared graph. Nothing is looked up or deleted here.

/// Another service, some of whose kinds the kinds of this program refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// What crds.toml calls it: `region`.
    pub name: &'static str,
    /// API group of its kinds.
    pub group: &'static str,
    /// Those of its kinds whose objects have no namespace.
    pub cluster_scoped: &'static [&'static str],
    /// The plurals of those of its kinds where it is not the kind and an `s`, each after the kind.
    pub plurals: &'static [(&'static str, &'static str)],
    /// Kinds of this program that objects of its kinds refer to.
    pub refers_to: &'static [&'static str],
    /// URL of its API, without a slash at the end.
    pub address: &'static str,
    /// File with the certificates, in PEM, that its certificate may be from; `None`: those of the machine.
    pub ca_file: Option<&'static str>,
    /// File with the token that it is asked with.
    pub token_file: Option<&'static str>,
}

impl Service {
    /// Whether the objects of one of its kinds have namespaces.
    pub fn has_namespaces(&self, kind: &str) -> bool {
        !self.cluster_scoped.contains(&kind)
    }

    /// The plural of one of its kinds, in whatever case that is written, where crds.toml names it.
    pub fn plural(&self, kind: &str) -> Option<&'static str> {
        let mut plurals = self.plurals.iter();
        let named = plurals.find(|(name, _)| name.eq_ignore_ascii_case(kind));
        named.map(|(_, plural)| *plural)
    }
}

/// A kind that a reference may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The service that it is of; `None`: this one.
    pub service: Option<&'static Service>,
    /// Its API group.
    pub group: &'static str,
    /// `Network`.
    pub kind: &'static str,
}

/// How a field names an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// By a `ResourceIdentifier`: `namespace`, where absent that of the holder, and `name`.
    Identifier,
    /// By a string: the name, in the namespace of the holder.
    Name,
}

/// What the deletion of a named object means for its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// The holder is deleted first.
    Cascade,
    /// The deletion waits until no holder is left.
    Block,
    /// The holder stays, and its reference dangles.
    Orphan,
}

impl OnDelete {
    /// The word of crds.toml.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cascade => "cascade",
            Self::Block => "block",
            Self::Orphan => "orphan",
        }
    }
}

/// A field of a kind, the *holder*, that names an object of another kind, the *target*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// `pipeline`; unique in its kind.
    pub name: &'static str,
    /// The kinds that it may name: one, or those that `kind_column` may hold.
    pub targets: &'static [Target],
    /// The column that holds the kind of the named object, where there are several.
    pub kind_column: Option<&'static str>,
    /// JSON names from the root of the holder to the field.
    pub path: &'static [&'static str],
    /// How the field names the object.
    pub named: Named,
    /// The columns of namespace and name, or of the name alone; empty where SQL has the field in `json` alone.
    pub columns: &'static [&'static str],
    /// Whether the target owns the holder, which it then deletes once nothing else refers to it.
    pub owned: bool,
    /// What the deletion of the target means for the holder.
    pub on_delete: OnDelete,
}

impl Reference {
    /// Whether the target is deleted after the holder.
    pub const fn waits(&self) -> bool {
        matches!(self.on_delete, OnDelete::Cascade | OnDelete::Block)
    }

    /// The target of that group and name, where the reference may name it.
    pub fn target(&self, group: &str, kind: &str) -> Option<&'static Target> {
        let mut targets = self.targets.iter();
        targets.find(|target| target.group == group && target.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static REGION: Service = Service {
        name: "region",
        group: "region.example.com",
        cluster_scoped: &[],
        plurals: &[],
        refers_to: &[],
        address: "https://region.example.com",
        ca_file: None,
        token_file: None,
    };

    const NETWORK: Reference = Reference {
        name: "network",
        targets: &[Target {
            service: Some(&REGION),
            group: REGION.group,
            kind: "Network",
        }],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    };

    #[test]
    fn a_kind_is_known_by_its_group_and_name() {
        let target = NETWORK.target("region.example.com", "Network").expect("a target");
        assert_eq!(target.service, Some(&REGION));
        assert_eq!(NETWORK.target("compute.example.com", "Network"), None);
        assert_eq!(NETWORK.target("region.example.com", "Server"), None);
    }

    #[test]
    fn only_what_is_left_dangling_is_not_waited_for() {
        let waits = |on_delete| Reference { on_delete, ..NETWORK }.waits();
        assert!(waits(OnDelete::Cascade) && waits(OnDelete::Block));
        assert!(!waits(OnDelete::Orphan));
    }
}
