//! Flags of the commands about what holds an object.

use clap::{Args, Subcommand, ValueEnum};

use super::{Form, SidesArgs};

/// Form of what `kindex why` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhyForm {
    /// The holders below what they hold, and what is at the end of it.
    Tree,
    /// A line for each object.
    Table,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Flags of `kindex why`.
#[derive(Clone, Debug, Args)]
#[command(after_help = WHY_EXAMPLES)]
pub struct WhyArgs {
    /// The kind: Model, model, models or a short name, each also as NAME.GROUP; or kind/name.
    pub kind: String,
    /// Its name, where it does not follow the kind after a slash.
    pub name: Option<String>,

    /// Its namespace; of no effect on kinds of the whole cluster.
    #[arg(short, long, default_value = "default")]
    pub namespace: String,

    /// Address of another service, by its name in crds.toml or the group of its kinds; overrides the address there. May
    /// be repeated.
    #[arg(long = "service", value_name = "NAME=URL")]
    pub services: Vec<String>,

    /// Show at most this many levels of holders.
    #[arg(long, value_name = "STEPS", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub depth: u8,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = WhyForm::Tree)]
    pub output: WhyForm,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

const WHY_EXAMPLES: &str = "\
Exits 0 when everything is shown, also where nothing holds the object; 1 when there is no such object, or a part is
missing, such as that of a service that does not answer; 2 when the command line is wrong. While the database is away,
the object and the references on it are shown; holders of this service only by kind and uid.

Examples:
  kindex why project/a
  kindex why pipelines fraud -n prod -o table
  kindex why project/a --service region.example.com=https://region.example.com:6443 -o json";

/// Flags of `kindex references`.
#[derive(Clone, Debug, Args)]
pub struct ReferencesArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ReferencesCommand,
}

/// The commands of `kindex references`.
#[derive(Clone, Debug, Subcommand)]
pub enum ReferencesCommand {
    /// List the references on an object.
    #[command(after_help = LIST_EXAMPLES)]
    List(ListReferencesArgs),
    /// Release a reference that its holder has left behind.
    #[command(after_help = DROP_EXAMPLES)]
    Drop(DropReferenceArgs),
}

/// An object that has references.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// The object, as kind/name.
    #[arg(value_name = "KIND/NAME")]
    pub object: String,

    /// Its namespace; of no effect on kinds of the whole cluster.
    #[arg(short, long, default_value = "default")]
    pub namespace: String,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

/// Flags of `kindex references list`.
#[derive(Clone, Debug, Args)]
pub struct ListReferencesArgs {
    /// The object.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,
}

/// Flags of `kindex references drop`.
#[derive(Clone, Debug, Args)]
pub struct DropReferenceArgs {
    /// The object.
    #[command(flatten)]
    pub target: TargetArgs,

    /// The reference, as kind.group/uid.
    pub reference: String,

    /// Why; goes into an event on the object, and into an annotation of it.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,

    /// Release it, although its holder has not done so.
    #[arg(long)]
    pub force: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kindex references list network/blue -n prod
  kindex references list network/blue -n prod -o json";

const DROP_EXAMPLES: &str = "\
References never lapse: this is for holders that are gone for good. What the holder still has of the object, such as
ports in a network, is not cleaned up by this. An event on the object and an annotation of it say who released the
reference, and why.

Examples:
  kindex references drop network/blue cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce \\
    -n prod --force --reason 'compute was restored from a backup of May 3'";
