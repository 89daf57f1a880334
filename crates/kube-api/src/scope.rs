//! Whether the objects of a resource live in namespaces, in the words of definitions and of discovery.

/// Where the objects of a resource live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Beside all namespaces.
    Cluster,
    /// Each in a namespace.
    Namespaced,
}

impl Scope {
    /// Both, in the order in which kube-apiserver names them.
    pub const ALL: [Self; 2] = [Self::Cluster, Self::Namespaced];

    /// That of a resource whose objects have a namespace, or none.
    pub const fn of(is_namespaced: bool) -> Self {
        if is_namespaced { Self::Namespaced } else { Self::Cluster }
    }

    /// Reads the word; `None` for another one.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Namespaced => "Namespaced",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_as_it_is_written() {
        for is_namespaced in [false, true] {
            let scope = Scope::of(is_namespaced);
            assert_eq!(Scope::read(scope.as_str()), Some(scope));
        }
        assert_eq!((Scope::read(""), Scope::read("cluster")), (None, None));
    }
}
