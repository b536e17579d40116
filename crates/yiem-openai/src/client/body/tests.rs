use super::*;

fn frames(mut body: RequestBody) -> Vec<Bytes> {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let mut all = Vec::new();
    loop {
        let left: usize = body.pieces.iter().map(Bytes::len).sum();
        assert_eq!(body.size_hint().exact(), Some(left as u64));
        assert_eq!(body.is_end_stream(), left == 0);
        match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => all.push(frame.into_data().unwrap()),
            Poll::Ready(None) => return all,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn pieces_go_in_order_and_empty_ones_not_at_all() {
    for (head, messages) in [("[", "1,2]"), ("[]", ""), ("", ""), ("", "1")] {
        let shared = |text: &str| Arc::new(text.as_bytes().to_vec());
        let frames = frames(RequestBody::new(shared(head), shared(messages)));
        assert!(frames.iter().all(|frame| !frame.is_empty()));
        assert_eq!(frames.concat(), [head, messages].concat().as_bytes());
    }
}

#[test]
fn messages_are_not_copied_and_are_let_go_when_they_have_gone() {
    let messages = Arc::new(b"1,2".to_vec());
    let body = RequestBody::new(Arc::new(b"[".to_vec()), Arc::clone(&messages));
    let frames = frames(body);
    assert_eq!(frames[1].as_ptr(), messages.as_ptr());
    drop(frames);
    assert_eq!(Arc::strong_count(&messages), 1);
}
