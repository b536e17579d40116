//! 20,000 events of a chat stream, in pieces as a socket gives them, beside `sse-stream` on the
//! same bytes.
//!
//! Times: `cargo bench -p yiem-sse`. Instructions, which no load disturbs: one case alone under a
//! counter at two numbers of rounds, and the difference of the two:
//!
//! ```text
//! valgrind --tool=callgrind target/release/deps/reader-… count yiem 1
//! ```

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use sse_stream::SseStream;
use yiem_sse::SseReader;

const EVENTS: usize = 20_000;
/// What a socket gives at a time.
const PIECE: usize = 16 << 10;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, command, case, rounds, ..] = words.as_slice()
        && command == "count"
    {
        let (pieces, expected) = (pieces(), expected());
        for _ in 0..rounds.parse().expect("a number") {
            let read = match case.as_str() {
                "yiem" => yiem(&pieces),
                "sse_stream" => sse_stream(&pieces),
                other => panic!("there is no case {other}"),
            };
            assert_eq!(read, expected);
        }
        return;
    }
    divan::main();
}

fn event(n: usize) -> String {
    format!(
        "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"mock\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word{} \"}},\"finish_reason\":null}}]}}",
        n % 1_000
    )
}

fn pieces() -> Vec<Bytes> {
    let body: String = (0..EVENTS)
        .map(|n| format!("data: {}\n\n", event(n)))
        .collect();
    body.as_bytes()
        .chunks(PIECE)
        .map(Bytes::copy_from_slice)
        .collect()
}

/// How many events there are, and how many bytes of data.
fn expected() -> (usize, usize) {
    (EVENTS, (0..EVENTS).map(|n| event(n).len()).sum())
}

fn yiem(pieces: &[Bytes]) -> (usize, usize) {
    let mut reader = SseReader::new();
    let (mut events, mut bytes) = (0, 0);
    for piece in pieces {
        reader
            .feed(piece, |event| {
                events += 1;
                bytes += event.data.len();
            })
            .expect("within the bounds");
    }
    (events, bytes)
}

fn sse_stream(pieces: &[Bytes]) -> (usize, usize) {
    let body = stream::iter(
        pieces
            .iter()
            .map(|piece| Ok::<_, std::io::Error>(piece.clone())),
    );
    SseStream::from_bytes_stream(body)
        .fold((0, 0), |(events, bytes), event| async move {
            let data = event.expect("an event").data.unwrap_or_default();
            (events + 1, bytes + data.len())
        })
        .now_or_never()
        .expect("nothing waits")
}

#[divan::bench(name = "yiem")]
fn yiem_bench(bencher: divan::Bencher<'_, '_>) {
    let pieces = pieces();
    bencher.bench_local(|| yiem(&pieces));
}

#[divan::bench(name = "sse_stream")]
fn sse_stream_bench(bencher: divan::Bencher<'_, '_>) {
    let pieces = pieces();
    bencher.bench_local(|| sse_stream(&pieces));
}
