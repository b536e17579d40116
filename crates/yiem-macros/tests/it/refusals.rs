//! What `#[tool]` refuses, and with which words.

#[test]
fn wrong_signatures_are_told_what_to_write() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
