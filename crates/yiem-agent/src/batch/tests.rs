use serde_json::json;
use yiem_core::ToolResultMessage;

use super::*;

fn batch(calls: usize, sequential: bool, cap: usize) -> Batch {
    let call = |n: usize| {
        ToolCall::new(
            format!("c{n}"),
            "t",
            json!({}).as_object().cloned().unwrap_or_default(),
        )
    };
    Batch::new((0..calls).map(call), sequential, cap)
}

fn result() -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResultMessage::default()))
}

#[test]
fn sequential_calls_end_before_the_next_is_prepared() {
    let mut batch = batch(2, true, 64);
    for index in 0..2 {
        assert_eq!(batch.next(), Next::Prepare(index));
        batch.preparing(index);
        assert_eq!(batch.next(), Next::Wait);
        batch.prepared(index, Arc::default());
        assert_eq!(batch.next(), Next::Begin(index));
        batch.begin(index);
        assert_eq!(batch.next(), Next::Wait);
        batch.finish(index, result(), false);
    }
    assert_eq!(batch.next(), Next::Done);
}

#[test]
fn parallel_calls_are_all_prepared_before_any_begins_and_the_cap_holds() {
    let mut batch = batch(3, false, 2);
    for index in 0..3 {
        assert_eq!(batch.next(), Next::Prepare(index));
        batch.preparing(index);
        assert_eq!(batch.next(), Next::Wait, "one is prepared, none begins");
        batch.prepared(index, Arc::default());
    }
    batch.begin(0);
    assert_eq!(batch.next(), Next::Begin(1));
    batch.begin(1);
    assert_eq!(batch.next(), Next::Wait);
    batch.finish(1, result(), true);
    assert_eq!(batch.next(), Next::Begin(2));
    batch.begin(2);
    batch.finish(2, result(), false);
    batch.finish(0, result(), false);
    assert_eq!(
        (batch.next(), batch.terminate()),
        (Next::Done, (true, false))
    );
    assert_eq!(batch.results().len(), 3);
}

#[test]
fn a_batch_of_none_is_done_and_does_not_terminate() {
    let batch = batch(0, false, 2);
    assert_eq!(
        (batch.next(), batch.terminate()),
        (Next::Done, (false, false))
    );
}
