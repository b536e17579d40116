//! What every tool source keeps to (T-5), wherever its tools come from.
//!
//! Knows: the promises of `ToolSource`. Does not know: servers, folders.
//!
//! A source that has tools and does not change meanwhile runs it with one line:
//! `tool_source::run(&my_source).await`. It ends with the source closed.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::timeout;
use yiem_core::{CancelToken, LoadedTools, ToolSource};
use yiem_tools::ToolRegistry;

/// How long any wait of the suite may take.
const DEADLINE: Duration = Duration::from_secs(100);

/// Runs the whole suite.
///
/// # Panics
/// The source breaks a promise; the message says which.
pub async fn run(source: &dyn ToolSource) {
    let name = source.name().to_owned();
    assert!(!name.trim().is_empty(), "a source has a name");
    a_load_may_be_dropped(source).await;
    let first = load(source).await;
    the_list_can_be_used(&name, &first);
    assert_eq!(
        first.generation,
        source.generation(),
        "{name}: what was loaded is of the generation that the source tells"
    );
    nothing_changes_by_itself(source, first.generation).await;
    let second = load(source).await;
    assert_eq!(
        names(&first),
        names(&second),
        "{name}: the same list comes in the same order"
    );
    assert_eq!(source.name(), name, "a source's name never changes");
    timeout(DEADLINE, source.close())
        .await
        .unwrap_or_else(|_| panic!("{name}: closing ends"));
}

async fn load(source: &dyn ToolSource) -> LoadedTools {
    let name = source.name();
    timeout(DEADLINE, source.load(&CancelToken::new()))
        .await
        .unwrap_or_else(|_| panic!("{name}: loading ends"))
        .unwrap_or_else(|error| panic!("{name}: it loads: {error}"))
}

fn names(loaded: &LoadedTools) -> Vec<String> {
    loaded
        .tools
        .iter()
        .map(|tool| tool.definition().name.clone())
        .collect()
}

/// Loading is dropped in its first wait; the next one works all the same.
async fn a_load_may_be_dropped(source: &dyn ToolSource) {
    let cancel = CancelToken::new();
    // A source that is at once done has nothing to be dropped in.
    let _ = timeout(Duration::ZERO, source.load(&cancel)).await;
    cancel.cancel();
    // A cancelled load ends by itself, with tools or with an error.
    let name = source.name();
    let _ = timeout(DEADLINE, source.load(&cancel))
        .await
        .unwrap_or_else(|_| panic!("{name}: a cancelled load ends"));
}

fn the_list_can_be_used(name: &str, loaded: &LoadedTools) {
    assert!(
        !loaded.tools.is_empty(),
        "{name}: the suite needs a source with tools"
    );
    let mut seen = HashSet::new();
    for tool in &loaded.tools {
        let definition = tool.definition();
        assert!(
            seen.insert(&definition.name),
            "{name}: it lists {} once",
            definition.name
        );
        assert!(
            std::sync::Arc::ptr_eq(definition, tool.definition()),
            "{name}: a definition stays the same for as long as the tool lives"
        );
    }
    let mut registry = ToolRegistry::new();
    let change = registry.replace_source(name, loaded.clone());
    assert_eq!(
        change.added,
        names(loaded),
        "{name}: a registry takes what it lists as usable, in its order"
    );
}

async fn nothing_changes_by_itself(source: &dyn ToolSource, generation: u64) {
    let changed = timeout(Duration::ZERO, source.changed(generation)).await;
    assert!(
        changed.is_err() || source.generation() != generation,
        "{}: a change is told only when the generation is another",
        source.name()
    );
}
