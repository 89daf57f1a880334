//! The services, and all that is said of each: its command, its flags and how it starts. Whoever deals with services
//! reads [`ALL`]; none is asked for by name.

mod service;

mod row;

pub(crate) mod ingester;

mod api;

mod leadership;

mod migrator;

mod deletion;

mod runs;

mod flags;

pub use flags::{ServiceCommand, UpFlags};
pub(crate) use service::{Announcement, Context};

use api::Api;
use deletion::Deletion;
use ingester::Ingester;
use migrator::Migrator;
use row::Row;
use runs::{Runs, RunsCommand};

/// Every service, in the order of the help.
static ALL: &[Row] = &[
    Row::of::<Ingester>(),
    Row::of::<Api>(),
    Row::of::<Migrator>(),
    Row::of::<Deletion>(),
    Row::of_group::<Runs, RunsCommand>(),
];

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::net::SocketAddr;

    use clap::CommandFactory as _;

    use super::ALL;
    use super::row::SERVE;
    use crate::cli::Cli;

    #[test]
    fn every_service_has_a_command_and_says_where_its_health_is() {
        let program = Cli::command();
        for row in ALL {
            let command = program.find_subcommand(row.name).expect("a command");
            let command = command.find_subcommand(SERVE).unwrap_or(command);
            assert!(
                command.get_about().is_some() && command.get_after_help().is_some(),
                "{}",
                row.name
            );
            let mut flags = command.get_arguments();
            assert!(flags.any(|flag| flag.get_long() == Some("health-addr")), "{}", row.name);
        }
    }

    /// As if the services of one machine needed flags to run beside each other.
    #[test]
    fn no_two_services_have_a_port_in_common_by_default() {
        let program = Cli::command();
        let mut ports = HashMap::new();
        for row in ALL {
            let command = program.find_subcommand(row.name).expect("a command");
            let command = command.find_subcommand(SERVE).unwrap_or(command);
            let defaults = command.get_arguments().flat_map(clap::Arg::get_default_values);
            for address in defaults.filter_map(|value| value.to_str()?.parse::<SocketAddr>().ok()) {
                let other = ports.insert(address.port(), row.name);
                assert_eq!(other, None, "{} has {address}, too", row.name);
            }
        }
        assert!(ports.len() > ALL.len(), "{ports:?}");
    }

    #[test]
    fn a_flag_with_a_default_can_be_left_out() {
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                let has_default = !argument.get_default_values().is_empty();
                assert!(
                    !(has_default && argument.is_required_set()),
                    "{} {}",
                    command.get_name(),
                    argument.get_id()
                );
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn a_word_is_one_command_and_a_flag_of_up_is_one_services() {
        Cli::command().debug_assert();
    }
}
