//! A question of a legacy server lasts no longer than somebody wants its answer: the server takes it back, its
//! call ends, its connection goes. Raw bytes over real pipes and sockets (M-9).

use super::mcp_faults::process;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use yiem::{CancelToken, Env, SystemEnv, async_trait};
use yiem_mcp::{
    CallOptions, DialectChoice, Elicit, Elicitation, ElicitationAnswer, Gateway, GatewayHttpConfig,
    McpClient, McpError, McpErrorKind, McpServer,
};
use yiem_test::ManualEnv;
use yiem_test::server::{Act, FakeMcpServer};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(100), work)
        .await
        .expect("nothing waits for ever")
}

/// What happens to a person who never answers.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Asked(String),
    LeftAlone(String),
}

/// A person who never answers, and tells what is put before them and taken away.
struct Silent(mpsc::UnboundedSender<Seen>);

struct Shown<'a>(&'a Silent, String);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let _ = self.0.0.send(Seen::LeftAlone(self.1.clone()));
    }
}

#[async_trait]
impl Elicit for Silent {
    async fn elicit(&self, question: Elicitation) -> ElicitationAnswer {
        let _ = self.0.send(Seen::Asked(question.message.clone()));
        let _shown = Shown(self, question.message);
        std::future::pending().await
    }
}

fn with_person(server: McpServer) -> (McpClient, mpsc::UnboundedReceiver<Seen>) {
    with_person_in(server, SystemEnv::shared())
}

fn with_person_in(
    server: McpServer,
    env: Arc<dyn Env>,
) -> (McpClient, mpsc::UnboundedReceiver<Seen>) {
    let (send, seen) = mpsc::unbounded_channel();
    let server = server.name("odd").elicit(Arc::new(Silent(send)));
    (McpClient::new(server, env).unwrap(), seen)
}

/// Makes a call that may take this long, which has passed as soon as the person is asked.
async fn capped(
    client: &McpClient,
    tool: &str,
    seen: &mut mpsc::UnboundedReceiver<Seen>,
    env: &ManualEnv,
) -> McpError {
    let cap = Duration::from_millis(300);
    let options = CallOptions::default().timeout(cap).hard_cap(cap);
    let clock = async {
        assert_eq!(within(seen.recv()).await, Some(asked()));
        env.advance(cap);
    };
    let (capped, ()) = tokio::join!(within(client.call(tool, json!({}), options)), clock);
    assert_eq!(within(seen.recv()).await, Some(left_alone()));
    capped.unwrap_err()
}

const ASK: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}"#;
const TAKE_BACK: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#;

/// A server that asks in the course of `ask`, which it never answers by itself.
fn asking() -> FakeMcpServer {
    ["ask", "back", "both", "end", "seen"]
        .into_iter()
        .fold(FakeMcpServer::legacy(), FakeMcpServer::tool)
        .on("tools/call:ask", [Act::raw(ASK), Act::Hang])
        .on(
            "tools/call:back",
            [Act::raw(TAKE_BACK), Act::text("taken back")],
        )
        .once("tools/call:both", [Act::raw(ASK), Act::Gather(2)])
        .on("tools/call:both", [Act::Gather(2)])
        .on("tools/call:end", [Act::Exit(3)])
        .on("tools/call:seen", [Act::Seen])
}

/// What the client sent so far, without the requests that ask for this.
async fn answers(client: &McpClient) -> Vec<Value> {
    let outcome = within(client.call("seen", json!({}), CallOptions::default())).await;
    let text = outcome.unwrap().content[0].as_text().unwrap().to_owned();
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    all.into_iter()
        .filter(|message| message["id"] == "q" && message.get("method").is_none())
        .collect()
}

fn asked() -> Seen {
    Seen::Asked("Who?".into())
}

fn left_alone() -> Seen {
    Seen::LeftAlone("Who?".into())
}

/// The other ways to that server, and how each is called.
async fn ways() -> Vec<(&'static str, McpServer, Option<Gateway>)> {
    let mut ways = vec![("pipe", process(&asking()), None)];
    let gateway = Gateway::builder(SystemEnv::shared())
        .server(process(&asking()))
        .http(GatewayHttpConfig::new("127.0.0.1:0".parse().unwrap()))
        .start();
    let gateway = within(gateway).await.unwrap();
    let url = format!("http://{}/mcp", gateway.http_addresses()[0]);
    let http = McpServer::http(url).dialect(DialectChoice::Legacy);
    ways.push(("gateway over HTTP", http, Some(gateway)));
    let words = [
        "--stdio".to_owned(),
        "--".to_owned(),
        env!("CARGO_BIN_EXE_fake-mcp-server").to_owned(),
        asking().to_json(),
    ];
    let pipes = McpServer::stdio(env!("CARGO_BIN_EXE_mcp-gateway"), words);
    let pipes = pipes.dialect(DialectChoice::Legacy);
    ways.push(("gateway over pipes", pipes, None));
    ways
}

#[tokio::test]
async fn a_question_that_the_server_takes_back_is_taken_from_the_person_and_not_answered() {
    for (way, server, _gateway) in ways().await {
        let (client, mut seen) = with_person(server);
        let cancel = CancelToken::new();
        let options = CallOptions::default().cancel(cancel.clone());
        let call = client.call("ask", json!({}), options);
        let taking_back = async {
            assert_eq!(within(seen.recv()).await, Some(asked()), "{way}");
            let back = client.call("back", json!({}), CallOptions::default());
            let back = within(back).await.unwrap();
            assert_eq!(back.content[0].as_text(), Some("taken back"), "{way}");
            assert_eq!(within(seen.recv()).await, Some(left_alone()), "{way}");
            assert_eq!(answers(&client).await, Vec::<Value>::new(), "{way}");
            cancel.cancel();
        };
        let (called, ()) = tokio::join!(within(call), taking_back);
        assert!(
            matches!(called.unwrap_err().kind(), McpErrorKind::Cancelled),
            "{way}: the call went on"
        );
        client.close().await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_takes_its_question_back_and_the_server_is_told() {
    for (way, server, _gateway) in ways().await {
        let (client, mut seen) = with_person(server);
        let cancel = CancelToken::new();
        let options = CallOptions::default().cancel(cancel.clone());
        let call = client.call("ask", json!({}), options);
        let giving_up = async {
            assert_eq!(within(seen.recv()).await, Some(asked()), "{way}");
            cancel.cancel();
        };
        let (called, ()) = tokio::join!(within(call), giving_up);
        let called = called.unwrap_err();
        assert!(matches!(called.kind(), McpErrorKind::Cancelled), "{way}");
        assert_eq!(within(seen.recv()).await, Some(left_alone()), "{way}");
        let told = within(async {
            loop {
                let answers = answers(&client).await;
                if !answers.is_empty() {
                    return answers;
                }
            }
        });
        let told = told.await;
        assert_eq!(told.len(), 1, "{way}: {told:?}");
        // A gateway says that nobody wants to; where a person was asked, that there is no answer.
        let action = told[0]["result"]["action"].as_str().unwrap();
        assert!(["cancel", "decline"].contains(&action), "{way}: {told:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_question_ends_before_the_call_that_was_answered_without_it() {
    for (way, server, _gateway) in ways().await {
        let (client, mut seen) = with_person(server);
        let first = client.call("both", json!({"text": "1"}), CallOptions::default());
        let second = async {
            assert_eq!(within(seen.recv()).await, Some(asked()), "{way}");
            let call = client.call("both", json!({"text": "2"}), CallOptions::default());
            within(call).await
        };
        let (first, second) = tokio::join!(within(first), second);
        let texts = [first.unwrap(), second.unwrap()].map(|outcome| outcome.content);
        assert_eq!(texts[0][0].as_text(), Some("1"), "{way}");
        assert_eq!(texts[1][0].as_text(), Some("2"), "{way}");
        if way == "pipe" {
            // Not later than the answers.
            assert_eq!(seen.try_recv(), Ok(left_alone()), "{way}");
        } else {
            assert_eq!(within(seen.recv()).await, Some(left_alone()), "{way}");
        }
        client.close().await;
    }
}

#[tokio::test]
async fn a_question_ends_with_the_hard_cap_of_its_call_and_with_its_connection() {
    let env = ManualEnv::new();
    let (client, mut seen) = with_person_in(process(&asking()), env.shared());
    let capped = capped(&client, "ask", &mut seen, &env).await;
    let kind = capped.kind();
    assert!(matches!(kind, McpErrorKind::TimedOut { .. }), "{capped}");

    let call = client.call("ask", json!({}), CallOptions::default());
    let dying = async {
        assert_eq!(within(seen.recv()).await, Some(asked()));
        let end = client.call("end", json!({}), CallOptions::default());
        within(end).await
    };
    let (call, end) = tokio::join!(within(call), dying);
    for error in [call.unwrap_err(), end.unwrap_err()] {
        assert!(matches!(error.kind(), McpErrorKind::Lost(_)), "{error}");
    }
    assert_eq!(within(seen.recv()).await, Some(left_alone()));
}

#[tokio::test]
async fn a_modern_servers_wish_ends_with_the_hard_cap_of_its_call() {
    let wish = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object"}}}}}}"#;
    let script = FakeMcpServer::modern()
        .tool("t")
        .on("tools/call", [Act::raw(wish)]);
    let env = ManualEnv::new();
    let (client, mut seen) = with_person_in(process(&script), env.shared());
    let error = capped(&client, "t", &mut seen, &env).await;
    let McpErrorKind::TimedOut { hard_cap: true, .. } = error.kind() else {
        panic!("{error}");
    };
}

/// A person who answers when told to.
struct Slow(tokio::sync::Mutex<mpsc::Receiver<()>>, mpsc::Sender<()>);

#[async_trait]
impl Elicit for Slow {
    async fn elicit(&self, _: Elicitation) -> ElicitationAnswer {
        let _ = self.1.send(()).await;
        let _ = self.0.lock().await.recv().await;
        ElicitationAnswer::Decline
    }
}

#[tokio::test]
async fn an_answer_that_took_a_person_a_minute_reaches_the_server_each_time() {
    let question = json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object"}}});
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on("tools/call", [Act::Ask(question)]);
    let env = ManualEnv::new();
    let (go, wait) = mpsc::channel(1);
    let (asked, mut is_asked) = mpsc::channel(1);
    let person = Slow(tokio::sync::Mutex::new(wait), asked);
    let server = process(&script).name("odd").elicit(Arc::new(person));
    let client = McpClient::new(server, Arc::new(env.clone())).unwrap();
    for _ in 0..12 {
        let call = client.call("t", json!({}), CallOptions::default());
        let person = async {
            within(is_asked.recv()).await.unwrap();
            env.advance(Duration::from_secs(61));
            go.send(()).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(within(call), person);
        let outcome = outcome.unwrap();
        let text = outcome.content[0].as_text().unwrap();
        assert!(text.contains("decline"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn questions_that_come_at_once_are_put_in_their_order() {
    let question = |number: usize| {
        Act::raw(format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"elicitation/create","params":{{"message":"{number}","requestedSchema":{{"type":"object"}}}}}}"#
        ))
    };
    let acts: Vec<Act> = (0..40).map(question).chain([Act::Hang]).collect();
    let script = FakeMcpServer::legacy().tool("t").on("tools/call", acts);
    let (client, mut seen) = with_person(process(&script));
    let call = client.call("t", json!({}), CallOptions::default());
    let asking = async {
        for number in 0..40 {
            let next = within(seen.recv()).await;
            assert_eq!(next, Some(Seen::Asked(number.to_string())));
        }
    };
    tokio::select! {
        called = call => panic!("it never ends: {called:?}"),
        () = asking => {}
    }
}
