use yiem_core::{History, Memo, Message, Timestamp};

use super::*;

fn encoder() -> RequestEncoder {
    RequestEncoder::new(&ModelInfo::new("m"), Arc::new(Compat::default()))
}

fn ask(messages: &History, memo: &Memo) -> ChatRequest {
    ChatRequest {
        messages: messages.clone(),
        memo: memo.clone(),
        ..ChatRequest::default()
    }
}

fn say(history: &mut History, n: usize) {
    let text = format!("message {n}");
    history.extend([Message::user(text.as_str(), Timestamp::default())]);
    history.extend([Message::from(yiem_core::AssistantMessage::new(
        vec![yiem_core::AssistantContent::text(text)],
        Timestamp::default(),
    ))]);
}

fn joined(pieces: &Pieces) -> Vec<u8> {
    [&*pieces.head, &*pieces.messages, &*pieces.tail].concat()
}

/// A regression to a copy of the history in each request fails here: the bytes move only when
/// they need more room, and that doubles.
#[test]
fn a_request_copies_nothing_of_its_history() {
    let (encoder, memo) = (encoder(), Memo::new());
    let mut history = History::new();
    let mut places = Vec::new();
    for n in 0..500 {
        say(&mut history, n);
        let pieces = encoder.pieces(&[], &ask(&history, &memo), true);
        places.push(pieces.messages.as_ptr());
    }
    places.dedup();
    assert!(places.len() <= 16, "moved {} times", places.len());
}

#[test]
fn a_request_that_is_still_being_sent_stays_as_it_is() {
    let (encoder, memo) = (encoder(), Memo::new());
    let mut history = History::new();
    let mut held = Vec::new();
    for n in 0..5 {
        say(&mut history, n);
        let fresh = encoder.encode(&ask(&history, &Memo::new()), true).body;
        held.push((encoder.pieces(&[], &ask(&history, &memo), true), fresh));
    }
    // Another history over the same memo, as of a run that began from an earlier place.
    let mut other = History::new();
    say(&mut other, 7);
    let fresh = encoder.encode(&ask(&other, &Memo::new()), true).body;
    held.push((encoder.pieces(&[], &ask(&other, &memo), true), fresh));
    for (pieces, fresh) in &held {
        assert_eq!(joined(pieces), *fresh);
    }
}

#[test]
fn what_stands_behind_the_messages_follows_the_request() {
    let (encoder, memo) = (encoder(), Memo::new());
    let mut history = History::new();
    say(&mut history, 0);
    let tool = |name: &str| -> Arc<[Arc<ToolDefinition>]> {
        Arc::from([Arc::new(ToolDefinition {
            name: name.to_owned(),
            ..ToolDefinition::default()
        })])
    };
    let (one, two) = (tool("one"), tool("two"));
    let hot = Arc::new(ChatOptions {
        temperature: Some(1.5),
        ..ChatOptions::default()
    });
    let cold = Arc::new(ChatOptions::default());
    for (tools, options, stream) in [
        (&one, &hot, true),
        (&one, &hot, true),
        (&two, &hot, true),
        (&two, &cold, true),
        (&two, &cold, false),
        (&one, &hot, true),
    ] {
        let request = |memo: &Memo| ChatRequest {
            tools: Arc::clone(tools),
            options: Arc::clone(options),
            ..ask(&history, memo)
        };
        let pieces = encoder.pieces(&[], &request(&memo), stream);
        let fresh = encoder.pieces(&[], &request(&Memo::new()), stream);
        assert_eq!(joined(&pieces), joined(&fresh));
        assert_eq!(pieces.offered, fresh.offered);
    }
}
