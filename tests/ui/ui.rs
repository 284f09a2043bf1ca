//! Compile-fail tests: code that must not compile, and the messages of the compiler. Read in the order of the folders,
//! from `1_the_item` to `9_all_functions`, they explain the rules.
//!
//! The messages are those of the toolchain that `rust-toolchain.toml` pins. `TRYBUILD=overwrite cargo test -p goondan-ui-tests`
//! writes new ones.

use goondan_covers::covers;

#[test]
#[covers(
    "AGENTS-02",
    "API-02",
    "API-03",
    "API-05",
    "API-06",
    "API-10",
    "CONV-09",
    "CONV-10",
    "CTX-04",
    "ENTRY-10",
    "NEXT-03",
    "PIPE-01",
    "RULE-01"
)]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("*/*.rs");
}
