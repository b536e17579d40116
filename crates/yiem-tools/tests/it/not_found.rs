//! What a model is told that calls a tool which it is not offered (T-5).

use serde_json::json;
use yiem_core::CancelToken;
use yiem_tools::{Discovery, Finder, FunctionTool, ToolCatalog, ToolSnapshot};

use crate::kit::{FakeSource, plain_tool};

fn own(name: &str) -> FunctionTool {
    FunctionTool::builder(name).json(json!({ "type": "object" }), |_, _| async move { "own" })
}

fn told(snapshot: &ToolSnapshot, name: &str) -> String {
    snapshot.not_found(name, |_| true)
}

/// A catalog with one's own tool `getTime` and a server's tools, which it knows.
async fn known(finder: Finder, tools: &[&str]) -> ToolCatalog {
    let catalog = ToolCatalog::builder()
        .tool(own("getTime"))
        .shared_source(FakeSource::new("server", tools))
        .finder(finder)
        .build()
        .expect("a catalog");
    catalog.load_all(&CancelToken::new()).await;
    catalog
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_known_and_not_offered_is_said_to_exist_and_how_it_is_got() {
    for (finder, how) in [
        (Finder::List, "listTools"),
        (Finder::Search, "searchTools"),
        (Finder::Both, "listTools or searchTools"),
    ] {
        let catalog = known(finder, &["getWeather"]).await;
        let snapshot = catalog.snapshot();
        assert!(snapshot.get("getWeather").is_none());
        assert_eq!(
            told(&snapshot, "getWeather"),
            format!(
                "Tool getWeather not found. It exists but is not offered yet: call {how} first, \
                 and getWeather from your next turn on."
            )
        );
        assert_eq!(
            told(&snapshot, "get_wether"),
            format!(
                "Tool get_wether not found. Did you mean \"getWeather\"? It is not offered yet: \
                 call {how} first."
            )
        );
        // Once it is offered, nothing of that is said.
        catalog.disclose(["getWeather"]);
        assert_eq!(
            told(&catalog.snapshot(), "get_wether"),
            "Tool get_wether not found. Did you mean \"getWeather\"?"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_near_to_an_offered_tool_is_led_to_that_one_first() {
    let catalog = known(Finder::List, &["getTimes"]).await;
    assert_eq!(
        told(&catalog.snapshot(), "getTimee"),
        "Tool getTimee not found. Did you mean \"getTime\"?"
    );
    assert_eq!(
        told(&catalog.snapshot(), "functions.get_time"),
        "Tool functions.get_time not found. Did you mean \"getTime\"?"
    );
}

#[tokio::test(start_paused = true)]
async fn while_servers_are_not_known_an_unknown_name_is_sent_to_the_list() {
    let source = FakeSource::new("server", &["getWeather"]);
    let catalog = ToolCatalog::builder()
        .shared_source(source)
        .build()
        .unwrap();
    assert_eq!(
        told(&catalog.snapshot(), "getWeather"),
        "Tool getWeather not found. Not all tools are offered yet: call listTools to see the others."
    );
    catalog.load_all(&CancelToken::new()).await;
    catalog.disclose_all();
    assert_eq!(
        told(&catalog.snapshot(), "nope"),
        "Tool nope not found",
        "there is nothing more to be found"
    );
}

#[tokio::test(start_paused = true)]
async fn without_servers_an_unknown_name_has_no_hint_and_no_finder_is_named() {
    let catalog = ToolCatalog::builder().tool(own("getTime")).build().unwrap();
    for name in ["nope", "", "listTools", "searchTools"] {
        assert_eq!(
            told(&catalog.snapshot(), name),
            format!("Tool {name} not found")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_be_offered_has_its_reason() {
    let source = FakeSource::new("server", &[]);
    source.set(vec![
        plain_tool("good", "Good.", json!({ "type": "object" })),
        plain_tool("bad", "Bad.", json!({ "type": "nonsense" })),
    ]);
    let catalog = ToolCatalog::builder()
        .shared_source(source)
        .discovery(Discovery::Eager)
        .build()
        .unwrap();
    catalog.load_all(&CancelToken::new()).await;
    let told = told(&catalog.snapshot(), "bad");
    assert!(
        told.starts_with("Tool bad not found. It is listed by server but cannot be offered: "),
        "{told}"
    );
    assert!(told.contains("nonsense"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_called_in_a_turn_is_proposed_to_nobody() {
    let catalog = known(Finder::List, &["getWeather"]).await;
    let snapshot = catalog.snapshot();
    let narrowed = |name: &str| name == "getTime";
    assert_eq!(
        snapshot.not_found("listTools", narrowed),
        "Tool listTools not found. It exists but cannot be used in this turn."
    );
    // The finder may not be called, so that no way leads to the tool.
    for name in ["getWeather", "get_weather", "list_tools"] {
        assert_eq!(
            snapshot.not_found(name, narrowed),
            format!("Tool {name} not found")
        );
    }
    assert_eq!(
        snapshot.not_found("get_time", narrowed),
        "Tool get_time not found. Did you mean \"getTime\"?"
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_without_end_is_not_said_back_whole() {
    let catalog = known(Finder::List, &["getWeather"]).await;
    let told = told(&catalog.snapshot(), &"line\n".repeat(100_000));
    assert!(told.len() < 400 && !told.contains('\n'), "{told}");
    assert!(told.starts_with("Tool line line"), "{told}");
}
