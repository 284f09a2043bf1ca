//! What must not compile, and what the compiler says about it. Read from `1_the_item` to `9_all_functions`, the texts teach
//! the rules.
//!
//! The texts belong to the toolchain that `rust-toolchain.toml` pins. To bless new ones: `TRYBUILD=overwrite cargo test --test ui`.

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
    "RULE-01"
)]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*/*.rs");
}
