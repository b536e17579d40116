use super::*;

#[test]
fn a_line_border_inside_crlf_gives_one_line_end() {
    let mut reader = SseReader::new();
    let mut seen = Vec::new();
    for piece in [&b"data: a\r"[..], b"\n", b"\r", b"\ndata: b\r\r"] {
        reader
            .feed(piece, |event| seen.push(event.data.to_owned()))
            .unwrap();
    }
    assert_eq!(seen, ["a", "b"]);
}

#[test]
fn nothing_is_held_back_when_an_event_ends_in_cr() {
    let mut reader = SseReader::new();
    let mut seen = 0;
    reader.feed(b"data: a\r\r", |_| seen += 1).unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn buffers_are_given_up_when_a_bound_is_reached() {
    let mut reader = SseReader::with_limits(SseLimits {
        event_bytes: 10,
        ..SseLimits::default()
    });
    let error = reader.feed(&[b'x'; 11], |_| {}).unwrap_err();
    assert_eq!(error, SseError::EventTooLong { limit: 10 });
    assert_eq!(reader.line.capacity() + reader.data.capacity(), 0);
    assert_eq!(reader.feed(b"\n\n", |_| {}), Err(error));
    assert_eq!(reader.finish(|_| {}), Err(error));
}

#[test]
fn a_cut_byte_order_mark_at_the_end_is_a_line() {
    let mut reader = SseReader::new();
    reader.feed(&[0xEF, 0xBB], |_| {}).unwrap();
    assert_eq!(reader.kind(), BodyKind::Empty);
    reader.finish(|_| panic!("no event")).unwrap();
}
