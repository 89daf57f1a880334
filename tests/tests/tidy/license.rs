//! License expressions as crates write them: whether one can be met from a list of accepted licenses; and the text of
//! our own. Knows no crate.

use std::fs;

use sha2::{Digest as _, Sha256};
use spdx::{Expression, ParseMode};

use super::files::root;

/// Whether the expression can be satisfied with accepted licenses alone.
pub(super) fn is_met(expression: &str, accepted: &[String]) -> bool {
    // With the slash that crates wrote before there were expressions.
    let parsed = Expression::parse_mode(expression, ParseMode::LAX);
    parsed.is_ok_and(|expression| expression.evaluate(|license| accepted.contains(&license.to_string())))
}

/// To the byte as the Apache Software Foundation publishes it.
#[test]
fn the_license_that_the_manifests_name_is_there_in_full() {
    let workspace: toml::Table = fs::read_to_string(root().join("Cargo.toml"))
        .expect("the manifest is readable")
        .parse()
        .expect("the manifest is TOML");
    assert_eq!(
        workspace["workspace"]["package"]["license"].as_str(),
        Some("Apache-2.0")
    );
    let text = fs::read(root().join("LICENSE")).expect("the license is in LICENSE");
    let digest = Sha256::digest(text);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30");
}

#[test]
fn every_part_of_one_alternative_has_to_be_accepted() {
    let accepted = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for met in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND Zlib"] {
        assert!(is_met(met, &accepted), "{met}");
    }
    assert!(is_met("Apache-2.0 WITH LLVM-exception OR GPL-3.0", &accepted));
    for unmet in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "", "(MIT", "MIT Zlib"] {
        assert!(!is_met(unmet, &accepted), "{unmet}");
    }
}
