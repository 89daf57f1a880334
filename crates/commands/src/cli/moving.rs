//! Flags of `kindex move`.

use clap::Args;

use super::{Form, SidesArgs};

/// Flags of `kindex move`.
#[derive(Clone, Debug, Args)]
#[command(after_help = MOVE_EXAMPLES)]
pub struct MoveArgs {
    /// The object whose field changes, as kind/name.
    #[arg(value_name = "KIND/NAME")]
    pub object: String,

    /// The object that the field names from then on; of another service as kind/name or kind.group/name.
    #[arg(long, value_name = "KIND/NAME")]
    pub to: String,

    /// The reference of the object's kind in crds.toml, where several may name the target.
    #[arg(long, value_name = "NAME")]
    pub reference: Option<String>,

    /// The namespace of the object; of no effect on kinds of the whole cluster.
    #[arg(short, long, default_value = "default")]
    pub namespace: String,

    /// The namespace of the target; default: that of the object.
    #[arg(long, value_name = "NAMESPACE")]
    pub to_namespace: Option<String>,

    /// Address of another service, by its name in crds.toml or the group of its kinds; overrides the address there. May
    /// be repeated.
    #[arg(long = "service", value_name = "NAME=URL")]
    pub services: Vec<String>,

    /// Check everything, and change nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

const MOVE_EXAMPLES: &str = "\
The field that names the target is written once, and only if nobody has changed the object meanwhile. The target has the
reference of the object before, and the former one loses it after that, by `kindex deletion`. Nothing is written if the
object or one of the two targets is being deleted, the service of a target does not answer, or the cluster refuses the
change.

Examples:
  kindex move cluster/a --to project/b
  kindex move cluster/a -n prod --to network/blue --reference network --dry-run
  kindex move account/a --to project/b --service identity.example.com=https://identity.example.com:6443
  kindex move note/one --to network/blue --to-namespace shared -o json";
