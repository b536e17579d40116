//! Any bytes as server-sent events: in any pieces the same events, and never more than the bound.

use yiem_sse::{SseError, SseLimits, SseReader};

use super::counting::{pieces, seed};

type Seen = (
    Vec<(Option<String>, String, Option<String>)>,
    Vec<u8>,
    Option<u64>,
);

/// Any bytes: the number that the pieces follow from, then the body.
pub fn sse(data: &[u8]) {
    let Some((seed, body)) = seed(data) else {
        return;
    };
    let one = read(SseLimits::default(), [body]).expect("within the bounds");
    let several = read(SseLimits::default(), pieces(body, seed)).expect("within the bounds");
    assert_eq!(one, several, "other events in other pieces");
    let single = read(SseLimits::default(), body.chunks(1)).expect("within the bounds");
    assert_eq!(one, single, "other events byte by byte");

    let limits = SseLimits {
        event_bytes: 40,
        body_bytes: 100,
    };
    let reader_or_error = read(limits, pieces(body, seed));
    if let Ok((events, kept, _)) = reader_or_error {
        // A byte that is no UTF-8 becomes three.
        assert!(events.iter().all(|(_, data, _)| data.len() <= 3 * 40));
        assert!(kept.len() <= 100);
    }
}

fn read<'a>(
    limits: SseLimits,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Seen, SseError> {
    let mut reader = SseReader::with_limits(limits);
    let mut events = Vec::new();
    let mut fed = Ok(());
    for piece in pieces {
        fed = reader.feed(piece, |event| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            events.push((own(event.name), event.data.to_owned(), own(event.id)));
        });
        if let Err(error) = fed {
            assert_eq!(reader.feed(b"x", |_| panic!("an event")), Err(error));
            assert!(reader.body().is_empty(), "a refused body is kept");
        }
    }
    fed?;
    reader.finish(|event| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        events.push((own(event.name), event.data.to_owned(), own(event.id)));
    })?;
    Ok((events, reader.body().to_vec(), reader.retry_ms()))
}
