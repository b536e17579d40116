//! Who is asked, who is told, and whose answer counts.

use super::*;
use yiem_core::SystemEnv;

fn callers() -> Arc<Callers> {
    Arc::new(Callers::new(SystemEnv::shared()))
}

/// A caller whose questions go to that channel.
fn caller(
    callers: &Arc<Callers>,
    name: &str,
) -> (Arc<dyn AskCaller>, tokio::sync::mpsc::Receiver<Incoming>) {
    let (send, sent) = tokio::sync::mpsc::channel(4);
    let send = move |message| send.try_send(message).is_ok();
    let asks = callers.by_requests(name.into(), Map::new(), Arc::new(send), CancelToken::new());
    (asks, sent)
}

fn is(one: Option<Arc<dyn AskCaller>>, other: &Arc<dyn AskCaller>) -> bool {
    one.is_some_and(|one| Arc::ptr_eq(&one, other))
}

#[test]
fn a_question_without_an_address_goes_to_the_only_one_it_can_be_for() {
    let callers = callers();
    assert!(callers.whom().is_none(), "nobody is there");
    let (a, _sent) = caller(&callers, "a");
    let (b, _sent) = caller(&callers, "b");
    let attached = callers.attach("a".into(), Arc::clone(&a));
    assert!(is(callers.whom(), &a), "the only one attached");
    let other = callers.attach("b".into(), Arc::clone(&b));
    assert!(callers.whom().is_none(), "one of two");
    let first = callers.sending("b".into(), Some(Arc::clone(&b)));
    assert!(
        is(callers.whom(), &b),
        "its request is on the way, nobody else's"
    );
    let second = callers.sending("b".into(), Some(Arc::clone(&b)));
    assert!(is(callers.whom(), &b), "two of the same caller");
    let third = callers.sending("c".into(), None);
    assert!(callers.whom().is_none(), "another one's is on the way too");
    drop((first, second));
    assert!(
        callers.whom().is_none(),
        "the one that is left cannot be asked"
    );
    drop((third, other));
    assert!(is(callers.whom(), &a));
    drop(attached);
    assert!(callers.whom().is_none());
}

#[tokio::test]
async fn who_thinks_about_a_question_is_not_the_one_that_the_next_is_for() {
    let callers = callers();
    let (slow, _first) = caller(&callers, "a");
    let (other, _second) = caller(&callers, "b");
    let _on_the_way = callers.sending("a".into(), Some(Arc::clone(&slow)));
    let mut thinking = slow.ask("roots/list", &Value::Null);
    assert!(futures_util::poll!(&mut thinking).is_pending());
    assert!(is(callers.whom(), &slow), "there is no other");
    let _too = callers.sending("b".into(), Some(Arc::clone(&other)));
    assert!(is(callers.whom(), &other));
    drop(thinking);
    assert!(callers.whom().is_none(), "one of two again");
}

#[tokio::test]
async fn only_the_caller_that_was_asked_can_answer_and_only_once() {
    let callers = callers();
    let (asks, mut sent) = caller(&callers, "a");
    let params = json!({"message": "?"});
    let asking = asks.ask("elicitation/create", &params);
    let answering = async {
        let Some(Incoming::Request(request)) = sent.recv().await else {
            panic!("no request")
        };
        assert_eq!(
            (request.method.as_str(), &request.params),
            ("elicitation/create", &params)
        );
        let answer = Answer {
            id: Some(request.id),
            outcome: AnswerOutcome::Result(json!({"action": "accept"})),
        };
        assert!(!callers.answered("b", answer.clone()), "it was not asked");
        assert!(callers.answered("a", answer.clone()));
        assert!(!callers.answered("a", answer), "it has answered");
    };
    let (answer, ()) = tokio::join!(asking, answering);
    assert_eq!(answer, Some(Ok(json!({"action": "accept"}))));
}

#[tokio::test]
async fn a_visit_without_an_id_is_given_one_for_callers_that_are_owed_it() {
    let callers = callers();
    let (asks, mut sent) = caller(&callers, "a");
    for (id, mode, has_one) in [
        (None, "url", true),
        (Some("e1"), "url", true),
        (None, "form", false),
    ] {
        let mut params = json!({"mode": mode, "message": "Go", "url": "https://h.example/x"});
        if let Some(id) = id {
            params["elicitationId"] = id.into();
        }
        let mut asking = asks.ask("elicitation/create", &params);
        assert!(futures_util::poll!(&mut asking).is_pending());
        let Some(Incoming::Request(request)) = sent.recv().await else {
            panic!("no request")
        };
        let given = request.params.get("elicitationId");
        assert_eq!(given.is_some_and(|id| id != ""), has_one, "{request:?}");
        assert!(id.is_none_or(|id| given.is_some_and(|given| given == id)));
        drop(asking);
        // It is taken back.
        sent.recv().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends_and_its_caller_is_told() {
    let callers = callers();
    let (asks, mut sent) = caller(&callers, "a");
    let began = tokio::time::Instant::now();
    assert_eq!(asks.ask("roots/list", &Value::Null).await, None);
    assert_eq!(began.elapsed(), ANSWER_TIME);
    let Some(Incoming::Request(request)) = sent.recv().await else {
        panic!("no request")
    };
    let told = sent.recv().await;
    let Some(Incoming::Notification { method, params }) = told else {
        panic!("{told:?}")
    };
    assert_eq!(method, "notifications/cancelled");
    assert_eq!(params["requestId"], request.id.to_value());
    // A caller to whom nothing can be sent is not waited for.
    drop(sent);
    assert_eq!(asks.ask("roots/list", &Value::Null).await, None);
    assert_eq!(began.elapsed(), ANSWER_TIME);
}

#[tokio::test]
async fn who_is_too_slow_for_the_changes_is_told_that_all_changed() {
    let callers = callers();
    let mut changes = callers.changes();
    for _ in 0..CHANGES_KEPT + 1 {
        callers.tell(method::RESOURCE_UPDATED, json!({"uri": "a"}));
    }
    let told = changes.next().await;
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|change| callers.concerns("anyone", change)));
}

#[test]
fn a_changed_resource_concerns_those_who_asked_for_it() {
    let callers = callers();
    let change = Incoming::Notification {
        method: method::RESOURCE_UPDATED.into(),
        params: json!({"uri": "a"}),
    };
    for (caller, uri) in [("one", "a"), ("one", "a"), ("two", "a"), ("two", "b")] {
        assert_eq!(callers.subscribe(&caller.into(), uri), Ok(()));
    }
    assert!(callers.concerns("one", &change) && !callers.concerns("three", &change));
    assert!(!callers.unsubscribe("one", "a"), "two still wants it");
    assert!(!callers.concerns("one", &change));
    assert!(callers.unsubscribe("two", "a"));
    assert_eq!(callers.subscribed(), HashSet::from(["b".to_owned()]));
    callers.forget("two");
    assert!(callers.subscribed().is_empty());
    for number in 0..SUBSCRIPTIONS {
        assert_eq!(
            callers.subscribe(&"many".into(), &number.to_string()),
            Ok(())
        );
    }
    assert!(callers.subscribe(&"many".into(), "one more").is_err());
}

#[test]
fn all_callers_together_have_a_bound_too() {
    let callers = callers();
    for number in 0..SUBSCRIPTIONS_OF_ALL {
        let caller = format!("c{}", number % 100).into();
        assert_eq!(callers.subscribe(&caller, &number.to_string()), Ok(()));
    }
    assert!(callers.subscribe(&"new".into(), "one more").is_err());
    assert_eq!(callers.subscribe(&"c0".into(), "0"), Ok(()), "it has that");
    callers.forget("c0");
    assert_eq!(callers.subscribe(&"new".into(), "one more"), Ok(()));
    callers.forget("new");
    assert!(!callers.state().subscriptions.contains_key("new"));
}
