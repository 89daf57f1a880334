//! What a person means by `model/fraud -n prod`: kind, namespace and name.

use kindex_kube_api::names;
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::spelling::nearest;

use crate::error::{CommandError, CommandResult};

/// One name of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl std::fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name } = self;
        match kind.scope {
            Scope::Namespaced => write!(f, "{} {namespace}/{name}", kind.name),
            Scope::Cluster => write!(f, "{} {name}", kind.name),
        }
    }
}

impl<'a> Target<'a> {
    /// The name in a namespace; a kind of the whole cluster has none.
    pub(crate) fn new(kind: &'static Kind, namespace: &'a str, name: &'a str) -> Self {
        let namespace = match kind.scope {
            Scope::Namespaced => namespace,
            Scope::Cluster => "",
        };
        Self { kind, namespace, name }
    }
}

/// Refuses the value of a flag that is the name of no namespace.
pub(crate) fn check_namespace(flag: &str, namespace: &str) -> CommandResult {
    let Some(why) = names::dns_label_problem(namespace) else {
        return Ok(());
    };
    let wrong = match namespace {
        "" => format!("{flag}: the namespace is empty"),
        named => format!("{flag} {named:?} is not a namespace: {why}"),
    };
    Err(CommandError::usage(wrong).hint(format_args!("write {flag} NAMESPACE, or leave it out for the default")))
}

/// A kind, and a name where one follows it: after a slash or as a word of its own.
pub(crate) fn kind_and_name<'a>(
    registry: &Registry,
    kind: &'a str,
    name: Option<&'a str>,
) -> CommandResult<(&'static Kind, Option<&'a str>)> {
    let (kind, name) = match kind.split_once('/') {
        Some((kind, name)) => (kind, Some(name)),
        None => (kind, name),
    };
    let kind = kind_of(registry, kind)?;
    if name == Some("") {
        return Err(
            CommandError::usage(format_args!("which {}?", kind.name)).hint(format_args!(
                "write {}/NAME; for all of them, {}",
                kind.singular, kind.plural
            )),
        );
    }
    Ok((kind, name))
}

/// The kind of a name, as people write it.
pub(crate) fn kind_of(registry: &Registry, name: &str) -> CommandResult<&'static Kind> {
    registry.find(name).ok_or_else(|| {
        let known: Vec<_> = registry.kinds.iter().map(|kind| kind.plural).collect();
        let others = known.join(", ");
        let singular = registry.kinds.iter().map(|kind| kind.singular);
        let hint = match nearest(name, known).or_else(|| nearest(name, singular)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("one of: {others}"),
        };
        CommandError::usage(format_args!("unknown kind {name:?}")).hint(hint)
    })
}

/// Refuses a kind that keeps no history.
pub(crate) fn with_history(registry: &Registry, kind: &Kind) -> CommandResult {
    if kind.history {
        return Ok(());
    }
    let kept: Vec<_> = registry
        .kinds
        .iter()
        .filter(|kind| kind.history)
        .map(|kind| kind.plural)
        .collect();
    let others = if kept.is_empty() {
        "none".to_owned()
    } else {
        kept.join(", ")
    };
    Err(
        CommandError::usage(format_args!("{} keeps no history", kind.name)).hint(format_args!(
            "`history = true` under [kinds.{}] in crds.toml makes it keep one from then on; kinds that do: {others}",
            kind.name
        )),
    )
}

#[cfg(test)]
mod tests {
    use kindex_generated::kinds::{model, pipeline_run};

    use super::*;

    static RUN: Kind = Kind {
        short_names: &["pr", "model"],
        ..pipeline_run::KIND
    };

    static KINDS: [&Kind; 2] = [&RUN, &model::KIND];

    #[test]
    fn what_is_no_namespace_is_refused_by_the_name_of_its_flag() {
        assert!(check_namespace("--namespace", "prod-1").is_ok());
        for (namespace, why) in [
            ("", "--to-namespace: the namespace is empty"),
            (
                "a/b",
                "--to-namespace \"a/b\" is not a namespace: a lowercase RFC 1123 label",
            ),
        ] {
            let refused = check_namespace("--to-namespace", namespace).expect_err("refused");
            assert!(refused.to_string().contains(why), "{refused}");
        }
    }

    #[test]
    fn a_kind_is_found_by_its_short_name_which_hides_no_other_name() {
        let registry = Registry {
            kinds: &KINDS,
            ..kindex_generated::registry()
        };
        for (word, found) in [("pr", "PipelineRun"), ("PR", "PipelineRun"), ("model", "Model")] {
            assert_eq!(kind_of(&registry, word).expect(word).name, found);
        }
        for text in ["pr/nightly", "pipelinerun.michelangelo.api/nightly"] {
            let (kind, name) = kind_and_name(&registry, text, None).expect("a name");
            assert_eq!((kind.name, name), ("PipelineRun", Some("nightly")));
        }
    }
}
