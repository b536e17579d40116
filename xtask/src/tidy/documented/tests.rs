use super::*;

const HOOK: &str = "pub trait AgentHook {
    /// A name.
    fn name(&self) -> &str;
    /// Decides.
    ///
    /// When: once.
    /// Sees: the call.
    /// May answer: run.
    /// Order: as registered.
    /// If it fails: refused.
    async fn before_tool_call(&self, view: CallView) -> Result<X, Error> {
        Ok(X { a: 1 })
    }
}";

#[test]
fn a_hook_with_its_block_and_its_place_in_the_docs_is_accepted() {
    assert_eq!(hook_findings(HOOK, "## `before_tool_call`"), [""; 0]);
}

#[test]
fn a_hook_without_a_line_of_its_block_or_without_its_page_is_refused() {
    assert_eq!(
        hook_findings(&HOOK.replace("Order:", "Then:"), "`before_tool_call`").len(),
        1
    );
    assert_eq!(hook_findings(HOOK, "nothing").len(), 1);
    assert_eq!(hook_findings("trait Other {}", "").len(), 1);
}

#[test]
fn an_event_without_docs_or_without_its_line_is_refused() {
    let source = "pub enum AgentEvent {\n    /// It began.\n    RunStart { a: u8 },\n    /// It ended.\n    RunEnd(\n        X,\n    ),\n}";
    assert_eq!(event_findings(source, "`runStart` `runEnd`"), [""; 0]);
    assert_eq!(event_findings(source, "`runStart`").len(), 1);
    assert_eq!(
        event_findings(&source.replace("/// It ended.", ""), "`runStart` `runEnd`").len(),
        1
    );
}

#[test]
fn a_page_that_the_index_does_not_name_and_a_name_without_a_page_are_refused() {
    let pages = ["README.md".to_owned(), "mcp.md".to_owned()];
    assert_eq!(index_findings("| `mcp.md` | x |\n", &pages), [""; 0]);
    assert_eq!(index_findings("", &pages).len(), 1);
    assert_eq!(
        index_findings("| `mcp.md` | x |\n| `gone.md` | x |\n", &pages).len(),
        1
    );
}

#[test]
fn source_files_that_a_page_names_are_found_and_those_that_stand_for_any_are_not() {
    let page = "| row | `yiem-x/src/y.rs`, a field | `tests/it` |\n`crates/a/src/b/c.rs` `foo.rs` \
                `crates/X/src/x.rs` `yiem-mcp/src/transport/x.rs` `cargo run x/src/y.rs`";
    assert_eq!(
        named_files(page),
        ["yiem-x/src/y.rs", "crates/a/src/b/c.rs"]
    );
}
