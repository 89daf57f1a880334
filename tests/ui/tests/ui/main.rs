//! `#[derive(IndexedObject)]` on hand-written kinds: what it makes of a correct type, and what the compiler says to
//! each error in a kind or a query.

mod hand_written;

/// One file per error, named after it, with the exact text that a person sees. All of them are checked by one run of
/// cargo, which checks the dependencies once more: it runs where `KINDEX_REQUIRE` names `trybuild`.
#[test]
fn each_error_is_reported_at_its_token() {
    let required = std::env::var("KINDEX_REQUIRE").unwrap_or_default();
    if !required.split(',').any(|component| component == "trybuild") {
        println!("not run: KINDEX_REQUIRE does not name `trybuild`");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/errors/*.rs");
}
