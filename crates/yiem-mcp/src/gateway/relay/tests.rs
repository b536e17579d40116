//! A server of one era behind callers of another.

use super::*;
use crate::dialect::DialectChoice;
use crate::jsonrpc::Incoming;
use crate::responder::ToolServer;
use crate::server::McpServer;
use crate::transport::MemoryTransport;
use std::sync::Mutex;
use yiem_core::{
    CancelToken, SystemEnv, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs,
};

struct Steps(Arc<ToolDefinition>);

#[async_trait]
impl Tool for Steps {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        context.progress(json!({"progress": 1, "total": 2})).await;
        context.progress(json!({"progress": 2, "total": 2})).await;
        Ok(ToolOutput::text(
            args.get("text")
                .map(ToString::to_string)
                .unwrap_or_default(),
        ))
    }
}

fn relay(upstream: DialectChoice) -> Relay {
    let definition = ToolDefinition {
        name: "steps".into(),
        input_schema: json!({"type": "object", "properties": {}}),
        ..ToolDefinition::default()
    };
    let server = ToolServer::new("upstream", SystemEnv::shared())
        .tool(Steps(Arc::new(definition)))
        .instructions("Be kind.");
    let transport = MemoryTransport::new(Arc::new(server)).with_dialect(upstream);
    let client = McpClient::new(
        McpServer::transport(transport).name("up"),
        SystemEnv::shared(),
    )
    .expect("a client");
    Relay::new(client, Arc::new(Callers::new(SystemEnv::shared())))
}

fn modern(mut params: Value) -> Map<String, Value> {
    params["_meta"] = json!({
        meta_key::PROTOCOL_VERSION: "2026-07-28",
        meta_key::CLIENT_CAPABILITIES: {},
        meta_key::PROGRESS_TOKEN: "mine",
    });
    params.as_object().cloned().expect("an object")
}

fn legacy(params: Value) -> Map<String, Value> {
    params.as_object().cloned().expect("an object")
}

async fn ask(
    relay: &Relay,
    name: &str,
    params: Map<String, Value>,
) -> (Result<Value, JsonRpcError>, Vec<Value>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let caller = Caller::new(CancelToken::new(), move |note| {
        if let Incoming::Notification { params, .. } = note {
            heard.lock().unwrap().push(params);
        }
    });
    let answer = relay.respond(name, params, caller).await;
    let told = told.lock().unwrap().clone();
    (answer, told)
}

const UPSTREAMS: [DialectChoice; 3] = [
    DialectChoice::Bare,
    DialectChoice::Legacy,
    DialectChoice::Modern,
];

#[tokio::test]
async fn callers_of_every_era_reach_servers_of_every_era() {
    for upstream in UPSTREAMS {
        let relay = relay(upstream);
        let (opened, _) = ask(
            &relay,
            method::INITIALIZE,
            legacy(json!({"protocolVersion": "2025-06-18"})),
        )
        .await;
        let opened = opened.expect("opened");
        assert_eq!(opened["protocolVersion"], "2025-06-18", "{upstream:?}");
        assert_eq!(opened["capabilities"]["tools"], json!({}), "{upstream:?}");
        let (found, _) = ask(&relay, method::DISCOVER, modern(json!({}))).await;
        let found = found.expect("found");
        assert_eq!(
            (&found["supportedVersions"], &found["resultType"]),
            (&json!(["2026-07-28"]), &json!("complete"))
        );

        let (old, _) = ask(&relay, method::TOOLS_LIST, legacy(json!({}))).await;
        let old = old.expect("a list");
        assert_eq!(old["tools"][0]["name"], "steps");
        assert!(
            old.get("resultType").is_none() && old.get("ttlMs").is_none(),
            "{upstream:?}: {old}"
        );
        let (new, _) = ask(&relay, method::TOOLS_LIST, modern(json!({}))).await;
        let new = new.expect("a list");
        assert_eq!(
            (&new["resultType"], &new["ttlMs"], &new["cacheScope"]),
            (&json!("complete"), &json!(0), &json!("private"))
        );

        let call = json!({"name": "steps", "arguments": {"text": "hi"}});
        let (called, _) = ask(&relay, method::TOOLS_CALL, legacy(call.clone())).await;
        assert_eq!(
            called.expect("called")["content"][0]["text"],
            "\"hi\"",
            "{upstream:?}"
        );
        let (called, told) = ask(&relay, method::TOOLS_CALL, modern(call)).await;
        assert_eq!(called.expect("called")["resultType"], "complete");
        let steps: Vec<_> = told
            .iter()
            .map(|note| (note["progress"].clone(), note["progressToken"].clone()))
            .collect();
        assert_eq!(
            steps,
            [(json!(1), json!("mine")), (json!(2), json!("mine"))],
            "{upstream:?}"
        );
    }
}

#[tokio::test]
async fn without_a_token_no_progress_is_told() {
    let relay = relay(DialectChoice::Legacy);
    let (answer, told) = ask(&relay, method::TOOLS_CALL, legacy(json!({"name": "steps"}))).await;
    assert!(answer.is_ok() && told.is_empty());
}

#[tokio::test]
async fn what_the_server_refuses_goes_on_as_it_came() {
    for upstream in UPSTREAMS {
        let relay = relay(upstream);
        let (answer, _) = ask(&relay, method::TOOLS_CALL, legacy(json!({"name": "nope"}))).await;
        let error = answer.expect_err("unknown");
        assert_eq!(
            (error.code, error.message.as_str()),
            (-32602, "Unknown tool: nope"),
            "{upstream:?}"
        );
    }
}

#[tokio::test]
async fn what_is_not_handed_on_is_no_method() {
    let relay = relay(DialectChoice::Modern);
    for name in ["sampling/createMessage", "subscriptions/listen", "x", ""] {
        let (answer, _) = ask(&relay, name, Map::new()).await;
        assert_eq!(
            answer.expect_err("no method").code,
            METHOD_NOT_FOUND,
            "{name}"
        );
    }
    // Without metadata, `server/discover` is no method of that era.
    let (answer, _) = ask(&relay, method::DISCOVER, Map::new()).await;
    assert!(answer.is_err());
}

#[tokio::test]
async fn a_modern_request_has_to_be_whole() {
    let relay = relay(DialectChoice::Bare);
    let mut params = modern(json!({}));
    params["_meta"][meta_key::PROTOCOL_VERSION] = "2031-01-01".into();
    assert_eq!(
        ask(&relay, method::TOOLS_LIST, params)
            .await
            .0
            .expect_err("version")
            .code,
        -32022
    );
    let mut params = modern(json!({}));
    params["_meta"]
        .as_object_mut()
        .expect("object")
        .remove(meta_key::CLIENT_CAPABILITIES);
    assert_eq!(
        ask(&relay, method::TOOLS_LIST, params)
            .await
            .0
            .expect_err("capabilities")
            .code,
        -32602
    );
}

#[test]
fn a_wish_for_input_cannot_be_told_to_a_legacy_caller() {
    let wish = json!({"resultType": "input_required", "inputRequests": {}});
    assert_eq!(
        adapt(wish.clone(), method::TOOLS_CALL, true),
        Ok(wish.clone())
    );
    assert!(adapt(wish, method::TOOLS_CALL, false).is_err());
}

#[test]
fn a_failure_on_the_way_says_which_server_and_what() {
    let error = McpError::unreachable("no NATS server at nats://h:1").at(&"up".into());
    let refusal = to_refusal(error);
    assert!(
        refusal.message.contains("`up`") && refusal.message.contains("nats://h:1"),
        "{refusal}"
    );
    assert_eq!(refusal.data, Some(json!({"reason": "unreachable"})));
}

/// A legacy server with resources: it tells of a change of its list, and never answers a subscription to
/// `slow`.
struct Resources;

#[async_trait]
impl Responder for Resources {
    async fn respond(
        &self,
        name: &str,
        params: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        Ok(match name {
            method::INITIALIZE => json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"resources": {"subscribe": true}},
                "serverInfo": {"name": "r", "version": "1"},
            }),
            "resources/subscribe" if params["uri"] == "slow" => {
                caller.notify(method::RESOURCE_UPDATED, json!({"uri": "slow"}));
                std::future::pending().await
            }
            "resources/subscribe" if params["uri"] == "not now" => {
                return Err(JsonRpcError::new(INTERNAL_ERROR, "not now"));
            }
            _ => json!({}),
        })
    }
}

fn with_resources() -> Relay {
    let transport = MemoryTransport::new(Arc::new(Resources)).with_dialect(DialectChoice::Legacy);
    let server = McpServer::transport(transport).name("up");
    let client = McpClient::new(server, SystemEnv::shared()).expect("a client");
    Relay::new(client, Arc::new(Callers::new(SystemEnv::shared())))
}

#[tokio::test]
async fn who_could_not_be_told_cannot_subscribe_and_leaves_nothing_behind() {
    let relay = with_resources();
    for told in [false, true] {
        let mut caller = Caller::new(CancelToken::new(), |_| {});
        caller.at_gateway.key = "one".into();
        caller.at_gateway.told = told;
        let params = legacy(json!({"uri": "a"}));
        let answer = relay.respond("resources/subscribe", params, caller).await;
        assert_eq!(answer.is_ok(), told, "{answer:?}");
        assert_eq!(relay.callers.subscribed().len(), usize::from(told));
        if let Err(error) = answer {
            assert!(error.message.contains("session"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_subscription_that_fails_leaves_the_one_before_it() {
    let relay = with_resources();
    let has = |key: &str| relay.callers.is_subscribed(key, "not now");
    relay
        .callers
        .subscribe(&"one".into(), "not now")
        .expect("room");
    for key in ["one", "two"] {
        let mut caller = Caller::new(CancelToken::new(), |_| {});
        caller.at_gateway.key = key.into();
        caller.at_gateway.told = true;
        let params = legacy(json!({"uri": "not now"}));
        let answer = relay.respond("resources/subscribe", params, caller).await;
        assert_eq!(answer.expect_err("refused").message, "not now");
    }
    assert!(has("one") && !has("two"));
}

#[tokio::test]
async fn changes_are_told_while_subscriptions_are_made_again() {
    let Relay { client, callers } = with_resources();
    for uri in ["slow", "a"] {
        callers.subscribe(&"one".into(), uri).expect("room");
    }
    let mut changes = callers.changes();
    let watching = Relay::watch(client.clone(), Arc::clone(&callers));
    let hearing = async {
        client.facts(&CancelToken::new()).await.expect("connected");
        loop {
            let told = changes.next().await;
            if told.iter().any(|change| matches!(change, Incoming::Notification { method: name, .. } if name == method::RESOURCE_UPDATED)) {
                return;
            }
        }
    };
    tokio::select! {
        // It listens before there is anything to hear.
        biased;
        () = watching => panic!("it ended"),
        () = hearing => {}
        () = tokio::time::sleep(std::time::Duration::from_secs(100)) => panic!("nothing was told"),
    }
}
