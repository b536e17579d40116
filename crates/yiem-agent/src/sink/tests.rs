use yiem_core::RunId;

use super::*;
use crate::event::EventKind;

fn event(seq: u64) -> Arc<AgentEvent> {
    Arc::new(AgentEvent {
        kind: EventKind::TurnStart,
        run_id: RunId::from("r"),
        turn: 1,
        seq,
    })
}

fn seqs(subscription: &mut Subscription) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(delivery) = subscription.try_next() {
        all.push(match delivery {
            Delivery::Event(event) => event.seq.to_string(),
            Delivery::Missed(count) => format!("missed {count}"),
        });
    }
    all
}

#[test]
fn each_reader_misses_what_it_is_too_slow_for_and_no_other() {
    let subscribers = Subscribers::default();
    let (mut slow, mut fast) = (subscribers.subscribe(2), subscribers.subscribe(2));
    for seq in 0..5 {
        subscribers.publish(&event(seq));
        assert_eq!(seqs(&mut fast), [seq.to_string()]);
    }
    assert_eq!(seqs(&mut slow), ["missed 3", "3", "4"]);
    drop(slow);
    subscribers.publish(&event(5));
    assert!(!subscribers.is_empty());
    drop(fast);
    subscribers.publish(&event(6));
    assert!(subscribers.is_empty());
}

#[tokio::test]
async fn a_subscription_ends_after_what_it_holds() {
    let subscribers = Subscribers::default();
    let mut heard = subscribers.subscribe(8);
    subscribers.publish(&event(0));
    drop(subscribers);
    assert!(matches!(heard.next().await, Some(Delivery::Event(_))));
    assert_eq!(heard.next().await, None);
}
