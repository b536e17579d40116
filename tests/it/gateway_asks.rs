//! What a server behind a gateway asks of its client, and tells of its lists, reaches the callers that can
//! answer and want to hear: through real processes, pipes and sockets, in both eras (M-9, M-10).

use super::mcp_faults::process;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use yiem::{Content, SystemEnv, async_trait};
use yiem_mcp::{
    CallOptions, DialectChoice, Elicit, Elicitation, ElicitationAnswer, ElicitationKind, Gateway,
    GatewayHttpConfig, JsonRpcError, McpClient, McpEvent, McpServer, Root, Sample,
};
use yiem_test::server::{Act, FakeHttpServer, FakeMcpServer};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(100), work)
        .await
        .expect("nothing waits for ever")
}

/// A person who accepts with a name, and remembers what was asked.
#[derive(Default)]
struct Person(Mutex<Vec<Elicitation>>);

#[async_trait]
impl Elicit for Person {
    async fn elicit(&self, question: Elicitation) -> ElicitationAnswer {
        self.0.lock().unwrap().push(question);
        ElicitationAnswer::Accept(Map::from_iter([("name".to_owned(), "Ada".into())]))
    }
}

struct Model;

#[async_trait]
impl Sample for Model {
    async fn sample(&self, _: &str, params: Value) -> Result<Value, JsonRpcError> {
        Ok(
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": params["messages"]}}),
        )
    }
}

/// A legacy server whose tools ask for each thing that a server can ask for.
fn asking() -> FakeMcpServer {
    let ask = |method: &str, params: Value| [Act::Ask(json!({"method": method, "params": params}))];
    ["form", "visit", "model", "roots", "odd", "change", "slow"]
        .into_iter()
        .fold(FakeMcpServer::legacy(), FakeMcpServer::tool)
        .on(
            "tools/call:form",
            ask(
                "elicitation/create",
                json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}),
            ),
        )
        .on(
            "tools/call:visit",
            ask(
                "elicitation/create",
                json!({"mode": "url", "message": "Go", "url": "https://h.example/x", "elicitationId": "e1"}),
            ),
        )
        .on("tools/call:model", ask("sampling/createMessage", json!({"messages": ["hello"]})))
        .on("tools/call:roots", ask("roots/list", json!({})))
        .on("tools/call:odd", ask("no/such", json!({})))
        .on(
            "tools/call:change",
            [
                Act::raw(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
                Act::raw(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"r:1"}}"#),
                Act::raw(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"r:2"}}"#),
                Act::text("changed"),
            ],
        )
        .on("tools/call:slow", [Act::Hang])
        .on("resources/subscribe", [Act::Reply(json!({}))])
        .on("resources/unsubscribe", [Act::Reply(json!({}))])
}

/// The gateway as a process of its own, spoken to over its standard input and output.
fn over_stdio(script: &FakeMcpServer) -> McpServer {
    McpServer::stdio(
        env!("CARGO_BIN_EXE_mcp-gateway"),
        [
            "--stdio".to_owned(),
            "--".to_owned(),
            env!("CARGO_BIN_EXE_fake-mcp-server").to_owned(),
            script.to_json(),
        ],
    )
}

async fn over_http(server: McpServer) -> (Gateway, String) {
    let gateway = Gateway::builder(SystemEnv::shared())
        .server(server)
        .http(GatewayHttpConfig::new("127.0.0.1:0".parse().unwrap()))
        .start();
    let gateway = within(gateway).await.unwrap();
    let url = format!("http://{}/mcp", gateway.http_addresses()[0]);
    (gateway, url)
}

fn able(server: McpServer, dialect: DialectChoice, person: &Arc<Person>) -> McpClient {
    let server = server
        .name("gate")
        .dialect(dialect)
        .elicit(Arc::clone(person) as _)
        .sample(Arc::new(Model))
        .roots([Root {
            uri: "file:///work".into(),
            name: None,
        }]);
    McpClient::new(server, SystemEnv::shared()).unwrap()
}

fn unable(server: McpServer, dialect: DialectChoice) -> McpClient {
    McpClient::new(server.name("gate").dialect(dialect), SystemEnv::shared()).unwrap()
}

async fn call(client: &McpClient, tool: &str) -> Value {
    let outcome = within(client.call(tool, json!({}), CallOptions::default()))
        .await
        .unwrap();
    let text: String = outcome.content.iter().map(Content::to_plain_text).collect();
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

const ERAS: [DialectChoice; 2] = [DialectChoice::Legacy, DialectChoice::Modern];

async fn every_question_reaches(client: &McpClient, person: &Person) {
    let form = call(client, "form").await;
    assert_eq!(
        form["result"],
        json!({"action": "accept", "content": {"name": "Ada"}}),
        "{form}"
    );
    let visit = call(client, "visit").await;
    assert_eq!(visit["result"]["action"], "accept", "{visit}");
    let sampled = call(client, "model").await;
    assert_eq!(
        sampled["result"]["content"]["text"],
        json!(["hello"]),
        "{sampled}"
    );
    let roots = call(client, "roots").await;
    assert_eq!(
        roots["result"],
        json!({"roots": [{"uri": "file:///work"}]}),
        "{roots}"
    );
    let odd = call(client, "odd").await;
    assert_eq!(odd["error"]["code"], -32601, "{odd}");
    let asked = std::mem::take(&mut *person.0.lock().unwrap());
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].message, "Who?");
    assert!(
        matches!(&asked[1].kind, ElicitationKind::Url { url, id } if url == "https://h.example/x" && id.as_deref() == Some("e1")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn over_pipes_a_caller_of_either_era_is_asked() {
    for era in ERAS {
        let person = Arc::new(Person::default());
        let client = able(over_stdio(&asking()), era, &person);
        every_question_reaches(&client, &person).await;
        client.close().await;
    }
}

#[tokio::test]
async fn over_http_a_caller_of_either_era_is_asked() {
    let (_gateway, url) = over_http(process(&asking())).await;
    for era in ERAS {
        let person = Arc::new(Person::default());
        let client = able(McpServer::http(&url), era, &person);
        every_question_reaches(&client, &person).await;
        // Many times, and after others have come and gone.
        every_question_reaches(&client, &person).await;
        client.close().await;
    }
}

#[tokio::test]
async fn through_two_gateways_questions_find_their_way_in_every_mix_of_eras() {
    let (_inner, inner) = over_http(process(&asking())).await;
    for between in ERAS {
        let (_outer, outer) = over_http(McpServer::http(&inner).dialect(between)).await;
        for era in ERAS {
            let person = Arc::new(Person::default());
            let client = able(McpServer::http(&outer), era, &person);
            every_question_reaches(&client, &person).await;
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_caller_that_cannot_be_asked_gets_what_the_gateway_answers_for_it() {
    let (_gateway, url) = over_http(process(&asking())).await;
    for era in ERAS {
        let client = unable(McpServer::http(&url), era);
        assert_eq!(
            call(&client, "form").await["result"],
            json!({"action": "decline"})
        );
        assert_eq!(call(&client, "model").await["error"]["code"], -32601);
        assert_eq!(call(&client, "roots").await["error"]["code"], -32601);
    }
    // Who stands behind the gateway may be asked in its place.
    let person = Arc::new(Person::default());
    let server = process(&asking()).elicit(Arc::clone(&person) as _);
    let (_gateway, url) = over_http(server).await;
    let client = unable(McpServer::http(&url), DialectChoice::Modern);
    assert_eq!(call(&client, "form").await["result"]["action"], "accept");
    assert_eq!(person.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_question_that_could_be_for_several_callers_is_put_to_none() {
    let (gateway, url) = over_http(process(&asking())).await;
    let (one, two) = (Arc::new(Person::default()), Arc::new(Person::default()));
    let busy = able(McpServer::http(&url), DialectChoice::Legacy, &one);
    let asks = able(McpServer::http(&url), DialectChoice::Legacy, &two);
    let waiting = busy.call("slow", json!({}), CallOptions::default());
    let asking = async {
        while gateway.running_calls() == 0 {
            tokio::task::yield_now().await;
        }
        call(&asks, "form").await
    };
    let asking = within(asking);
    tokio::select! {
        answer = asking => assert_eq!(answer["result"], json!({"action": "decline"})),
        answer = waiting => panic!("it never ends: {answer:?}"),
    }
    assert!(one.0.lock().unwrap().is_empty() && two.0.lock().unwrap().is_empty());
}

/// Ends when the client was told that its tools changed.
async fn told_of_tools(
    client: &McpClient,
    events: &mut tokio::sync::broadcast::Receiver<McpEvent>,
) {
    within(async { while !matches!(events.recv().await, Ok(McpEvent::ToolsChanged)) {} }).await;
    assert!(client.generation() > 0);
}

#[tokio::test]
async fn changed_lists_are_told_to_callers_of_both_eras_on_all_their_ways() {
    let (_gateway, url) = over_http(process(&asking())).await;
    for era in ERAS {
        for server in [McpServer::http(&url), over_stdio(&asking())] {
            let client = unable(server, era);
            within(client.connect()).await.unwrap();
            let facts = client.server_facts().unwrap();
            assert!(facts.tells_changes_of("tools"), "{era:?}: {facts:?}");
            let mut events = client.events();
            // A listening caller may not have been there for the first change.
            let changing = async {
                loop {
                    assert_eq!(call(&client, "change").await, "changed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            tokio::select! {
                () = told_of_tools(&client, &mut events) => {}
                () = changing => {}
            }
            client.close().await;
        }
    }
}

#[tokio::test]
async fn only_who_subscribed_to_a_resource_is_told_of_it() {
    let (_gateway, url) = over_http(process(&asking())).await;
    let http = reqwest::Client::builder()
        .tls_backend_preconfigured(yiem_tls::client_config())
        .build()
        .unwrap();
    let post = |session: Option<String>, body: Value| {
        let mut request = http
            .post(&url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body.to_string());
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        async move { within(request.send()).await.unwrap() }
    };
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}});
    let mut listening = Vec::new();
    for uri in [Some("r:1"), None] {
        let opened = post(None, open.clone()).await;
        let session = opened.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let body: Value = serde_json::from_slice(&within(opened.bytes()).await.unwrap()).unwrap();
        assert_eq!(
            body["result"]["capabilities"]["resources"]["subscribe"], true,
            "{body}"
        );
        if let Some(uri) = uri {
            let subscribe = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}});
            let answer = post(Some(session.clone()), subscribe).await;
            let answer = within(answer.text()).await.unwrap();
            assert!(answer.contains(r#""result":{}"#), "{answer}");
        }
        let stream = http
            .get(&url)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &session)
            .send();
        let stream = within(stream).await.unwrap();
        assert_eq!(stream.status().as_u16(), 200);
        listening.push((session, stream));
    }
    let session = listening[0].0.clone();
    let change = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "change", "arguments": {}}});
    let _ = within(post(Some(session), change).await.bytes()).await;
    for ((session, mut stream), subscribed) in listening.into_iter().zip([true, false]) {
        let ended = http.delete(&url).header("mcp-session-id", session).send();
        assert_eq!(within(ended).await.unwrap().status().as_u16(), 200);
        // The end of the session is the end of its stream.
        let mut heard = String::new();
        while let Some(piece) = within(stream.chunk()).await.unwrap() {
            heard.push_str(&String::from_utf8_lossy(&piece));
        }
        assert!(
            heard.contains("notifications/tools/list_changed"),
            "{heard}"
        );
        assert_eq!(heard.contains("r:1"), subscribed, "{heard}");
        assert!(!heard.contains("r:2"), "{heard}");
    }
}

#[tokio::test]
async fn a_modern_servers_wishes_go_to_the_caller_as_they_came_or_are_asked_of_it() {
    let wish = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object"}}}},"requestState":"s1"}}"#;
    let script = FakeMcpServer::modern()
        .tool("t")
        .once("tools/call", [Act::raw(wish)])
        .once("tools/call", [Act::text("first")])
        .once("tools/call", [Act::raw(wish)])
        .once("tools/call", [Act::text("second")]);
    let server = FakeHttpServer::start(script).await;
    let (_gateway, url) = over_http(McpServer::http(server.url())).await;
    for (era, answer) in [
        (DialectChoice::Legacy, "first"),
        (DialectChoice::Modern, "second"),
    ] {
        let person = Arc::new(Person::default());
        let client = able(McpServer::http(&url), era, &person);
        assert_eq!(call(&client, "t").await, answer, "{era:?}");
        assert_eq!(person.0.lock().unwrap().len(), 1);
    }
    let requests = server.requests();
    let calls: Vec<&Value> = requests
        .iter()
        .map(|request| &request["body"])
        .filter(|body| body["method"] == "tools/call")
        .collect();
    assert_eq!(calls.len(), 4);
    for pair in calls.chunks(2) {
        // The server learns what the caller behind the gateway can do.
        let able = &pair[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert!(
            able.get("elicitation").is_some() && able.get("roots").is_some(),
            "{able}"
        );
        assert_eq!(pair[1]["params"]["requestState"], "s1");
        assert_eq!(
            pair[1]["params"]["inputResponses"]["who"],
            json!({"action": "accept", "content": {"name": "Ada"}})
        );
        assert_ne!(pair[0]["id"], pair[1]["id"]);
    }
}
