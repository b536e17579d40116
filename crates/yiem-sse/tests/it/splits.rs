//! The same bytes give the same events however they are cut.

use proptest::prelude::*;

use crate::corpus::{corpus, read};

#[test]
fn every_sample_is_the_same_split_at_every_byte() {
    for sample in corpus().iter().filter(|sample| sample.bytes.len() < 1_000) {
        for at in 0..=sample.bytes.len() {
            let (head, tail) = sample.bytes.split_at(at);
            let (seen, reader) = read([head, tail]);
            assert_eq!(seen, sample.events, "{} at {at}", sample.name);
            assert_eq!(reader.kind(), sample.kind, "{} at {at}", sample.name);
            let (_, whole) = read([&sample.bytes[..]]);
            assert_eq!(reader.body(), whole.body(), "{} at {at}", sample.name);
        }
        let (seen, _) = read(sample.bytes.chunks(1));
        assert_eq!(seen, sample.events, "{} byte by byte", sample.name);
    }
}

fn soup() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: [&[u8]; 15] = [
        b"data",
        b"data: ",
        b"event:",
        b"id: 1",
        b":",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xEF\xBB\xBF",
        b"\xFF",
        b"{",
        b"x",
        b" ",
        b"\xC3\xA9",
    ];
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_what_they_give_whole(
        bytes in soup(),
        cuts in prop::collection::vec(0usize..200, 0..8),
    ) {
        let (whole, reader) = read([&bytes[..]]);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let (pieces, cut) = read(cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]));
        prop_assert_eq!(whole, pieces);
        prop_assert_eq!((reader.kind(), reader.body()), (cut.kind(), cut.body()));
    }
}
