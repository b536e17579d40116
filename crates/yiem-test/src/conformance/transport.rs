//! What every MCP transport keeps to (M-2), whatever carries its messages.
//!
//! Knows: the promises of `Transport`. Does not know: pipes, sockets, brokers.
//!
//! The server at the other end needs no handshake and has a tool `echo` that answers with the text of its
//! argument `text`. A transport runs it with one line: `transport::run(&my_transport).await`. It ends
//! with the transport closed.

use serde_json::{Map, json};
use std::time::Duration;
use tokio::time::timeout;
use yiem_mcp::jsonrpc::AnswerOutcome;
use yiem_mcp::{Dialect, Exchange, Inbox, McpError, Notice, RequestId, Transport};

/// How long any wait of the suite may take.
const DEADLINE: Duration = Duration::from_secs(100);
/// How many exchanges run at once.
const AT_ONCE: i64 = 32;

/// Runs the whole suite.
///
/// # Panics
/// The transport breaks a promise; the message says which.
pub async fn run(transport: &dyn Transport) {
    open(transport).await;
    an_exchange_ends_with_its_answer(transport, 1).await;
    many_exchanges_end_each_with_its_own(transport).await;
    an_exchange_may_be_dropped(transport).await;
    a_refusal_is_an_answer(transport).await;
    a_notification_is_taken(transport).await;
    it_can_be_closed_and_opened_again(transport).await;
}

async fn within<T>(promise: &str, work: impl Future<Output = T>) -> T {
    timeout(DEADLINE, work)
        .await
        .unwrap_or_else(|_| panic!("{promise}: it never ends"))
}

async fn open(transport: &dyn Transport) {
    let opened = within("opening ends", transport.open(Inbox::nowhere())).await;
    opened.unwrap_or_else(|error| panic!("it opens: {error}"));
}

fn echo(id: i64, text: &str) -> Exchange {
    let mut params = Map::new();
    params.insert("name".into(), "echo".into());
    params.insert("arguments".into(), json!({"text": text}));
    Exchange::new(
        RequestId::Number(id),
        "tools/call",
        params,
        Dialect::Bare,
        Inbox::nowhere(),
    )
}

async fn ask(transport: &dyn Transport, id: i64) -> Result<String, McpError> {
    let answer = transport.exchange(echo(id, &format!("text {id}"))).await?;
    match answer.outcome {
        AnswerOutcome::Result(result) => Ok(result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()),
        other => panic!("an echo is a result, not {other:?}"),
    }
}

async fn an_exchange_ends_with_its_answer(transport: &dyn Transport, id: i64) {
    let text = within("an exchange ends", ask(transport, id)).await;
    assert_eq!(
        text.unwrap_or_else(|error| panic!("an echo comes: {error}")),
        format!("text {id}")
    );
}

async fn many_exchanges_end_each_with_its_own(transport: &dyn Transport) {
    let asked = (100..100 + AT_ONCE).map(|id| async move {
        let text = ask(transport, id)
            .await
            .unwrap_or_else(|error| panic!("echo {id} comes: {error}"));
        assert_eq!(
            text,
            format!("text {id}"),
            "an exchange ends with its own answer"
        );
    });
    within("many at once end", futures_util::future::join_all(asked)).await;
}

async fn an_exchange_may_be_dropped(transport: &dyn Transport) {
    for id in 200..210 {
        let mut exchange = transport.exchange(echo(id, "dropped"));
        // Polled once, so that it is on its way.
        let _ = futures_util::poll!(&mut exchange);
        drop(exchange);
    }
    an_exchange_ends_with_its_answer(transport, 211).await;
}

async fn a_refusal_is_an_answer(transport: &dyn Transport) {
    let exchange = Exchange::new(
        RequestId::Number(300),
        "no/such/method",
        Map::new(),
        Dialect::Bare,
        Inbox::nowhere(),
    );
    let answer = within("a refusal comes", transport.exchange(exchange)).await;
    let answer =
        answer.unwrap_or_else(|error| panic!("a refusal is an answer and no failure: {error}"));
    assert!(
        matches!(answer.outcome, AnswerOutcome::Error(_)),
        "an unknown method is refused: {answer:?}"
    );
}

async fn a_notification_is_taken(transport: &dyn Transport) {
    let notice = Notice::new("notifications/cancelled", Map::new(), Dialect::Bare);
    let taken = within("a notification is taken", transport.notify(notice)).await;
    taken.unwrap_or_else(|error| panic!("a notification is taken: {error}"));
    an_exchange_ends_with_its_answer(transport, 400).await;
}

async fn it_can_be_closed_and_opened_again(transport: &dyn Transport) {
    within("closing ends", transport.close()).await;
    // What has no connection may answer still; what has one must not wait for it.
    let _ = within("an exchange after closing ends", ask(transport, 500)).await;
    open(transport).await;
    an_exchange_ends_with_its_answer(transport, 501).await;
    within("closing ends", transport.close()).await;
    within("closing twice ends", transport.close()).await;
}
