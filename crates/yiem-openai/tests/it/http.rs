//! The HTTP model: what it sends, how it waits, how it fails, and that no key is ever shown.

use std::sync::Arc;
use std::time::Duration;

use yiem_core::{
    AssistantMessage, ChatModel, ChatModelExt, ChatRequest, History, Message, ModelError,
    ModelErrorKind, SystemEnv, Timestamp,
};
use yiem_openai::{OpenAiConfig, OpenAiModel, ReadLimits, Timeouts};
use yiem_test::ManualEnv;

use crate::server::{Answer, Reply, Server};

const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":null}]}\n\n";
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

const CANARY: &str = "sk-canary-5e1f";

fn config(server: &Server) -> OpenAiConfig {
    OpenAiModel::builder()
        .base_url(server.base_url())
        .model("m")
        .no_proxy()
}

fn request() -> ChatRequest {
    ChatRequest::new(History::from_iter([Message::user(
        "Hi",
        Timestamp::default(),
    )]))
}

async fn ask(model: &OpenAiModel) -> Result<AssistantMessage, ModelError> {
    in_time(model.complete(request())).await
}

/// Bounds what hangs; what works needs far less.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("an end in time")
}

async fn answered(answer: Answer) -> Result<AssistantMessage, ModelError> {
    let server = Server::start(vec![answer]).await;
    ask(&config(&server).build().expect("a model")).await
}

#[tokio::test]
async fn a_streamed_answer_is_assembled_and_the_request_is_as_told() {
    let server = Server::start(vec![Answer::Whole(Reply::ok(&[HELLO, END, DONE]))]).await;
    let model = config(&server)
        .api_key(CANARY)
        .header("x-team", "blue")
        .build()
        .expect("a model");
    let message = ask(&model).await.expect("an answer");
    assert_eq!(message.text(), "Hello");
    let asked = server.asked().remove(0);
    let head = asked.head.to_lowercase();
    assert!(head.starts_with("post /v1/chat/completions "), "{head}");
    assert!(
        head.contains(&format!("authorization: bearer {CANARY}")),
        "{head}"
    );
    assert!(head.contains("x-team: blue") && head.contains("content-type: application/json"));
    assert_eq!(asked.body["model"], "m");
    assert_eq!(asked.body["stream"], true);
    assert_eq!(asked.body["messages"][0]["content"], "Hi");
}

#[tokio::test]
async fn without_a_key_no_authorization_is_sent() {
    let server = Server::start(vec![Answer::Whole(Reply::ok(&[HELLO, END, DONE]))]).await;
    ask(&config(&server).build().expect("a model"))
        .await
        .expect("an answer");
    assert!(
        !server.asked()[0]
            .head
            .to_lowercase()
            .contains("authorization")
    );
}

#[tokio::test]
async fn the_key_of_a_closure_is_asked_for_each_time() {
    let reply = || Answer::Whole(Reply::ok(&[HELLO, END, DONE]));
    let server = Server::start(vec![reply(), reply()]).await;
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let model = config(&server)
        .api_key_fn(move || {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async move { Ok::<_, std::io::Error>(format!("key-{n}")) }
        })
        .build()
        .expect("a model");
    ask(&model).await.expect("an answer");
    ask(&model).await.expect("an answer");
    let heads: Vec<String> = server.asked().into_iter().map(|asked| asked.head).collect();
    assert!(heads[0].contains("Bearer key-0") && heads[1].contains("Bearer key-1"));
}

#[tokio::test]
async fn the_key_of_a_variable_is_read_for_each_request() {
    let server = Server::start(vec![Answer::Whole(Reply::ok(&[HELLO, END, DONE]))]).await;
    // Cargo sets this one for every test.
    let model = config(&server).api_key_env("CARGO_PKG_NAME").build();
    ask(&model.expect("a model")).await.expect("an answer");
    assert!(server.asked()[0].head.contains("Bearer yiem-openai"));
    let model = config(&server).api_key_env("YIEM_NO_SUCH_VARIABLE").build();
    let error = ask(&model.expect("a model")).await.expect_err("no key");
    assert_eq!(error.kind, ModelErrorKind::Config);
    assert!(error.message.contains("YIEM_NO_SUCH_VARIABLE"), "{error}");
    assert_eq!(server.asked().len(), 1, "nothing was sent without a key");
}

#[tokio::test]
async fn user_and_password_of_the_address_are_sent_unless_there_is_a_key() {
    let reply = || Answer::Whole(Reply::ok(&[HELLO, END, DONE]));
    let server = Server::start(vec![reply(), reply()]).await;
    let address = format!("http://user:word@{}/v1", server.address);
    let config = || OpenAiModel::builder().base_url(&address).no_proxy();
    for model in [config().build(), config().api_key("k").build()] {
        ask(&model.expect("a model")).await.expect("an answer");
    }
    let heads: Vec<String> = server.asked().into_iter().map(|asked| asked.head).collect();
    assert!(heads[0].contains("Basic dXNlcjp3b3Jk"), "{}", heads[0]);
    assert!(heads[1].contains("Bearer k") && !heads[1].contains("Basic"));
    assert!(!heads.concat().contains("word@"), "{heads:?}");
}

#[tokio::test]
async fn a_closure_that_gives_no_key_is_an_error_with_its_cause() {
    let server = Server::start(Vec::new()).await;
    let model = config(&server)
        .api_key_fn(|| async { Err::<String, _>(std::io::Error::other("the vault is closed")) })
        .build()
        .expect("a model");
    let error = ask(&model).await.expect_err("no key");
    assert_eq!(error.kind, ModelErrorKind::Auth);
    let cause = std::error::Error::source(&error).expect("a cause");
    assert!(cause.to_string().contains("vault"), "{cause}");
}

/// A proxy is asked for the whole address; the server itself is not.
#[tokio::test]
async fn requests_go_through_the_proxy() {
    let proxy = Server::start(vec![Answer::Whole(Reply::ok(&[HELLO, END, DONE]))]).await;
    let model = OpenAiModel::builder()
        .base_url("http://127.0.0.1:9/v1")
        .proxy(format!("http://{}", proxy.address))
        .build()
        .expect("a model");
    let message = ask(&model).await.expect("an answer of the proxy");
    assert_eq!(message.text(), "Hello");
    let head = proxy.asked().remove(0).head;
    assert!(
        head.starts_with("POST http://127.0.0.1:9/v1/chat/completions "),
        "{head}"
    );
}

#[tokio::test]
async fn what_retry_after_said_is_told_in_all_its_forms() {
    let ahead = SystemEnv::shared().now().as_millis() / 1_000 + 90;
    let date = time::OffsetDateTime::from_unix_timestamp(ahead).expect("a time");
    let form = time::macros::format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let date = date.format(form).expect("a date");
    for (name, value, least, most) in [
        ("Retry-After", "7", 7_000, 7_000),
        ("retry-after-ms", "1500", 1_500, 1_500),
        ("retry-after", date.as_str(), 60_000, 90_000),
    ] {
        let reply = Reply {
            headers: vec![(name.to_owned(), value.to_owned())],
            ..Reply::error(429, "{\"error\":\"slow down\"}")
        };
        let error = answered(Answer::Whole(reply)).await.expect_err("a refusal");
        assert_eq!(error.kind, ModelErrorKind::RateLimit);
        let wait = error.retry_after.expect("a wait").as_millis();
        assert!((least..=most).contains(&wait), "{name}: {value}: {wait}");
    }
}

/// The bounds of `ReadLimits`, as the HTTP model is given them.
#[tokio::test]
async fn a_reply_beyond_the_given_limits_is_refused() {
    let limits = ReadLimits {
        reply_bytes: 2_000,
        event_bytes: 1_000,
        calls: 2,
    };
    let long = format!("data: {}\n\n", "x".repeat(1_500));
    let body = format!("{{\"a\": \"{}\"}}", "x".repeat(3_000));
    let call = "{\"id\":\"\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}";
    let calls =
        format!("{{\"choices\":[{{\"message\":{{\"tool_calls\":[{call},{call},{call}]}}}}]}}");
    for text in [long.as_str(), body.as_str(), calls.as_str()] {
        let server = Server::start(vec![Answer::Whole(Reply::ok(&[text]))]).await;
        let model = config(&server).limits(limits).build().expect("a model");
        let error = ask(&model).await.expect_err("too much");
        assert_eq!(error.kind, ModelErrorKind::Malformed, "{error}");
        assert!(!error.is_retryable(), "{error}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let reply = || Answer::Whole(Reply::ok(&[HELLO, END, DONE]));
    let server = Server::start(vec![reply(), reply(), reply()]).await;
    // No time passes, so that the end of each body is waited for.
    let model = config(&server).env(ManualEnv::new().shared()).build();
    let model = model.expect("a model");
    for _ in 0..3 {
        ask(&model).await.expect("an answer");
    }
    assert!(server.asked().iter().all(|asked| asked.connection == 0));
}

#[tokio::test]
async fn an_answer_is_whole_at_done_though_the_body_stays_open() {
    let message = answered(Answer::Open(Reply::ok(&[HELLO, END, DONE])))
        .await
        .expect("an answer");
    assert_eq!(message.text(), "Hello");
}

#[tokio::test]
async fn a_broken_connection_is_retryable_and_the_text_until_then_is_there() {
    let server = Server::start(vec![Answer::Broken(Reply::ok(&[HELLO]))]).await;
    let mut stream = config(&server).build().expect("a model").stream(request());
    let mut text = String::new();
    let error = loop {
        match stream.next().await.expect("an end") {
            Ok(yiem_core::ChatEvent::Text(piece)) => text.push_str(&piece),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(text, "Hello");
    assert_eq!(error.kind, ModelErrorKind::TruncatedStream);
    assert!(error.is_retryable());
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_connection_that_breaks_behind_the_finish_does_no_harm() {
    let message = answered(Answer::Broken(Reply::ok(&[HELLO, END])))
        .await
        .expect("an answer");
    assert_eq!(message.text(), "Hello");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_connection_error_that_says_what_to_do() {
    let address = Server::start(Vec::new()).await.base_url();
    let model = OpenAiModel::builder()
        .base_url(&address)
        .no_proxy()
        .build()
        .expect("a model");
    let error = ask(&model).await.expect_err("nobody listens");
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(error.is_retryable());
    assert!(
        error.message.contains(&address) && error.message.contains("check"),
        "{error}"
    );
    let error = answered(Answer::Closed).await.expect_err("closed at once");
    assert_eq!(error.kind, ModelErrorKind::Connection);
}

/// A listener that accepts nothing and whose queue is full: the system lets no one in any more.
/// The connections that fill it come along.
fn full_house() -> (tokio::net::TcpListener, Vec<std::net::TcpStream>) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut inside = Vec::new();
    let mut refused = 0;
    // One may be late on a busy machine; three in a row are not.
    while refused < 3 {
        match std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            Ok(stream) => {
                inside.push(stream);
                refused = 0;
            }
            Err(_) => refused += 1,
        }
    }
    (listener, inside)
}

#[tokio::test]
async fn a_server_that_lets_no_one_in_is_a_timeout_of_the_connection() {
    let (listener, _inside) = full_house();
    let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let model = OpenAiModel::builder()
        .base_url(&address)
        .timeouts(Timeouts {
            connect: Duration::from_millis(50),
            ..Timeouts::default()
        })
        .no_proxy()
        .build()
        .expect("a model");
    let error = ask(&model).await.expect_err("no connection");
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    assert!(error.is_retryable());
    assert!(
        error.message.contains(&address) && error.message.contains("connection in time"),
        "{error}"
    );
}

fn short() -> Timeouts {
    Timeouts {
        first_event: Duration::from_millis(150),
        between_events: Duration::from_millis(150),
        ..Timeouts::default()
    }
}

#[tokio::test]
async fn waits_are_bounded_and_comments_do_not_count() {
    for (answer, word) in [
        (Answer::Silence, "did not answer"),
        (Answer::Open(Reply::ok(&[HELLO])), "no event"),
        (Answer::Comments, "began no answer"),
    ] {
        let env = ManualEnv::new();
        let server = Server::start(vec![answer.clone()]).await;
        let model = config(&server).env(env.shared()).timeouts(short()).build();
        let mut stream = model.expect("a model").stream(request());
        let reading = async {
            loop {
                match stream.next().await.expect("an end") {
                    Ok(yiem_core::ChatEvent::Text(_)) => env.advance(short().between_events),
                    Ok(_) => {}
                    Err(error) => break error,
                }
            }
        };
        // Time passes once the server was asked, or a little with each of its comments.
        let clock = async {
            while server.asked().is_empty() {
                tokio::task::yield_now().await;
            }
            if matches!(answer, Answer::Silence) {
                env.advance(short().first_event);
            }
            let mut heard = 0;
            loop {
                tokio::task::yield_now().await;
                while heard < server.comments() {
                    env.advance(Duration::from_millis(1));
                    heard += 1;
                }
            }
        };
        let error = tokio::select! {
            error = in_time(reading) => error,
            () = clock => unreachable!("the clock goes on for ever"),
        };
        assert_eq!(error.kind, ModelErrorKind::Timeout, "{answer:?}: {error}");
        assert!(
            error.is_retryable() && error.message.contains(word),
            "{error}"
        );
    }
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    let server = Server::start(vec![Answer::Open(Reply::ok(&[HELLO]))]).await;
    let mut stream = config(&server).build().expect("a model").stream(request());
    while let Some(event) = stream.next().await {
        if matches!(event, Ok(yiem_core::ChatEvent::Text(_))) {
            break;
        }
    }
    assert_eq!(server.closed(), 0);
    drop(stream);
    let closed = async {
        while server.closed() == 0 {
            tokio::task::yield_now().await;
        }
    };
    in_time(closed).await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let reply = Reply {
        headers: vec![("location".to_owned(), "http://127.0.0.1:1/".to_owned())],
        ..Reply::error(307, "")
    };
    let error = answered(Answer::Whole(reply))
        .await
        .expect_err("a redirect");
    assert_eq!(
        (error.kind, error.status),
        (ModelErrorKind::InvalidRequest, Some(307))
    );
}

#[tokio::test]
async fn an_unreadable_setting_is_an_error_of_build() {
    for config in [
        OpenAiModel::builder().base_url("localhost:8080/v1"),
        OpenAiModel::builder().base_url("not an address"),
        OpenAiModel::builder().header("bad name", "x"),
        OpenAiModel::builder().header("x-a", "line\nbreak"),
        OpenAiModel::builder().proxy("::::"),
        OpenAiModel::builder().api_key("line\nbreak"),
    ] {
        let error = config.build().expect_err("no model");
        assert_eq!(error.kind, ModelErrorKind::Config, "{error}");
    }
}

/// Everything that could be printed of a model and of its failures.
#[tokio::test]
async fn no_output_shows_a_key() {
    // As servers quote them.
    const OTHER: &str = "canary-of-a-header";
    const THIRD: &str = "canary-of-the-address";
    let secret_url = |server: &Server| {
        let address = server.address;
        format!("http://user:{CANARY}@{address}/v1?k={CANARY}&api_key={THIRD}")
    };
    let mut shown = String::new();
    for answer in [
        Answer::Whole(Reply::error(
            401,
            "{\"error\":{\"message\":\"Incorrect API key provided.\"}}",
        )),
        Answer::Whole(Reply::error(500, "oops")),
        Answer::Whole(Reply::error(
            400,
            &format!("{{\"error\":\"no model for {OTHER} at ?api_key={THIRD}\"}}"),
        )),
        Answer::Whole(Reply::ok(&[&format!(
            "data: {{\"error\":{{\"message\":\"x-api-key {OTHER} is unknown, {CANARY} too\"}}}}\n\n"
        )])),
        Answer::Broken(Reply::ok(&[HELLO])),
        Answer::Closed,
        Answer::Silence,
    ] {
        let timeouts = match answer {
            Answer::Silence => short(),
            _ => Timeouts::default(),
        };
        let server = Server::start(vec![answer]).await;
        let config = OpenAiModel::builder()
            .base_url(secret_url(&server))
            .api_key(CANARY)
            .header("x-api-key", OTHER)
            .timeouts(timeouts)
            .no_proxy();
        shown.push_str(&format!("{config:?}"));
        let model = config.build().expect("a model");
        shown.push_str(&format!("{model:?} {:?}", model.info()));
        let error = ask(&model).await.expect_err("a failure");
        shown.push_str(&format!("{error} {error:?} {error:#?}"));
        let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
        while let Some(inner) = cause {
            shown.push_str(&format!("{inner} {inner:?}"));
            cause = inner.source();
        }
    }
    for config in [
        OpenAiModel::builder().base_url(format!("nonsense://{CANARY}@host")),
        OpenAiModel::builder().proxy(format!("::{CANARY}::")),
        OpenAiModel::builder()
            .api_key(format!("{CANARY}\nx"))
            .header("x-a", format!("{CANARY}\nx")),
    ] {
        shown.push_str(&format!("{config:?}"));
        let error = config.build().expect_err("no model");
        shown.push_str(&format!("{error} {error:?}"));
    }
    assert!(!shown.contains("canary"), "{shown}");
}
