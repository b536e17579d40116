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
    [&**pieces.head, &**pieces.messages].concat()
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
fn what_stands_before_the_messages_follows_the_request() {
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

/// What stands in the head of each request, as a system prompt that tells the time, costs no
/// rewriting of the messages.
#[test]
fn another_system_prompt_each_time_writes_no_message_again() {
    let (encoder, memo) = (encoder(), Memo::new());
    let mut history = History::new();
    for n in 0..10 {
        say(&mut history, n);
        let prompt = format!("It is {n} o'clock.");
        let request = ask(&history, &memo);
        let pieces = encoder.pieces(&[&prompt], &request, false);
        assert_eq!(pieces.written, 2);
        let body: Value = serde_json::from_slice(&joined(&pieces)).unwrap();
        assert_eq!(body["messages"][0]["content"], prompt);
        assert_eq!(body["messages"].as_array().unwrap().len(), 2 * n + 3);
    }
}

/// The body is JSON wherever the comma between system prompt and messages falls away.
#[test]
fn a_body_is_json_without_messages_and_without_a_prompt() {
    let encoder = encoder();
    let mut history = History::new();
    for messages in 0..2 {
        for prompts in [&[][..], &["Be brief."], &["", " "], &["One.", "Two."]] {
            let request = ask(&history, &Memo::new());
            let body = joined(&encoder.pieces(prompts, &request, true));
            let body: Value = serde_json::from_slice(&body).unwrap();
            let said = prompts.iter().filter(|p| !p.trim().is_empty()).count();
            let told = body["messages"].as_array().unwrap().len();
            assert_eq!(told, said + 2 * messages, "{prompts:?}");
        }
        say(&mut history, messages);
    }
}

/// A caller's own field stands once, also where it is that of the messages.
#[test]
fn a_callers_own_messages_stand_in_the_place_of_the_conversation() {
    let (encoder, memo) = (encoder(), Memo::new());
    let mut history = History::new();
    let own = Arc::new(ChatOptions {
        extra: [
            ("messages".to_owned(), json!([])),
            ("n".to_owned(), json!(2)),
        ]
        .into_iter()
        .collect(),
        ..ChatOptions::default()
    });
    for n in 0..3 {
        say(&mut history, n);
        let request = ChatRequest {
            options: Arc::clone(&own),
            ..ask(&history, &memo)
        };
        let body = encoder.encode(&request, false).body;
        let text = String::from_utf8(body).unwrap();
        assert_eq!(text, r#"{"model":"m","messages":[],"n":2}"#);
    }
    let body = encoder.encode(&ask(&history, &memo), false).body;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["messages"].as_array().unwrap().len(), 6);
}
