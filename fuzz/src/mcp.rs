//! What a server may write to an MCP client: any bytes are messages or said to be none, each waiter
//! gets one answer at most, and a connection opens or fails, whatever the server answers.

use std::collections::HashSet;

use serde_json::{Map, Value};
use yiem_mcp::correlate::{Correlator, Settled};
use yiem_mcp::dialect::{Opening, OpeningReply, OpeningStep};
use yiem_mcp::jsonrpc::{
    self, Answer, AnswerOutcome, IdScanner, Incoming, JsonRpcError, Line, LineReader, RequestId,
};
use yiem_mcp::{Dialect, DialectChoice};

use super::counting::{pieces, seed};

/// The longest line that is taken whole.
const CAP: usize = 200;

/// Any bytes as lines of JSON-RPC: the number that the pieces follow from, then the lines.
pub fn jsonrpc(data: &[u8]) {
    let Some((seed, bytes)) = seed(data) else {
        return;
    };
    let one = lines([bytes]);
    assert_eq!(
        one,
        lines(pieces(bytes, seed)),
        "other lines in other pieces"
    );
    for line in one {
        if let Line::Whole(line) = line {
            assert!(!line.is_empty() && line.len() <= CAP, "a line over the cap");
        }
    }
    message(bytes);
    for line in bytes.split(|byte| *byte == b'\n') {
        message(line);
    }
}

fn lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Line> {
    let mut reader = LineReader::new(CAP);
    let mut lines = Vec::new();
    for piece in pieces {
        reader.buffer().extend_from_slice(piece);
        while let Some(line) = reader.next_line() {
            lines.push(line);
        }
        assert!(
            reader.buffer().len() <= CAP + 1,
            "more is held than the cap"
        );
    }
    lines.extend(reader.finish());
    lines
}

fn message(bytes: &[u8]) {
    let incoming = jsonrpc::read(bytes);
    assert!(!incoming.is_empty(), "nothing was said of a message");
    assert_eq!(
        incoming,
        jsonrpc::read(bytes),
        "the same bytes are read otherwise"
    );
    for incoming in &incoming {
        match incoming {
            Incoming::Answer(answer) => {
                if let AnswerOutcome::Malformed(why) = &answer.outcome {
                    assert!(answer.id.is_some(), "malformed, and nobody's");
                    assert!(why.chars().count() <= 600, "a long explanation");
                }
                written(answer);
            }
            Incoming::Request(request) => {
                let params = match &request.params {
                    Value::Object(params) => params.clone(),
                    _ => Map::new(),
                };
                let again = jsonrpc::request(&request.id, &request.method, &params);
                assert!(!again.contains(&b'\n'), "a line break in a message");
                let back = jsonrpc::read(&again);
                let [Incoming::Request(back)] = back.as_slice() else {
                    panic!("a request is none when it was written");
                };
                assert_eq!((&back.id, &back.method), (&request.id, &request.method));
                assert_eq!(back.params, Value::Object(params));
            }
            Incoming::Notification { .. } => {}
            Incoming::Unreadable(unreadable) => {
                assert!(unreadable.excerpt.chars().count() <= 201, "a long excerpt");
                assert!(!unreadable.reason.is_empty());
            }
        }
    }
    // The scanner, which sees the bytes alone, never names another id than the parser.
    if let Ok(Value::Object(object)) = serde_json::from_slice(bytes) {
        let mut scanner = IdScanner::new();
        scanner.feed(bytes);
        scanner.feed(b"\n");
        if let Some(id) = scanner.answer_id() {
            let parsed = object.get("id").and_then(RequestId::from_value);
            assert!(
                parsed.as_ref().is_none_or(|parsed| *parsed == id),
                "the scanner says {id}, the parser {parsed:?}"
            );
        }
    }
}

/// An answer that was read and is written is the same answer.
fn written(answer: &Answer) {
    let Some(id) = &answer.id else { return };
    let (bytes, outcome) = match &answer.outcome {
        AnswerOutcome::Result(result) => (
            jsonrpc::result_response(id, result),
            AnswerOutcome::Result(result.clone()),
        ),
        AnswerOutcome::Error(error) => (
            jsonrpc::error_response(Some(id), error),
            AnswerOutcome::Error(error.clone()),
        ),
        AnswerOutcome::Malformed(_) => return,
    };
    assert!(!bytes.contains(&b'\n'), "a line break in a message");
    let back = jsonrpc::read(&bytes);
    let expected = Incoming::Answer(Answer {
        id: Some(id.clone()),
        outcome,
    });
    assert_eq!(
        back,
        [expected],
        "an answer that was written is read otherwise"
    );
}

/// Any order of waiting, giving up and answers: two bytes a step.
pub fn correlate(data: &[u8]) {
    let mut correlator = Correlator::new();
    let mut open: HashSet<usize> = HashSet::new();
    let mut next = 0;
    for step in data.chunks_exact(2) {
        let [kind, which] = [step[0] % 6, step[1]];
        match kind {
            0 => {
                correlator.wait(own_id(next), next);
                open.insert(next);
                next += 1;
            }
            1 => {
                let n = usize::from(which);
                let was_open = open.remove(&n);
                assert_eq!(correlator.give_up(&own_id(n)), was_open);
            }
            2 => {
                let mut left = correlator.take_all();
                left.sort_unstable();
                let mut expected: Vec<usize> = open.drain().collect();
                expected.sort_unstable();
                assert_eq!(left, expected, "a waiter was lost with its connection");
            }
            _ => {
                let n = usize::from(which);
                let id = match kind {
                    3 => Some(own_id(n)),
                    4 => own_id(n).other_spelling(),
                    _ => None,
                };
                let outcome = if which & 1 == 0 {
                    AnswerOutcome::Result(Value::Null)
                } else {
                    AnswerOutcome::Error(JsonRpcError::new(1, "no"))
                };
                let alone = open.len() == 1 && which & 1 == 1;
                match correlator.settle(Answer {
                    id: id.clone(),
                    outcome,
                }) {
                    Settled::Waiter(waiter, _) => {
                        assert!(open.remove(&waiter), "a waiter got a second answer");
                        assert!(if id.is_some() { waiter == n } else { alone });
                    }
                    Settled::Late(_) | Settled::Stray(_) => {
                        assert!(id.is_none() || !open.contains(&n), "an answer was dropped");
                        assert!(id.is_some() || !alone);
                    }
                }
            }
        }
        assert_eq!(correlator.pending(), open.len());
    }
}

fn own_id(n: usize) -> RequestId {
    RequestId::Number(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Any answers while a connection opens: the choice, then JSON by lines; a line that is none
/// stands for no answer, and so does the end.
pub fn dialect(data: &[u8]) {
    const MOST_STEPS: usize = 8;
    let Some((&choice, rest)) = data.split_first() else {
        return;
    };
    let choice = [
        DialectChoice::Auto,
        DialectChoice::Detect,
        DialectChoice::Bare,
        DialectChoice::Legacy,
        DialectChoice::Modern,
    ][usize::from(choice) % 5];
    let mut replies = rest.split(|byte| *byte == b'\n');
    let (mut opening, mut step) = Opening::start(choice);
    for _ in 0..MOST_STEPS {
        match step {
            OpeningStep::Discover(version) => assert!(version.is_modern()),
            OpeningStep::Initialize(version) => {
                assert!(!version.is_modern());
                assert!(choice != DialectChoice::Modern, "it was to be stateless");
            }
            OpeningStep::Done(dialect, _) => {
                match dialect {
                    Dialect::Bare => assert!(choice == DialectChoice::Bare),
                    Dialect::Legacy(version) => {
                        assert!(!version.is_modern());
                        assert!(!matches!(
                            choice,
                            DialectChoice::Modern | DialectChoice::Bare
                        ));
                    }
                    Dialect::Modern(version) => {
                        assert!(version.is_modern());
                        assert!(!matches!(
                            choice,
                            DialectChoice::Legacy | DialectChoice::Bare
                        ));
                    }
                }
                return;
            }
            OpeningStep::Failed(failure) => {
                assert!(!format!("{failure:?}").is_empty());
                return;
            }
        }
        let answer = replies
            .next()
            .map(jsonrpc::read)
            .and_then(|mut read| read.pop());
        step = opening.reply(match answer {
            Some(Incoming::Answer(Answer {
                outcome: AnswerOutcome::Result(result),
                ..
            })) => OpeningReply::Result(result),
            Some(Incoming::Answer(Answer {
                outcome: AnswerOutcome::Error(error),
                ..
            })) => OpeningReply::Error(error),
            _ => OpeningReply::Nothing,
        });
    }
    panic!("opening asks for ever");
}
