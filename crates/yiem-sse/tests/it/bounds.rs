//! What the reader refuses, and that its work and memory stay in proportion.

use yiem_sse::{BodyKind, SseError, SseLimits, SseReader};

const MIB: usize = 1 << 20;

fn small() -> SseReader {
    SseReader::with_limits(SseLimits {
        event_bytes: MIB,
        body_bytes: MIB,
    })
}

/// Feeds up to 100 MB in pieces; gives the error and after how many bytes it came.
fn flood(reader: &mut SseReader, piece: &[u8]) -> Option<(SseError, usize)> {
    flood_with(reader, piece, 100 * MIB)
}

fn flood_with(reader: &mut SseReader, piece: &[u8], total: usize) -> Option<(SseError, usize)> {
    let mut fed = 0;
    while fed < total {
        fed += piece.len();
        if let Err(error) = reader.feed(piece, |_| {}) {
            return Some((error, fed));
        }
    }
    None
}

#[test]
fn a_hundred_megabytes_without_a_newline_end_at_the_bound() {
    let piece = vec![b'x'; 64 << 10];
    let (error, fed) = flood(&mut small(), &piece).expect("an error");
    assert_eq!(error, SseError::EventTooLong { limit: MIB });
    assert!(fed <= MIB + piece.len());
}

#[test]
fn a_hundred_megabytes_in_one_piece_are_refused_too() {
    let mut piece = b"data: ".to_vec();
    piece.resize(100 * MIB, b'x');
    assert!(small().feed(&piece, |_| {}).is_err());
    piece.push(b'\n');
    assert!(small().feed(&piece, |_| {}).is_err());
}

#[test]
fn data_lines_without_a_blank_line_end_at_the_bound() {
    let (error, _) = flood(&mut small(), &b"data: xxxxxxxx\n".repeat(1_000)).expect("an error");
    assert_eq!(error, SseError::EventTooLong { limit: MIB });
}

#[test]
fn endless_events_and_comments_are_no_reason_to_stop() {
    let mut reader = SseReader::with_limits(SseLimits {
        event_bytes: 1_000,
        body_bytes: 1_000,
    });
    for piece in b"data: xxxxxxxx\n\n: note\n".repeat(1_000).chunks(100) {
        reader.feed(piece, |_| {}).unwrap();
    }
}

#[test]
fn a_plain_body_is_bounded() {
    let mut reader = small();
    reader.feed(b"{", |_| {}).unwrap();
    assert_eq!(reader.kind(), BodyKind::Json);
    let (error, _) = flood(&mut reader, &[b' '; 4096]).expect("an error");
    assert_eq!(error, SseError::BodyTooLong { limit: MIB });
}

#[test]
fn events_before_the_bound_are_handed_out() {
    let mut reader = small();
    let mut bytes = b"data: a\n\ndata: ".to_vec();
    bytes.resize(2 * MIB, b'x');
    let mut seen = Vec::new();
    reader
        .feed(&bytes, |event| seen.push(event.data.to_owned()))
        .unwrap_err();
    assert_eq!(seen, ["a"]);
}

#[test]
fn errors_say_what_to_do() {
    let text = SseError::EventTooLong { limit: 5 }.to_string();
    assert!(text.contains("5 bytes") && text.contains("limit"), "{text}");
}

/// One megabyte line in single bytes: quadratic work would not come back.
#[test]
fn single_bytes_cost_no_more_than_their_number() {
    let mut reader = SseReader::new();
    let mut line = b"data: ".to_vec();
    line.resize(MIB, b'x');
    line.extend_from_slice(b"\n\n");
    let mut events = 0;
    for byte in line.chunks(1) {
        reader
            .feed(byte, |event| {
                events += usize::from(event.data.len() == MIB - 6)
            })
            .unwrap();
    }
    assert_eq!(events, 1);
}
