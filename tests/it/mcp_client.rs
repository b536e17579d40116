//! The client against scripted servers: lists, calls, changes, restarts, questions.

use super::mcp_faults::process;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use yiem::mcp::jsonrpc::Incoming;
use yiem::mcp::{
    CallOptions, Elicit, Elicitation, ElicitationAnswer, ElicitationKind, McpClient, McpError,
    McpErrorKind, McpEvent, McpServer, McpToolSource, Root,
};
use yiem::{CancelToken, Content, ProgressSink, SystemEnv, ToolSource, async_trait};
use yiem_test::PausedEnv;
use yiem_test::server::{Act, FakeHttpServer, FakeMcpServer};

fn client(server: McpServer) -> McpClient {
    McpClient::new(server.name("s"), SystemEnv::shared()).unwrap()
}

async fn text(client: &McpClient, tool: &str, arguments: Value) -> Result<String, McpError> {
    let outcome = within(client.call(tool, arguments, CallOptions::default())).await?;
    Ok(outcome.content.iter().map(Content::to_plain_text).collect())
}

/// Every await has a deadline.
async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(100), work)
        .await
        .expect("nothing waits for ever")
}

fn page(names: &[&str], cursor: Value) -> Act {
    let tools: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    Act::Reply(json!({"tools": tools, "nextCursor": cursor}))
}

async fn names(script: FakeMcpServer) -> (Vec<String>, Vec<String>) {
    let client = client(process(&script));
    let listing = within(client.tools()).await.unwrap();
    (
        listing.tools.iter().map(|tool| tool.name.clone()).collect(),
        listing.warnings.clone(),
    )
}

#[tokio::test]
async fn all_pages_are_read_in_the_servers_order() {
    let script = FakeMcpServer::legacy()
        .tool("x")
        .once("tools/list", [page(&["z", "a"], json!("2"))])
        .once("tools/list", [page(&["m"], json!(3))])
        .once("tools/list", [page(&["b"], json!(null))]);
    assert_eq!(
        names(script).await,
        (vec!["z".into(), "a".into(), "m".into(), "b".into()], vec![])
    );
}

#[tokio::test]
async fn a_list_that_does_not_end_is_ended_with_a_warning() {
    let same = FakeMcpServer::legacy()
        .tool("x")
        .on("tools/list", [page(&["a"], json!("again"))]);
    let (found, warnings) = names(same).await;
    assert_eq!((found, warnings.len()), (vec!["a".to_owned()], 1));
    let empty = FakeMcpServer::legacy()
        .tool("x")
        .on("tools/list", [page(&["a"], json!(""))]);
    assert_eq!(names(empty).await.0, ["a"]);
    let refused = FakeMcpServer::legacy()
        .tool("x")
        .once("tools/list", [page(&["a"], json!(""))])
        .on(
            "tools/list",
            [Act::raw(
                r#"{"id":$id,"error":{"code":-32602,"message":"Invalid cursor"}}"#,
            )],
        );
    assert_eq!(names(refused).await.0, ["a"]);
}

#[tokio::test]
async fn one_bad_definition_is_reported_by_name_and_the_others_stand() {
    let script = FakeMcpServer::legacy()
        .tool("good")
        .definition(json!({"name": "bad", "inputSchema": "nope"}))
        .definition(json!(7))
        .tool("good")
        .definition(json!({"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}))
        .tool("better");
    let source = McpToolSource::new(process(&script).name("s"), SystemEnv::shared()).unwrap();
    let loaded = within(source.load(&CancelToken::new())).await.unwrap();
    let names: Vec<_> = loaded
        .tools
        .iter()
        .map(|tool| tool.definition().name.clone())
        .collect();
    assert_eq!(names, ["good", "better"]);
    let bad: Vec<_> = loaded
        .rejected
        .iter()
        .map(|bad| bad.name.as_str())
        .collect();
    assert_eq!(bad, ["bad", "7", "good", "slow"]);
}

#[tokio::test]
async fn a_changed_list_is_one_new_generation_and_one_new_listing() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on(
            "tools/call:t",
            [Act::raw(changed), Act::raw(changed), Act::text("ok")],
        )
        .on("tools/call:seen", [Act::Seen]);
    let source = McpToolSource::new(process(&script).name("s"), SystemEnv::shared()).unwrap();
    let first = within(source.load(&CancelToken::new())).await.unwrap();
    assert_eq!(source.generation(), first.generation);
    text(source.client(), "t", json!({})).await.unwrap();
    within(source.changed(first.generation)).await;
    let cancel = CancelToken::new();
    let (one, two) = tokio::join!(source.load(&cancel), source.load(&cancel));
    assert_eq!(one.unwrap().generation, two.unwrap().generation);
    let seen = text(source.client(), "seen", json!({})).await.unwrap();
    assert_eq!(
        seen.matches(r#""method":"tools/list""#).count(),
        2,
        "{seen}"
    );
}

#[tokio::test]
async fn a_modern_servers_changes_are_listened_for() {
    let listed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$id}}}"#;
    let acknowledged = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}"#;
    let script = FakeMcpServer::modern().tool("t").on(
        "subscriptions/listen",
        [Act::raw(acknowledged), Act::raw(listed), Act::Hang],
    );
    let client = client(process(&script));
    within(client.connect()).await.unwrap();
    within(client.changed(0)).await;
    assert!(client.dialect().unwrap().is_modern());
}

#[tokio::test]
async fn a_list_that_is_called_fresh_is_not_asked_for_again() {
    let fresh = json!({"tools": [{"name": "seen", "inputSchema": {"type": "object"}}], "ttlMs": 60_000, "resultType": "complete"});
    let script = FakeMcpServer::modern()
        .tool("x")
        .on("tools/list", [Act::Reply(fresh)])
        .on("tools/call", [Act::Seen]);
    let client = client(process(&script));
    for _ in 0..3 {
        within(client.tools()).await.unwrap();
    }
    let seen = text(&client, "seen", json!({})).await.unwrap();
    assert_eq!(
        seen.matches(r#""method":"tools/list""#).count(),
        1,
        "{seen}"
    );
}

#[tokio::test]
async fn a_hundred_calls_at_once_reach_their_callers_in_whatever_order_they_are_answered() {
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on("tools/call", [Act::Gather(100)]);
    let client = client(process(&script));
    let calls = (0..100).map(|number| {
        let client = client.clone();
        async move {
            let wanted = format!("call {number}");
            assert_eq!(
                text(&client, "t", json!({"text": wanted})).await.unwrap(),
                wanted
            );
        }
    });
    within(futures_util::future::join_all(calls)).await;
}

#[derive(Default)]
struct Heard(Mutex<Vec<Value>>);

#[async_trait]
impl ProgressSink for Heard {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }
    fn offer(&self, partial: Value) {
        self.0.lock().unwrap().push(partial);
    }
}

const BEAT: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":1,"total":4,"message":"m"}}"#;

#[tokio::test]
async fn progress_is_heard_before_the_answer() {
    let beats = std::iter::repeat_n(Act::raw(BEAT), 5);
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on("tools/call:t", beats.chain([Act::text("done")]));
    let client = client(process(&script));
    let heard = Arc::new(Heard::default());
    let options = CallOptions::default().progress(Arc::clone(&heard) as _);
    let outcome = within(client.call("t", json!({}), options)).await.unwrap();
    assert_eq!(outcome.content[0].as_text(), Some("done"));
    let heard = heard.0.lock().unwrap().clone();
    assert_eq!(
        heard,
        vec![json!({"progress": 1, "total": 4, "message": "m"}); 5]
    );
}

/// In this process, where time is the test's.
#[tokio::test(start_paused = true)]
async fn progress_renews_the_time_of_a_call_up_to_the_hard_cap() {
    let server = McpServer::closure_with_exchange(|exchange| async move {
        let endless = exchange.params["name"] == "endless";
        let mut beats = 0;
        while endless || beats < 5 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            exchange.inbox.message(Incoming::Notification {
                method: "notifications/progress".into(),
                params: json!({"progressToken": 0, "progress": beats}),
            });
            beats += 1;
        }
        json!({"content": [{"type": "text", "text": "done"}]})
    });
    let server = server
        .call_timeout(Duration::from_millis(400))
        .hard_cap(Duration::from_millis(2_000));
    let client = McpClient::new(server.name("s"), PausedEnv::shared()).unwrap();
    assert_eq!(text(&client, "t", json!({})).await.unwrap(), "done");
    let error = within(client.call("endless", json!({}), CallOptions::default()))
        .await
        .unwrap_err();
    assert!(
        matches!(error.kind(), McpErrorKind::TimedOut { hard_cap: true, .. }),
        "{error}"
    );
    let told = error.to_string();
    assert!(
        told.contains("the longest that progress can extend"),
        "{told}"
    );
}

/// Says when the server has begun, by its progress.
#[derive(Default)]
struct Begun(tokio::sync::Notify);

#[async_trait]
impl ProgressSink for Begun {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }
    fn offer(&self, _: Value) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_given_up_call_is_told_to_the_server_and_its_late_answer_dropped() {
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on(
            "tools/call:slow",
            [Act::raw(BEAT), Act::Sleep(50), Act::text("too late")],
        )
        .on("tools/call:seen", [Act::Seen]);
    let client = client(process(&script));
    within(client.connect()).await.unwrap();
    let cancel = CancelToken::new();
    let begun = Arc::new(Begun::default());
    let options = CallOptions::default().progress(Arc::clone(&begun) as _);
    let slow = client.call("slow", json!({}), options.clone().cancel(cancel.clone()));
    let (outcome, ()) = tokio::join!(slow, async {
        within(begun.0.notified()).await;
        cancel.cancel();
    });
    assert_eq!(*outcome.unwrap_err().kind(), McpErrorKind::Cancelled);
    // Dropped as well as cancelled.
    tokio::select! {
        outcome = client.call("slow", json!({}), options) => panic!("{outcome:?}"),
        () = within(begun.0.notified()) => {}
    }
    let seen = text(&client, "seen", json!({})).await.unwrap();
    assert_eq!(seen.matches("notifications/cancelled").count(), 2, "{seen}");
}

#[tokio::test]
async fn a_call_that_may_have_run_is_never_sent_again_and_the_server_is_started_anew() {
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on("tools/call:mute", [Act::Hang])
        .on("tools/call:die", [Act::Exit(9)])
        .on("tools/call:seen", [Act::Seen])
        .on("tools/call:pid", [Act::Pid]);
    let client = client(process(&script));
    let mut events = client.events();
    let first = text(&client, "pid", json!({})).await.unwrap();
    // The server takes them in this order: two wait for it when it ends.
    let calls = ["mute", "mute", "die"].map(|tool| text(&client, tool, json!({})));
    let outcomes = within(futures_util::future::join_all(calls)).await;
    assert!(
        outcomes.iter().all(|outcome| outcome
            .as_ref()
            .is_err_and(|error| error.to_string().contains("status 9"))),
        "{outcomes:?}"
    );
    assert_ne!(text(&client, "pid", json!({})).await.unwrap(), first);
    let seen = text(&client, "seen", json!({})).await.unwrap();
    assert!(
        !seen.contains(r#""die""#) && !seen.contains(r#""mute""#),
        "{seen}"
    );
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        told.push(event);
    }
    assert!(
        told.iter()
            .any(|event| matches!(event, McpEvent::Lost(why) if why.contains("status 9"))),
        "{told:?}"
    );
}

struct Person(ElicitationAnswer, Mutex<Vec<Elicitation>>);

#[async_trait]
impl Elicit for Person {
    async fn elicit(&self, question: Elicitation) -> ElicitationAnswer {
        self.1.lock().unwrap().push(question);
        self.0.clone()
    }
}

#[tokio::test]
async fn input_that_a_modern_server_wants_is_given_under_a_new_id_with_its_state() {
    let wish = json!({"resultType": "input_required", "requestState": "s\u{1F600}==", "inputRequests": {
        "who": {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema":
            {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}}}}},
        "where": {"method": "roots/list", "params": {}},
    }});
    let script = FakeMcpServer::modern()
        .tool("t")
        .once("tools/call", [Act::Reply(wish)])
        .on("tools/call", [Act::Seen]);
    let mut values = Map::new();
    values.insert("name".into(), "Ada".into());
    let person = Arc::new(Person(ElicitationAnswer::Accept(values), Mutex::default()));
    let server = process(&script)
        .elicit(Arc::clone(&person) as _)
        .roots([Root {
            uri: "file:///w".into(),
            name: None,
        }]);
    let seen: Vec<Value> =
        serde_json::from_str(&text(&client(server), "t", json!({"a": 1})).await.unwrap()).unwrap();
    let calls: Vec<_> = seen
        .iter()
        .filter(|message| message["method"] == "tools/call")
        .collect();
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    let again = &calls[1]["params"];
    assert_eq!(again["arguments"], json!({"a": 1}));
    assert_eq!(again["requestState"], "s\u{1F600}==");
    assert_eq!(
        again["inputResponses"]["who"],
        json!({"action": "accept", "content": {"name": "Ada", "age": 7}})
    );
    assert_eq!(
        again["inputResponses"]["where"],
        json!({"roots": [{"uri": "file:///w"}]})
    );
    let asked = person.1.lock().unwrap();
    assert!(matches!(&asked[0].kind, ElicitationKind::Form { .. }) && asked[0].message == "Who?");
    assert!(
        seen.iter().all(|message| message.get("method").is_some()),
        "a modern server gets no JSON-RPC response"
    );
}

#[tokio::test]
async fn a_server_that_never_stops_asking_is_stopped() {
    let wish = json!({"resultType": "input_required", "requestState": "s"});
    let script = FakeMcpServer::modern()
        .tool("t")
        .on("tools/call", [Act::Reply(wish)]);
    let told = text(&client(process(&script)), "t", json!({}))
        .await
        .unwrap_err()
        .to_string();
    assert!(told.contains("more than 8 times"), "{told}");
    let odd = FakeMcpServer::modern().tool("t").on(
        "tools/call",
        [Act::Reply(json!({"resultType": "task", "taskId": "1"}))],
    );
    let told = text(&client(process(&odd)), "t", json!({}))
        .await
        .unwrap_err()
        .to_string();
    assert!(told.contains("task"), "{told}");
}

#[tokio::test]
async fn every_modern_request_has_its_metadata_and_a_bare_one_none() {
    let script = FakeMcpServer::modern()
        .tool("t")
        .on("tools/call", [Act::Seen]);
    let seen: Vec<Value> = serde_json::from_str(
        &text(&client(process(&script)), "t", json!({}))
            .await
            .unwrap(),
    )
    .unwrap();
    for message in &seen {
        let meta = &message["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28",
            "{message}"
        );
        assert!(
            meta["io.modelcontextprotocol/clientCapabilities"].is_object(),
            "{message}"
        );
    }
    let ids: std::collections::HashSet<String> = seen
        .iter()
        .map(|message| message["id"].to_string())
        .collect();
    assert_eq!(ids.len(), seen.len(), "ids never repeat");
    let bare = McpServer::closure(|_, params| async move {
        json!({"content": [{"type": "text", "text": params.to_string()}]})
    });
    assert_eq!(
        text(&client(bare), "t", json!({})).await.unwrap(),
        r#"{"name":"t","arguments":{}}"#
    );
}

#[tokio::test]
async fn prompts_and_resources_are_read_and_offered_as_tools() {
    let script = FakeMcpServer::legacy()
        .on("initialize", [Act::Reply(json!({"protocolVersion": "2025-11-25", "capabilities": {"resources": {}, "prompts": {}}}))])
        .on("resources/list", [Act::Reply(json!({"resources": [{"uri": "a:b", "name": "B"}]}))])
        .on("resources/read", [Act::Reply(json!({"contents": [{"uri": "a:b", "text": "inside"}]}))])
        .on("prompts/list", [Act::Reply(json!({"prompts": [{"name": "p"}]}))])
        .on("prompts/get", [Act::Reply(json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}))]);
    let server = process(&script)
        .name("s")
        .offer_resources(true)
        .offer_prompts(true);
    let source = McpToolSource::new(server, SystemEnv::shared()).unwrap();
    let loaded = within(source.load(&CancelToken::new())).await.unwrap();
    let mut shown = Vec::new();
    for tool in &loaded.tools {
        let mut args = Map::new();
        args.insert("uri".into(), "a:b".into());
        args.insert("name".into(), "p".into());
        let context = yiem::ToolContext::new("c", "x", SystemEnv::shared());
        let output = within(tool.call(yiem::ValidArgs::accepted(args), context))
            .await
            .unwrap();
        shown.push((
            tool.definition().name.clone(),
            output.content[0].to_plain_text(),
        ));
    }
    let shown: Vec<_> = shown
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (
                "s_list_resources",
                r#"{"resources":[{"uri":"a:b","name":"B"}]}"#
            ),
            ("s_read_resource", "inside"),
            ("s_list_prompts", r#"{"prompts":[{"name":"p"}]}"#),
            ("s_get_prompt", "user: hi"),
        ]
    );
}

#[tokio::test]
async fn a_server_without_tools_is_not_asked_for_them() {
    let script = FakeMcpServer::legacy()
        .on(
            "initialize",
            [Act::Reply(
                json!({"protocolVersion": "2025-11-25", "capabilities": {"resources": {}}}),
            )],
        )
        .on("tools/list", [Act::Exit(1)]);
    assert!(names(script).await.0.is_empty());
}

#[tokio::test]
async fn a_server_that_dies_of_discover_is_opened_with_the_handshake() {
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on("server/discover", [Act::Exit(1)]);
    assert_eq!(names(script).await.0, ["t"]);
}

#[tokio::test]
async fn a_header_mismatch_lists_anew_and_tries_once_more() {
    let marked = json!({"name": "t", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}}}});
    let script = FakeMcpServer::modern()
        .definition(marked)
        .once(
            "tools/call",
            [Act::Http(
                400,
                vec![],
                r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32020,"message":"headers"}}"#.into(),
            )],
        )
        .on("tools/call", [Act::text("ok")]);
    let server = FakeHttpServer::start(script).await;
    let client = client(McpServer::http(server.url()).header("X-Mine", "1"));
    assert_eq!(
        text(&client, "t", json!({"region": "eu"})).await.unwrap(),
        "ok"
    );
    let requests = server.requests();
    let last = requests
        .iter()
        .rfind(|request| request["body"]["method"] == "tools/call")
        .unwrap();
    for (name, value) in [
        ("mcp-param-region", "eu"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "t"),
        ("x-mine", "1"),
        ("mcp-protocol-version", "2026-07-28"),
        ("accept", "application/json, text/event-stream"),
    ] {
        assert_eq!(last["headers"][name], value, "{last}");
    }
}
