//! One request and its answer, on a runtime whose time is paused.

use super::*;
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Notify;
use yiem_core::SystemEnv;

/// Answers by the method: `wait` until told, `panic`, `long`, else the method's name.
#[derive(Default)]
struct Backend {
    go: Notify,
    dropped: AtomicUsize,
}

struct CountDrop<'a>(&'a AtomicUsize);

impl Drop for CountDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Responder for Backend {
    async fn respond(
        &self,
        name: &str,
        _: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        let _count = CountDrop(&self.dropped);
        match name {
            "wait" => self.go.notified().await,
            "panic" => panic!("as asked"),
            "long" => std::future::pending().await,
            "tell" => caller.notify("notifications/progress", json!({"progress": 1})),
            _ => {}
        }
        Ok(json!({"method": name}))
    }

    async fn notified(&self, _: &str, _: &Value) {
        panic!("as asked");
    }
}

fn core(at_once: usize) -> (Arc<Backend>, Arc<Core>) {
    let backend = Arc::new(Backend::default());
    let core = Core::new(
        Arc::clone(&backend) as _,
        SystemEnv::shared(),
        at_once,
        Duration::from_secs(60),
    );
    (backend, Arc::new(core))
}

fn asked(caller: &str, id: i64, name: &str) -> Asked {
    Asked {
        caller: caller.into(),
        id: Some(id.into()),
        method: name.into(),
        params: Value::Null,
        session: None,
        cancel: CancelToken::new(),
    }
}

/// Polls a call so far that it is under way.
macro_rules! begin {
    ($core:expr, $asked:expr) => {{
        let mut call = Box::pin($core.answer($asked, |_| {}));
        assert!((&mut call).now_or_never().is_none());
        call
    }};
}

#[tokio::test]
async fn a_request_is_answered_and_no_longer_counted() {
    let (_, core) = core(4);
    let answer = core.answer(asked("a", 1, "x"), |_| {}).await;
    assert_eq!(answer, Some(Ok(json!({"method": "x"}))));
    assert_eq!(core.running(), 0);
}

#[tokio::test]
async fn a_cancelled_request_gets_no_answer_and_what_it_did_ends() {
    let (backend, core) = core(4);
    let call = begin!(core, asked("a", 1, "wait"));
    assert!(
        !core.cancel("b", &1.into()),
        "another caller's request of that id is not meant"
    );
    assert!(!core.cancel("a", &2.into()));
    assert!(core.cancel("a", &1.into()));
    assert_eq!(call.await, None);
    assert_eq!(
        (backend.dropped.load(Ordering::SeqCst), core.running()),
        (1, 0)
    );
}

#[tokio::test]
async fn without_a_caller_only_what_cannot_be_mistaken_is_cancelled() {
    let (_, core) = core(4);
    let first = begin!(core, asked("a", 1, "wait"));
    let second = begin!(core, asked("b", 1, "wait"));
    assert!(!core.cancel_only(&1.into()), "two have that id");
    drop(first);
    assert!(core.cancel_only(&1.into()));
    assert_eq!(second.await, None);
}

#[tokio::test]
async fn the_handshake_cannot_be_cancelled() {
    let (_, core) = core(4);
    let call = core.answer(asked("a", 1, "initialize"), |_| {});
    assert!(!core.cancel("a", &1.into()));
    assert!(call.await.is_some_and(|answer| answer.is_ok()));
}

#[tokio::test]
async fn a_caller_that_leaves_takes_its_call_along() {
    let (backend, core) = core(4);
    drop(begin!(core, asked("a", 1, "wait")));
    assert_eq!(
        (backend.dropped.load(Ordering::SeqCst), core.running()),
        (1, 0)
    );
    let call = begin!(core, asked("a", 2, "wait"));
    core.cancel_all_of("a");
    assert_eq!(call.await, None);
}

#[tokio::test]
async fn who_is_cut_off_at_the_end_is_told_so() {
    let (_, core) = core(4);
    let call = begin!(core, asked("a", 1, "wait"));
    assert_eq!(core.cut_off(), 1);
    let answer = call.await.expect("an answer");
    assert!(
        answer
            .expect_err("an error")
            .message
            .contains("ended before the call did")
    );
    assert_eq!(core.cut_off(), 0);
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let (_, core) = core(4);
    let answer = core
        .answer(asked("a", 1, "panic"), |_| {})
        .await
        .expect("an answer");
    assert_eq!(answer.expect_err("an error").code, INTERNAL_ERROR);
    core.notified("x", &Value::Null).await;
    assert!(
        core.answer(asked("a", 2, "x"), |_| {})
            .await
            .is_some_and(|answer| answer.is_ok())
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_answered_with_an_error() {
    let (_, core) = core(4);
    let answer = core
        .answer(asked("a", 1, "long"), |_| {})
        .await
        .expect("an answer");
    assert!(answer.expect_err("an error").message.contains("60 s"));
}

#[tokio::test]
async fn so_many_run_so_many_wait_and_the_rest_is_refused() {
    let (backend, core) = core(2);
    let name = |id| if id < 2 { "wait" } else { "x" };
    let mut calls: Vec<_> = (0..10)
        .map(|id| Box::pin(core.answer(asked("a", id, name(id)), |_| {})))
        .collect();
    for call in &mut calls {
        assert!(call.now_or_never().is_none());
    }
    let refused = core
        .answer(asked("a", 10, "x"), |_| {})
        .await
        .expect("an answer");
    assert!(
        refused
            .expect_err("busy")
            .message
            .contains("busy: 2 calls run and 8 wait")
    );
    for _ in 0..2 {
        backend.go.notify_one();
    }
    for call in calls {
        assert!(call.await.is_some_and(|answer| answer.is_ok()));
    }
    assert!(
        core.answer(asked("a", 11, "x"), |_| {})
            .await
            .is_some_and(|answer| answer.is_ok())
    );
}

#[tokio::test]
async fn what_belongs_to_a_request_is_told_before_its_answer() {
    let (_, core) = core(2);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    core.answer(asked("a", 1, "tell"), move |note| {
        heard.lock().unwrap().push(note)
    })
    .await;
    assert_eq!(told.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn params_that_are_no_object_are_refused() {
    let (_, core) = core(2);
    let odd = Asked {
        params: json!([1]),
        ..asked("a", 1, "x")
    };
    assert!(
        core.answer(odd, |_| {})
            .await
            .is_some_and(|answer| answer.is_err())
    );
}

#[tokio::test]
async fn what_the_stateless_era_no_longer_has_is_no_method_there() {
    let (_, core) = core(2);
    let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    for name in REMOVED {
        let modern = Asked {
            params: meta.clone(),
            ..asked("a", 1, name)
        };
        let answer = core.answer(modern, |_| {}).await.expect("an answer");
        assert_eq!(answer.expect_err("gone").code, METHOD_NOT_FOUND, "{name}");
        assert!(
            core.answer(asked("a", 1, name), |_| {})
                .await
                .is_some_and(|answer| answer.is_ok()),
            "{name}"
        );
    }
}
