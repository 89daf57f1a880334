//! The runs service as a user runs it: as a part of `kindex up`, and alone with the programs that people have at hand.

mod server;

mod commands;
mod grpcurl;
mod requests;

use crate::process::Running;
use crate::text_of;

#[test]
fn up_shows_both_addresses_of_runs() {
    let output = Running::once(&["--once"]).finish();
    let shown = text_of(&output.stdout);
    assert!(output.status.success(), "{shown}{}", text_of(&output.stderr));
    let line = shown.lines().find(|line| line.trim_start().starts_with("runs "));
    let line = line.unwrap_or_else(|| panic!("{shown}"));
    let addresses = line
        .split_once("http://")
        .and_then(|(_, rest)| rest.split_once(" (REST) and "));
    let (rest, grpc) = addresses.unwrap_or_else(|| panic!("{line}"));
    for address in [rest, grpc.trim_end_matches(" (gRPC)")] {
        let address: std::net::SocketAddr = address.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(address.ip().is_loopback() && address.port() != 0, "{line}");
    }
}

#[test]
fn runs_of_up_are_not_opened_to_a_network() {
    let output = Running::once(&["--runs-rest-addr", "0.0.0.0:0"]).finish();
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{reported}");
    assert!(reported.contains("kindex runs serve"), "{reported}");
}
