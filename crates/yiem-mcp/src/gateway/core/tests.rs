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
        Arc::new(Callers::new(SystemEnv::shared())),
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
        asking: Asking::Rounds,
        told: false,
    }
}

/// Polls a call so far that it is under way.
macro_rules! begin {
    ($core:expr, $asked:expr) => {{
        let mut call = Box::pin($core.answer($asked, |_| true));
        assert!((&mut call).now_or_never().is_none());
        call
    }};
}

#[tokio::test]
async fn a_request_is_answered_and_no_longer_counted() {
    let (_, core) = core(4);
    let answer = core.answer(asked("a", 1, "x"), |_| true).await;
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
    let call = core.answer(asked("a", 1, "initialize"), |_| true);
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
        .answer(asked("a", 1, "panic"), |_| true)
        .await
        .expect("an answer");
    assert_eq!(answer.expect_err("an error").code, INTERNAL_ERROR);
    core.notified("x", &Value::Null).await;
    assert!(
        core.answer(asked("a", 2, "x"), |_| true)
            .await
            .is_some_and(|answer| answer.is_ok())
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_answered_with_an_error() {
    let (_, core) = core(4);
    let answer = core
        .answer(asked("a", 1, "long"), |_| true)
        .await
        .expect("an answer");
    assert!(answer.expect_err("an error").message.contains("60 s"));
}

#[tokio::test]
async fn so_many_run_so_many_wait_and_the_rest_is_refused() {
    let (backend, core) = core(2);
    let name = |id| if id < 2 { "wait" } else { "x" };
    let mut calls: Vec<_> = (0..10)
        .map(|id| Box::pin(core.answer(asked("a", id, name(id)), |_| true)))
        .collect();
    for call in &mut calls {
        assert!(call.now_or_never().is_none());
    }
    let refused = core
        .answer(asked("a", 10, "x"), |_| true)
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
        core.answer(asked("a", 11, "x"), |_| true)
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
        heard.lock().unwrap().push(note);
        true
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
        core.answer(odd, |_| true)
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
        let answer = core.answer(modern, |_| true).await.expect("an answer");
        assert_eq!(answer.expect_err("gone").code, METHOD_NOT_FOUND, "{name}");
        assert!(
            core.answer(asked("a", 1, name), |_| true)
                .await
                .is_some_and(|answer| answer.is_ok()),
            "{name}"
        );
    }
}

/// Asks its caller two things, one after the other, and answers with what it was told.
struct Curious;

#[async_trait]
impl Responder for Curious {
    async fn respond(
        &self,
        _: &str,
        _: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        let mut told = Vec::new();
        for question in ["name?", "age?"] {
            let token = "token 1";
            caller.notify(
                method::PROGRESS,
                json!({"progressToken": token, "progress": 1}),
            );
            told.push(
                match caller
                    .ask(method::ELICITATION, json!({"message": question}))
                    .await
                {
                    Ok(answer) => answer["content"].clone(),
                    Err(refusal) => refusal.code.into(),
                },
            );
        }
        Ok(json!({"told": told}))
    }
}

fn curious() -> Core {
    curious_in(SystemEnv::shared())
}

fn curious_in(env: Arc<dyn Env>) -> Core {
    let callers = Arc::new(Callers::new(Arc::clone(&env)));
    Core::new(Arc::new(Curious), callers, env, 1, Duration::from_secs(60))
}

fn stateless(id: i64, more: Value) -> Asked {
    let mut params = json!({"name": "t", "arguments": {"a": 1}, "_meta": {
        meta_key::PROTOCOL_VERSION: "2026-07-28",
        meta_key::CLIENT_CAPABILITIES: {"elicitation": {}},
        meta_key::PROGRESS_TOKEN: format!("token {id}"),
    }});
    for (key, value) in more.as_object().expect("an object") {
        params[key] = value.clone();
    }
    Asked {
        params,
        ..asked(&format!("http-{id}"), id, method::TOOLS_CALL)
    }
}

async fn result(core: &Core, asked: Asked) -> Value {
    core.answer(asked, |_| true)
        .await
        .expect("an answer")
        .expect("a result")
}

#[tokio::test]
async fn a_stateless_caller_is_asked_in_results_and_the_call_goes_on_where_it_was() {
    let core = curious();
    let first = result(&core, stateless(1, json!({}))).await;
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(
        first["inputRequests"],
        json!({"q1": {"method": "elicitation/create", "params": {"message": "name?"}}})
    );
    assert_eq!(
        (core.running(), core.held.len()),
        (0, 1),
        "it waits, and does not run"
    );
    let answers = json!({"q1": {"action": "accept", "content": "Ada"}});
    let state = first["requestState"].clone();

    // Neither another call nor another gateway can go on with it.
    let other = json!({"requestState": state, "inputResponses": answers, "arguments": {"a": 2}});
    let refused = core.answer(stateless(2, other), |_| true).await;
    assert!(refused.is_some_and(|answer| answer.is_err()));
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let again = json!({"requestState": state, "inputResponses": answers});
    let second = core
        .answer(stateless(3, again.clone()), move |note| {
            heard.lock().unwrap().push(note);
            true
        })
        .await;
    let second = second.expect("an answer").expect("a result");
    assert_eq!(second["inputRequests"]["q2"]["params"]["message"], "age?");
    // Progress goes on the way of the request that is there now, under its token.
    let told = told.lock().unwrap().clone();
    assert_eq!(
        told,
        [Incoming::Notification {
            method: method::PROGRESS.into(),
            params: json!({"progressToken": "token 3", "progress": 1}),
        }]
    );
    let refused = core.answer(stateless(4, again), |_| true).await;
    assert!(
        refused.is_some_and(|answer| answer.is_err()),
        "a state counts once"
    );

    // What is not answered is asked again.
    let third = json!({"requestState": second["requestState"], "inputResponses": {"q1": {}}});
    let third = result(&core, stateless(5, third)).await;
    assert_eq!(third["inputRequests"], second["inputRequests"]);
    assert_ne!(third["requestState"], second["requestState"]);
    let answers = json!({"q2": {"action": "accept", "content": 36}});
    let last = json!({"requestState": third["requestState"], "inputResponses": answers});
    let last = result(&core, stateless(6, last)).await;
    assert_eq!(last, json!({"told": ["Ada", 36]}));
    assert_eq!(core.held.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_held_takes_no_place_from_others() {
    let core = curious_in(Arc::new(Paused(tokio::time::Instant::now())));
    let first = result(&core, stateless(1, json!({}))).await;
    // Longer than a call may take: it is the caller who thinks.
    tokio::time::sleep(Duration::from_secs(120)).await;
    for id in 2..5 {
        let other = result(&core, stateless(id, json!({}))).await;
        assert_eq!(other["resultType"], "input_required", "{other}");
    }
    assert_eq!(core.held.len(), 4);
    let answers = json!({"q1": {"action": "accept", "content": "Ada"}});
    let again = json!({"requestState": first["requestState"], "inputResponses": answers});
    let second = result(&core, stateless(5, again)).await;
    assert_eq!(second["inputRequests"]["q2"]["params"]["message"], "age?");
}

#[tokio::test]
async fn a_call_that_goes_on_is_not_refused_because_others_wait() {
    let core = curious();
    let first = result(&core, stateless(1, json!({}))).await;
    let place = core.shop.places.try_acquire().expect("nobody runs");
    let waiting: Vec<_> = (2..6)
        .map(|id| begin!(core, stateless(id, json!({}))))
        .collect();
    let refused = core.answer(stateless(6, json!({})), |_| true).await;
    let refused = refused.expect("an answer").expect_err("busy");
    assert!(refused.message.contains("busy"), "{refused}");
    let answers = json!({"q1": {"action": "accept", "content": "Ada"}});
    let again = json!({"requestState": first["requestState"], "inputResponses": answers});
    let going = begin!(core, stateless(7, again));
    drop((place, waiting));
    let second = going.await.expect("an answer").expect("a result");
    assert_eq!(second["inputRequests"]["q2"]["params"]["message"], "age?");
    assert_eq!(core.shop.waiting.load(Ordering::SeqCst), 0);
}

/// The time of tokio, which can be paused.
#[derive(Debug)]
struct Paused(tokio::time::Instant);

impl Env for Paused {
    fn now(&self) -> yiem_core::Timestamp {
        SystemEnv::shared().now()
    }
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&self, time: Duration) -> yiem_core::BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
    fn new_id(&self, kind: yiem_core::IdKind) -> String {
        SystemEnv::shared().new_id(kind)
    }
    fn random(&self) -> f64 {
        0.5
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_caller_does_not_come_back_is_given_up() {
    let core = curious_in(Arc::new(Paused(tokio::time::Instant::now())));
    let first = result(&core, stateless(1, json!({}))).await;
    tokio::time::sleep(Duration::from_secs(599)).await;
    core.purge();
    assert_eq!(core.held.len(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    core.purge();
    assert_eq!(core.held.len(), 0);
    let late = json!({"requestState": first["requestState"]});
    let answer = core.answer(stateless(2, late), |_| true).await;
    let error = answer.expect("an answer").expect_err("too late");
    assert!(error.message.contains("not held any more"), "{error}");
}

#[tokio::test]
async fn who_cannot_be_asked_is_not_and_the_call_goes_on() {
    let core = curious();
    // Of the legacy era and without a session; stateless without the capability; on a rim without a way.
    let bare = asked("a", 1, method::TOOLS_CALL);
    assert_eq!(result(&core, bare).await, json!({"told": [-32601, -32601]}));
    let mut unable = stateless(2, json!({}));
    unable.params["_meta"][meta_key::CLIENT_CAPABILITIES] = json!({});
    assert_eq!(
        result(&core, unable).await,
        json!({"told": [-32601, -32601]})
    );
    let far = Asked {
        asking: Asking::No,
        ..stateless(3, json!({}))
    };
    assert_eq!(result(&core, far).await, json!({"told": [-32601, -32601]}));
}

#[cfg(feature = "nats")]
#[tokio::test]
async fn a_cancellation_that_comes_before_its_request_counts() {
    let (_, core) = core(4);
    core.cancel_ahead("inbox-1", &7.into());
    let other = core.answer(asked("inbox-2", 7, "x"), |_| true).await;
    assert!(other.is_some(), "another caller's");
    let early = core.answer(asked("inbox-1", 7, "long"), |_| true).await;
    assert_eq!(early, None, "cancelled");
    let again = core.answer(asked("inbox-1", 7, "x"), |_| true).await;
    assert!(again.is_some(), "it counts once");
}

#[cfg(feature = "nats")]
#[tokio::test(start_paused = true)]
async fn a_cancellation_that_comes_late_is_not_for_the_next_request() {
    let env: Arc<dyn Env> = Arc::new(Paused(tokio::time::Instant::now()));
    let core = Core::new(
        Arc::new(Backend::default()),
        Arc::new(Callers::new(Arc::clone(&env))),
        env,
        1,
        Duration::from_secs(60),
    );
    let far = |name| Asked {
        asking: Asking::No,
        ..asked("inbox", 7, name)
    };
    // Its call has just ended.
    assert!(core.answer(far("x"), |_| true).await.is_some());
    core.cancel_ahead("inbox", &7.into());
    assert!(core.answer(far("x"), |_| true).await.is_some());
    // It waited too long for a call.
    tokio::time::sleep(EARLY_TIME).await;
    core.cancel_ahead("inbox", &7.into());
    tokio::time::sleep(EARLY_TIME).await;
    assert!(core.answer(far("x"), |_| true).await.is_some());
    // Heard of twice, it counts once.
    core.cancel_ahead("other", &7.into());
    core.cancel_ahead("other", &7.into());
    assert_eq!(core.answer(asked("other", 7, "x"), |_| true).await, None);
    assert!(
        core.answer(asked("other", 7, "x"), |_| true)
            .await
            .is_some()
    );
}
