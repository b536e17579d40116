use super::*;
use proptest::prelude::*;
use serde_json::json;

fn answer(id: Option<RequestId>) -> Answer {
    Answer {
        id,
        outcome: AnswerOutcome::Result(json!(1)),
    }
}

#[test]
fn answers_find_their_waiters_in_any_order_and_spelling() {
    let mut waiters = Correlator::new();
    for id in 1..=3 {
        waiters.wait(RequestId::Number(id), id);
    }
    assert!(matches!(
        waiters.settle(answer(Some(RequestId::Number(3)))),
        Settled::Waiter(3, _)
    ));
    assert!(matches!(
        waiters.settle(answer(Some(RequestId::Text("1".into())))),
        Settled::Waiter(1, _)
    ));
    assert_eq!(
        waiters.settle(answer(Some(RequestId::Number(1)))),
        Settled::Stray(Some(RequestId::Number(1)))
    );
    assert_eq!(waiters.take_all(), [2]);
}

#[test]
fn a_given_up_request_makes_its_answer_late() {
    let mut waiters = Correlator::new();
    waiters.wait(RequestId::Number(1), ());
    assert!(waiters.give_up(&RequestId::Number(1)));
    assert!(!waiters.give_up(&RequestId::Number(1)));
    assert_eq!(
        waiters.settle(answer(Some(RequestId::Number(1)))),
        Settled::Late(RequestId::Number(1))
    );
}

#[test]
fn an_error_without_an_id_belongs_to_the_only_one_that_waits() {
    let error = |message: &str| Answer {
        id: None,
        outcome: AnswerOutcome::Error(crate::JsonRpcError::new(-32700, message)),
    };
    let mut waiters = Correlator::new();
    waiters.wait(RequestId::Number(1), 1);
    waiters.wait(RequestId::Number(2), 2);
    assert_eq!(waiters.settle(error("a")), Settled::Stray(None));
    waiters.give_up(&RequestId::Number(1));
    assert!(matches!(waiters.settle(error("b")), Settled::Waiter(2, _)));
    waiters.wait(RequestId::Number(3), 3);
    assert_eq!(waiters.settle(answer(None)), Settled::Stray(None));
}

#[test]
fn progress_renews_a_deadline_up_to_the_hard_cap() {
    let seconds = Duration::from_secs;
    let mut deadline = Deadline::new(seconds(100), seconds(10), seconds(25));
    assert_eq!(
        deadline.state(seconds(101)),
        DeadlineState::Running(seconds(9))
    );
    assert_eq!(
        deadline.state(seconds(110)),
        DeadlineState::Idle(seconds(10))
    );
    deadline.renew(seconds(109));
    assert_eq!(
        deadline.state(seconds(110)),
        DeadlineState::Running(seconds(9))
    );
    deadline.renew(seconds(118));
    assert_eq!(
        deadline.state(seconds(120)),
        DeadlineState::Running(seconds(5))
    );
    assert_eq!(
        deadline.state(seconds(125)),
        DeadlineState::HardCap(seconds(25))
    );
    let endless = Deadline::new(seconds(1), Duration::MAX, Duration::MAX);
    assert!(matches!(
        endless.state(seconds(5)),
        DeadlineState::Running(_)
    ));
}

#[derive(Debug, Clone)]
enum Step {
    Wait,
    GiveUp(usize),
    Answer(usize),
    Stray(i64),
}

proptest! {
    /// Every waiter is settled once: by its answer, by being given up, or by the end of the connection.
    #[test]
    fn every_waiter_is_settled_once(steps in proptest::collection::vec(prop_oneof![
        Just(Step::Wait),
        (0usize..20).prop_map(Step::GiveUp),
        (0usize..20).prop_map(Step::Answer),
        (1000i64..1010).prop_map(Step::Stray),
    ], 0..80)) {
        let mut waiters = Correlator::new();
        let mut made = 0i64;
        let mut settled = vec![];
        for step in steps {
            match step {
                Step::Wait => {
                    waiters.wait(RequestId::Number(made), made);
                    made += 1;
                }
                Step::GiveUp(at) => {
                    if waiters.give_up(&RequestId::Number(at as i64)) {
                        settled.push(at as i64);
                    }
                }
                Step::Answer(at) => {
                    if let Settled::Waiter(waiter, _) = waiters.settle(answer(Some(RequestId::Number(at as i64)))) {
                        prop_assert_eq!(waiter, at as i64);
                        settled.push(waiter);
                    }
                }
                Step::Stray(id) => {
                    prop_assert!(matches!(waiters.settle(answer(Some(RequestId::Number(id)))), Settled::Stray(_)));
                }
            }
        }
        settled.extend(waiters.take_all());
        settled.sort_unstable();
        prop_assert_eq!(settled, (0..made).collect::<Vec<_>>());
        prop_assert_eq!(waiters.pending(), 0);
    }
}
