//! Decoding a stream of 20,000 deltas, beside a bare loop that parses each chunk with borrowed
//! typed serde and appends the text.
//!
//! Times: `cargo bench -p yiem-openai --bench stream`. Instructions, which no load disturbs: one
//! case alone under a counter at two numbers of rounds, and the difference of the two:
//!
//! ```text
//! valgrind --tool=callgrind target/release/deps/stream-… count text_yiem 1
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use yiem_core::{AssistantMessage, MessageAssembler, SystemEnv};
use yiem_openai::{Asked, ChunkDecoder, ReadOptions};

const DELTAS: usize = 20_000;
/// What a socket gives at a time.
const PIECE: usize = 16 << 10;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, command, case, rounds, ..] = words.as_slice()
        && command == "count"
    {
        let bytes = if case.starts_with("text") {
            text_stream()
        } else {
            arguments_stream()
        };
        for _ in 0..rounds.parse().expect("a number") {
            match case.as_str() {
                "text_floor" | "arguments_floor" => drop(divan::black_box(floor(&bytes))),
                "text_yiem" | "arguments_yiem" => drop(divan::black_box(decode(&bytes))),
                other => panic!("there is no case {other}"),
            }
        }
        return;
    }
    divan::main();
}

fn text_stream() -> Vec<u8> {
    let mut out = Vec::new();
    for n in 0..DELTAS {
        chunk(
            &mut out,
            &format!("{{\"content\":\"word{} \"}}", n % 1_000),
            "null",
        );
    }
    chunk(&mut out, "{}", "\"stop\"");
    out.extend_from_slice(b"data: [DONE]\n\n");
    out
}

fn arguments_stream() -> Vec<u8> {
    let mut out = Vec::new();
    let call = |fragment: &str| {
        format!(
            "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{fragment}\"}}}}]}}"
        )
    };
    chunk(
        &mut out,
        "{\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"write\",\"arguments\":\"{\\\"content\\\":\\\"\"}}]}",
        "null",
    );
    for n in 0..DELTAS {
        chunk(&mut out, &call(&format!("word{} ", n % 1_000)), "null");
    }
    chunk(&mut out, &call("\\\"}"), "null");
    chunk(&mut out, "{}", "\"tool_calls\"");
    out.extend_from_slice(b"data: [DONE]\n\n");
    out
}

fn chunk(out: &mut Vec<u8>, delta: &str, finish: &str) {
    out.extend_from_slice(b"data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"mock\",\"choices\":[{\"index\":0,\"delta\":");
    out.extend_from_slice(delta.as_bytes());
    out.extend_from_slice(b",\"finish_reason\":");
    out.extend_from_slice(finish.as_bytes());
    out.extend_from_slice(b"}]}\n\n");
}

#[divan::bench]
fn text_floor(bencher: divan::Bencher<'_, '_>) {
    let bytes = text_stream();
    bencher.bench_local(|| floor(&bytes));
}

#[divan::bench]
fn text_yiem(bencher: divan::Bencher<'_, '_>) {
    let bytes = text_stream();
    bencher.bench_local(|| decode(&bytes));
}

#[divan::bench]
fn arguments_floor(bencher: divan::Bencher<'_, '_>) {
    let bytes = arguments_stream();
    bencher.bench_local(|| floor(&bytes));
}

#[divan::bench]
fn arguments_yiem(bencher: divan::Bencher<'_, '_>) {
    let bytes = arguments_stream();
    bencher.bench_local(|| decode(&bytes));
}

fn decode(bytes: &[u8]) -> AssistantMessage {
    let mut decoder = ChunkDecoder::new(
        Asked::Stream,
        ReadOptions::default(),
        SystemEnv::shared() as Arc<_>,
    );
    let mut assembler = MessageAssembler::new();
    for piece in bytes.chunks(PIECE) {
        decoder.feed(piece);
        while let Some(event) = decoder.next() {
            if let Some(message) = assembler.push(event.expect("a good stream")) {
                return message;
            }
        }
    }
    decoder.finish();
    while let Some(event) = decoder.next() {
        if let Some(message) = assembler.push(event.expect("a good stream")) {
            return message;
        }
    }
    panic!("the stream has an end")
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    arguments: Cow<'a, str>,
}

fn floor(bytes: &[u8]) -> (String, String) {
    let (mut text, mut arguments) = (String::new(), String::new());
    let mut held: Vec<u8> = Vec::new();
    for piece in bytes.chunks(PIECE) {
        held.extend_from_slice(piece);
        let mut at = 0;
        while let Some(end) = memchr::memchr(b'\n', &held[at..]) {
            let line = &held[at..at + end];
            at += end + 1;
            let Some(data) = line.strip_prefix(b"data: ") else {
                continue;
            };
            if data == b"[DONE]" {
                break;
            }
            let chunk: Chunk<'_> = serde_json::from_slice(data).expect("a chunk");
            for choice in chunk.choices {
                if let Some(content) = choice.delta.content {
                    text.push_str(&content);
                }
                for call in choice.delta.tool_calls {
                    arguments.push_str(&call.function.arguments);
                }
            }
        }
        held.drain(..at);
    }
    (text, arguments)
}
