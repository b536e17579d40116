//! The registry: order, ownership, names (T-3, M-6).

use std::sync::Arc;

use serde_json::json;
use yiem_core::{LoadedTools, RejectedTool};
use yiem_tools::{ClashPolicy, MAX_NAME_CHARS, RegisterError, SourceId, ToolRegistry};

use crate::kit::{names, plain_tool};

fn list(tools: &[&str]) -> LoadedTools {
    LoadedTools {
        tools: tools
            .iter()
            .map(|name| plain_tool(name, "x", json!({ "type": "object" })))
            .collect(),
        ..LoadedTools::default()
    }
}

#[test]
fn tools_keep_their_order_and_a_second_of_a_name_is_refused() {
    let mut registry = ToolRegistry::new();
    for name in ["b", "a", "c"] {
        registry.register(plain_tool(name, "x", json!({}))).unwrap();
    }
    let snapshot = registry.snapshot();
    assert_eq!(names(&snapshot), ["b", "a", "c"]);
    assert_eq!(
        snapshot
            .definitions()
            .iter()
            .map(|d| d.name.as_str())
            .collect::<Vec<_>>(),
        ["b", "a", "c"]
    );
    let again = registry.register(plain_tool("a", "y", json!({})));
    assert!(matches!(again, Err(RegisterError::Clash { .. })));
    assert!(snapshot.get("a").is_some() && snapshot.get("d").is_none());
}

#[test]
fn the_same_source_may_replace_its_tool_and_no_other() {
    let mut registry = ToolRegistry::new();
    let folder = SourceId::source("folder");
    registry
        .register_shared(plain_tool("made", "first", json!({})), folder.clone())
        .unwrap();
    registry
        .register(plain_tool("own", "x", json!({})))
        .unwrap();
    registry
        .register_shared(plain_tool("made", "second", json!({})), folder.clone())
        .unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(names(&snapshot), ["made", "own"]);
    assert_eq!(
        snapshot.get("made").unwrap().definition().description,
        "second"
    );
    assert_eq!(snapshot.get("made").unwrap().source(), &folder);
    assert!(
        registry
            .register_shared(
                plain_tool("made", "x", json!({})),
                SourceId::source("other")
            )
            .is_err()
    );
    assert!(
        registry
            .register_shared(plain_tool("own", "x", json!({})), folder)
            .is_err()
    );
}

#[test]
fn between_sources_the_one_configured_later_is_prefixed_whatever_the_order_of_answers() {
    for order in [["first", "second"], ["second", "first"]] {
        let mut registry = ToolRegistry::new();
        registry.declare_source("first");
        registry.declare_source("second");
        for source in order {
            registry.replace_source(source, list(&["search", &format!("only_{source}")]));
        }
        let mut offered = names(&registry.snapshot());
        offered.sort();
        assert_eq!(
            offered,
            ["only_first", "only_second", "search", "second__search"],
            "{order:?}"
        );
        let snapshot = registry.snapshot();
        assert_eq!(
            snapshot.get("search").unwrap().source(),
            &SourceId::source("first")
        );
        let prefixed = snapshot.get("second__search").unwrap();
        assert_eq!(
            prefixed.tool().definition().name,
            "search",
            "the server's own name, byte for byte"
        );
        assert_eq!(prefixed.definition().name, "second__search");
    }
}

#[test]
fn a_name_that_was_offered_never_changes() {
    let mut registry = ToolRegistry::new();
    registry.declare_source("first");
    registry.declare_source("second");
    registry.replace_source("second", list(&["search"]));
    assert_eq!(names(&registry.snapshot()), ["search"]);
    registry.replace_source("first", list(&["search"]));
    assert_eq!(names(&registry.snapshot()), ["search", "first__search"]);
    registry.replace_source("second", list(&[]));
    assert_eq!(
        names(&registry.snapshot()),
        ["first__search"],
        "a name that is free again is not given away"
    );
    registry.replace_source("second", list(&["search"]));
    assert_eq!(names(&registry.snapshot()), ["search", "first__search"]);
}

#[test]
fn ones_own_tools_win_and_the_clash_is_reported() {
    let mut registry = ToolRegistry::new();
    registry.replace_source("server", list(&["search", "other"]));
    registry
        .register(plain_tool("search", "mine", json!({})))
        .unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(names(&snapshot), ["search", "other"]);
    assert_eq!(snapshot.get("search").unwrap().source(), &SourceId::Own);
    let quarantined = registry.quarantined();
    assert_eq!(
        quarantined[0].to_string(),
        "search of server: the application has a tool of this name, which is kept"
    );
    assert!(
        registry
            .register(plain_tool("other", "late", json!({})))
            .is_err(),
        "it was offered already"
    );
}

#[test]
fn policies_prefix_always_or_refuse() {
    let mut always = ToolRegistry::with_policy(ClashPolicy::AlwaysPrefix);
    always
        .register(plain_tool("search", "mine", json!({})))
        .unwrap();
    always.replace_source("a", list(&["search", "x"]));
    assert_eq!(names(&always.snapshot()), ["search", "a__search", "a__x"]);
    let mut refuse = ToolRegistry::with_policy(ClashPolicy::Refuse);
    refuse.replace_source("a", list(&["search"]));
    refuse.replace_source("b", list(&["search", "y"]));
    assert_eq!(names(&refuse.snapshot()), ["search", "y"]);
    assert_eq!(refuse.quarantined().len(), 1);
}

#[test]
fn names_stay_within_their_length_and_apart() {
    let long = "tool_".repeat(40);
    let longer = format!("{long}x");
    let mut registry = ToolRegistry::new();
    registry.replace_source("server", list(&[&long, &longer]));
    registry.replace_source("another-server-with-a-long-name", list(&[&long]));
    let snapshot = registry.snapshot();
    let offered = names(&snapshot);
    assert_eq!(offered.len(), 3);
    for name in &offered {
        assert!(name.chars().count() <= MAX_NAME_CHARS, "{name}");
    }
    assert!(
        offered[0].starts_with("tool_tool_"),
        "a readable head: {}",
        offered[0]
    );
    assert_eq!(
        snapshot.get(&offered[0]).unwrap().tool().definition().name,
        long
    );
}

#[test]
fn a_lists_bad_parts_are_left_out_alone() {
    let mut registry = ToolRegistry::new();
    let mut loaded = list(&[
        "good",
        "",
        "good",
        "line\nbreak",
        "with space",
        "dots.and/slashes",
        "ünïcode",
    ]);
    loaded.rejected.push(RejectedTool {
        name: "broken".into(),
        reason: "it has no inputSchema".into(),
    });
    let change = registry.replace_source("server", loaded.clone());
    assert_eq!(
        change.added,
        ["good", "with space", "dots.and/slashes", "ünïcode"]
    );
    let reasons: Vec<String> = change
        .quarantined
        .iter()
        .map(|q| format!("{}: {}", q.name, q.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            "broken: it has no inputSchema",
            ": its name is empty",
            "good: the source lists this name twice; the first holds",
            "line\nbreak: its name holds control characters",
        ]
    );
    // The same list again is no news; another reason is.
    assert_eq!(
        registry
            .replace_source("server", loaded.clone())
            .quarantined,
        []
    );
    loaded.rejected[0].reason = "its inputSchema is no object".into();
    let change = registry.replace_source("server", loaded);
    assert_eq!(change.quarantined.len(), 1);
    assert_eq!(change.quarantined[0].name, "broken");
    assert_eq!(registry.quarantined().len(), 4);
}

#[test]
fn an_unchanged_list_changes_nothing_and_a_snapshot_costs_nothing() {
    let mut registry = ToolRegistry::new();
    let tools = list(&["a", "b"]);
    registry.replace_source("server", tools.clone());
    let first = registry.snapshot();
    let change = registry.replace_source("server", tools);
    assert!(change.added.is_empty() && change.removed.is_empty() && change.changed.is_empty());
    let second = registry.snapshot();
    assert!(
        Arc::ptr_eq(&first.definitions(), &second.definitions()),
        "the same snapshot"
    );
}

#[test]
fn a_schema_of_ones_own_that_does_not_compile_is_an_error() {
    let mut registry = ToolRegistry::new();
    let error = registry
        .register(plain_tool("bad", "x", json!({ "type": "objekt" })))
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schema of the tool \"bad\" cannot be used"
    );
    let _ = error;
}
