use super::*;
use crate::content::AssistantContent;
use crate::env::{BoxFuture, IdKind, Timestamp};
use crate::message::StopReason;
use crate::usage::Usage;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// An environment whose sleeps end at once and are written down.
#[derive(Debug, Default)]
struct Waits(Mutex<Vec<Duration>>);

impl Env for Waits {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().push(duration);
        Box::pin(std::future::ready(()))
    }
    fn new_id(&self, kind: IdKind) -> String {
        kind.prefix().to_owned()
    }
    fn random(&self) -> f64 {
        1.0
    }
}

/// A model that fails as often as told and then answers.
fn flaky(failures: u32, error: fn() -> ModelError) -> (FunctionModel, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let model = model_fn("flaky", move |_| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        async move {
            if n < failures {
                Err(error())
            } else {
                Ok(AssistantMessage::new(
                    vec![AssistantContent::text("ok")],
                    Timestamp::default(),
                ))
            }
        }
    });
    (model, asked)
}

#[tokio::test]
async fn a_retrying_model_waits_and_asks_again() {
    let env = Arc::new(Waits::default());
    let (model, asked) = flaky(2, || ModelError::new(ModelErrorKind::Overloaded, "busy"));
    let model = model.with_retry(RetryPolicy::default(), Arc::clone(&env) as Arc<dyn Env>);
    assert_eq!(
        model.complete(ChatRequest::default()).await.unwrap().text(),
        "ok"
    );
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert_eq!(
        *env.0.lock().unwrap(),
        [Duration::from_millis(500), Duration::from_secs(1)]
    );
}

#[tokio::test]
async fn what_allows_no_retry_is_told_at_once() {
    for kind in [
        ModelErrorKind::Quota,
        ModelErrorKind::Auth,
        ModelErrorKind::InvalidRequest,
        ModelErrorKind::ContextLength,
    ] {
        assert!(!kind.is_retryable());
    }
    let env = Arc::new(Waits::default());
    let (model, asked) = flaky(9, || ModelError::new(ModelErrorKind::Quota, "no money"));
    let model = model.with_retry(RetryPolicy::default(), env);
    assert_eq!(
        model
            .complete(ChatRequest::default())
            .await
            .unwrap_err()
            .kind,
        ModelErrorKind::Quota
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_reply_that_broke_off_is_asked_for_again_and_its_pieces_are_void() {
    let asked = Arc::new(AtomicU32::new(0));
    let model = FunctionModel::streaming(ModelInfo::new("half"), move |_| {
        let end = if asked.fetch_add(1, Ordering::Relaxed) == 0 {
            Err(ModelError::new(ModelErrorKind::TruncatedStream, "cut"))
        } else {
            Ok(ChatEvent::Finished {
                stop: StopReason::EndTurn,
                usage: Usage::UNKNOWN,
            })
        };
        ChatStream::from_events([Ok(ChatEvent::Text("half".into())), end])
    });
    let model = model.with_retry(RetryPolicy::default(), Arc::new(Waits::default()));
    let message = model.complete(ChatRequest::default()).await.unwrap();
    assert_eq!(message.text(), "half");
}

#[tokio::test]
async fn a_reply_that_broke_off_for_good_ends_in_its_error() {
    let model = FunctionModel::streaming(ModelInfo::new("half"), |_| {
        ChatStream::from_events([
            Ok(ChatEvent::Text("half".into())),
            Err(ModelError::new(ModelErrorKind::ContentFilter, "no")),
        ])
    });
    let mut stream = model
        .with_retry(RetryPolicy::default(), Arc::new(Waits::default()))
        .stream(ChatRequest::default());
    assert!(matches!(stream.next().await, Some(Ok(ChatEvent::Text(_)))));
    assert!(matches!(stream.next().await, Some(Err(_))));
    assert!(stream.next().await.is_none());
}

#[test]
fn the_servers_word_on_waiting_is_kept_and_capped() {
    let policy = RetryPolicy::default();
    let asked = |secs| ModelError {
        retry_after: Some(Duration::from_secs(secs)),
        ..ModelError::new(ModelErrorKind::RateLimit, "slow down")
    };
    assert_eq!(
        policy.wait(1, asked(7), 0.0).unwrap().0,
        Duration::from_secs(7)
    );
    let e = policy.wait(1, asked(61), 0.0).unwrap_err();
    assert!(
        e.message.contains("61") && e.message.contains("60") && !e.retryable,
        "{e}"
    );
    let any = RetryPolicy {
        max_wait: Duration::ZERO,
        ..policy
    };
    assert_eq!(
        any.wait(1, asked(3600), 0.0).unwrap().0,
        Duration::from_secs(3600)
    );
    assert!(policy.wait(5, asked(1), 0.0).is_err());
    assert_eq!(
        policy
            .wait(4, ModelError::new(ModelErrorKind::Server, "x"), 1.0)
            .unwrap()
            .0,
        Duration::from_secs(4)
    );
}

#[tokio::test]
async fn a_model_that_answers_whole_is_a_stream_with_one_event() {
    let (model, _) = flaky(0, || ModelError::new(ModelErrorKind::Other, ""));
    let mut stream = model.stream(ChatRequest::default());
    assert!(matches!(
        stream.next().await,
        Some(Ok(ChatEvent::Message(_)))
    ));
    assert!(stream.next().await.is_none());
}

#[test]
fn model_info_has_the_fields_of_sp_007_and_keeps_modalities_it_does_not_know() {
    let text = r#"{"id":"m","name":"M","provider":"openai","baseUrl":"u","reasoning":true,"input":["text","smell"],"cost":{"input":1.0,"output":2.0,"cache_read":0.1,"cache_write":0.2},"contextWindow":1000,"maxTokens":10}"#;
    let info: ModelInfo = serde_json::from_str(text).unwrap();
    assert_eq!(
        info.input,
        [Modality::Text, Modality::Other("smell".into())]
    );
    assert!(!info.sees_images());
    assert_eq!((info.context_window, info.cost.cache_write), (1000, 0.2));
    let back: ModelInfo = serde_json::from_str(&serde_json::to_string(&info).unwrap()).unwrap();
    assert_eq!(back, info);
}

#[tokio::test]
async fn a_stream_without_an_end_is_an_error() {
    let e = ChatStream::from_events([Ok(ChatEvent::Text("a".into()))])
        .into_message()
        .await
        .unwrap_err();
    assert_eq!(e.kind, ModelErrorKind::TruncatedStream);
    let done = ChatStream::from_events([
        Ok(ChatEvent::Text("a".into())),
        Ok(ChatEvent::Finished {
            stop: StopReason::EndTurn,
            usage: Usage::new(1, 2),
        }),
    ]);
    assert_eq!(done.into_message().await.unwrap().usage, Usage::new(1, 2));
}

#[test]
fn a_request_is_made_step_by_step() {
    let weather = ToolDefinition::new("get_weather", "Weather.", serde_json::json!({}));
    let options = ChatOptions {
        max_tokens: Some(9),
        ..ChatOptions::default()
    };
    let request = ChatRequest::new(History::new())
        .system("Be brief.")
        .tools([weather.clone()])
        .options(options.clone());
    assert_eq!(request.system.as_deref(), Some("Be brief."));
    assert_eq!(*request.tools, [Arc::new(weather)]);
    assert_eq!(*request.options, options);
    // Shared definitions are taken as they are.
    let again = ChatRequest::default().tools(request.tools.iter().cloned());
    assert!(Arc::ptr_eq(&again.tools[0], &request.tools[0]));
}
