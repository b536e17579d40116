//! Inputs with the events that come out of them.

use yiem_sse::{BodyKind, SseReader};

/// An event as the corpus writes it: name, data, last id.
pub(crate) type Seen = (Option<String>, String, Option<String>);

pub(crate) struct Sample {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub events: Vec<Seen>,
    pub kind: BodyKind,
}

fn sample(name: &'static str, bytes: impl AsRef<[u8]>, data: &[&str]) -> Sample {
    Sample {
        name,
        bytes: bytes.as_ref().to_vec(),
        events: data
            .iter()
            .map(|data| (None, (*data).to_owned(), None))
            .collect(),
        kind: BodyKind::Events,
    }
}

fn named(
    name: &'static str,
    bytes: impl AsRef<[u8]>,
    events: &[(Option<&str>, &str, Option<&str>)],
) -> Sample {
    let own = |text: Option<&str>| text.map(str::to_owned);
    Sample {
        events: events
            .iter()
            .map(|(n, d, i)| (own(*n), (*d).to_owned(), own(*i)))
            .collect(),
        ..sample(name, bytes, &[])
    }
}

fn other(name: &'static str, bytes: impl AsRef<[u8]>, kind: BodyKind) -> Sample {
    Sample {
        kind,
        ..sample(name, bytes, &[])
    }
}

pub(crate) fn corpus() -> Vec<Sample> {
    let mut all = vec![
        sample("lf", "data: a\n\ndata: b\n\n", &["a", "b"]),
        sample("crlf", "data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        sample("cr", "data: a\r\rdata: b\r\r", &["a", "b"]),
        sample("lf_then_crlf", "data: a\n\r\ndata: b\r\n\n", &["a", "b"]),
        sample("cr_then_lf_line", "data: a\rdata: b\n\r", &["a\nb"]),
        sample("crlf_cr", "data: a\r\n\rdata: b\r\r\n", &["a", "b"]),
        sample(
            "many_blank_lines",
            "\n\n\r\n\rdata: a\n\n\n\n\ndata: b\n\n\n",
            &["a", "b"],
        ),
        sample(
            "no_space",
            "data:a\n\ndata:  two spaces\n\n",
            &["a", " two spaces"],
        ),
        sample("tab_is_not_a_space", "data:\ta\n\n", &["\ta"]),
        sample("no_colon", "data\n\n", &[""]),
        sample(
            "empty_data",
            "data:\n\ndata: \n\ndata: x\n\n",
            &["", "", "x"],
        ),
        sample("two_empty_data_lines", "data\ndata\n\n", &["\n"]),
        sample(
            "several_data_lines",
            "data: a\ndata:\ndata: c\n\n",
            &["a\n\nc"],
        ),
        sample(
            "data_around_a_comment",
            "data: a\n: note\ndata: b\n\n",
            &["a\nb"],
        ),
        sample(
            "comment_events",
            ": OPENROUTER PROCESSING\n\n:\n\n:x\n\ndata: a\n\n",
            &["a"],
        ),
        sample(
            "unknown_fields",
            "foo: 1\nbar\ndatax: no\ndat: no\ndata: a\n\n",
            &["a"],
        ),
        sample(
            "field_names_have_case",
            "Data: no\nDATA: no\ndata: a\n\n",
            &["a"],
        ),
        sample("space_before_field", " data: no\ndata: a\n\n", &["a"]),
        sample(
            "colons_in_data",
            "data: {\"a\": \"b:c\"}\n\n",
            &["{\"a\": \"b:c\"}"],
        ),
        sample("mark", b"\xEF\xBB\xBFdata: a\n\n", &["a"]),
        sample(
            "mark_only_once",
            b"\xEF\xBB\xBF\xEF\xBB\xBFdata: no\n\ndata: a\n\n",
            &["a"],
        ),
        sample(
            "mark_later_is_data",
            b"\ndata: \xEF\xBB\xBFa\n\n",
            &["\u{feff}a"],
        ),
        sample("half_mark", b"\xEF\xBBdata: no\n\ndata: a\n\n", &["a"]),
        sample("unterminated_line", "data: a\n\ndata: b", &["a", "b"]),
        sample("unterminated_event", "data: a\n\ndata: b\n", &["a", "b"]),
        sample(
            "unterminated_crlf",
            "data: a\r\n\r\ndata: b\r\n",
            &["a", "b"],
        ),
        sample("unterminated_cr", "data: a\r\rdata: b\r", &["a", "b"]),
        sample("unterminated_comment", "data: a\n\n: bye", &["a"]),
        sample("multibyte", "data: 你好 🦀\n\n", &["你好 🦀"]),
        sample(
            "bad_utf8",
            b"data: a\xFFb\xC3\n\ndata: \xF0\x9F\n\n",
            &["a\u{fffd}b\u{fffd}", "\u{fffd}"],
        ),
        sample(
            "surrogate_bytes",
            b"data: \xED\xA0\x80\n\n",
            &["\u{fffd}\u{fffd}\u{fffd}"],
        ),
        sample("nul_in_data", "data: a\0b\n\n", &["a\0b"]),
        sample(
            "line_separators_are_text",
            "data: a\u{2028}b\u{85}c\u{b}d\n\n",
            &["a\u{2028}b\u{85}c\u{b}d"],
        ),
        sample("done", "data: {}\n\ndata: [DONE]\n\n", &["{}", "[DONE]"]),
        named(
            "event_names",
            "event: ping\ndata: a\n\ndata: b\n\nevent:\ndata: c\n\n",
            &[
                (Some("ping"), "a", None),
                (None, "b", None),
                (None, "c", None),
            ],
        ),
        named(
            "last_event_name_counts",
            "event: a\nevent: b\ndata: x\n\n",
            &[(Some("b"), "x", None)],
        ),
        named(
            "name_without_data",
            "event: ping\n\ndata: b\n\n",
            &[(None, "b", None)],
        ),
        named(
            "ids_stay",
            "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: 2\n\ndata: d\n\n",
            &[
                (None, "a", Some("1")),
                (None, "b", Some("1")),
                (None, "c", Some("")),
                (None, "d", Some("2")),
            ],
        ),
        named(
            "id_with_nul_is_ignored",
            "id: 1\nid: a\0b\ndata: a\n\n",
            &[(None, "a", Some("1"))],
        ),
        named(
            "priming_event",
            "id: 7\nretry: 500\ndata:\n\n",
            &[(None, "", Some("7"))],
        ),
        other("nothing", "", BodyKind::Empty),
        other("white_space", " \r\n\t\n", BodyKind::Empty),
        other("json_object", "{\"a\": 1}\n", BodyKind::Json),
        other("json_array_after_space", "\r\n  [\n1]", BodyKind::Json),
        other("json_after_mark", b"\xEF\xBB\xBF{}", BodyKind::Json),
        other(
            "json_with_lines_like_events",
            "{\"a\":\ndata: x\n\n}",
            BodyKind::Json,
        ),
        other(
            "markup",
            "<!DOCTYPE html>\n<p>data: x\n\n",
            BodyKind::Markup,
        ),
        other("plain_words", "upstream connect error\n", BodyKind::Events),
    ];
    let long = "x".repeat(70_000);
    all.push(sample("long_line", format!("data: {long}\n\n"), &[&long]));
    all
}

/// Reads the pieces to their end.
pub(crate) fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, SseReader) {
    let mut reader = SseReader::new();
    let mut seen = Vec::new();
    let mut keep = |event: yiem_sse::Event<'_>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        seen.push((own(event.name), event.data.to_owned(), own(event.id)));
    };
    for piece in pieces {
        reader.feed(piece, &mut keep).expect("within bounds");
    }
    reader.finish(&mut keep).expect("within bounds");
    (seen, reader)
}

#[test]
fn every_sample_gives_its_events() {
    for sample in corpus() {
        let (seen, reader) = read([&sample.bytes[..]]);
        assert_eq!(seen, sample.events, "{}", sample.name);
        assert_eq!(reader.kind(), sample.kind, "{}", sample.name);
    }
}

#[test]
fn a_body_that_is_no_stream_is_kept_whole() {
    for text in ["{\"a\":\n 1}", "[1]", "<html>\n</html>"] {
        let (seen, reader) = read(text.as_bytes().chunks(3));
        assert!(seen.is_empty());
        assert_eq!(reader.body(), text.as_bytes());
    }
}

#[test]
fn retry_is_read_when_it_is_a_number() {
    for (text, expected) in [
        ("retry: 3000\n", Some(3000)),
        ("retry: 1\nretry: x\n", Some(1)),
        ("retry: -1\n", None),
        ("retry: 99999999999999999999999\n", None),
        ("retry:\n", None),
    ] {
        let (_, reader) = read([text.as_bytes()]);
        assert_eq!(reader.retry_ms(), expected, "{text:?}");
    }
}

#[test]
fn the_last_id_is_known_without_an_event() {
    let (_, reader) = read([&b"id: 42\n\n"[..]]);
    assert_eq!(reader.last_event_id(), Some("42"));
}

#[test]
fn the_first_stray_line_is_told() {
    let (_, reader) = read([&b"upstream connect error\nmore\n"[..]]);
    assert_eq!(reader.stray_line(), Some("upstream connect error"));
    let (_, reader) = read([&b": note\nid: 1\nretry: x\ndata: a\n\n"[..]]);
    assert_eq!(reader.stray_line(), None);
}
