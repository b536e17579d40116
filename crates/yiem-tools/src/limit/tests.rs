use proptest::prelude::*;

use super::*;

#[test]
fn a_result_within_its_limit_stays_as_it_is() {
    let mut output = ToolOutput::text("short");
    let before = output.clone();
    assert_eq!(ResultLimit::new(5).apply(&mut output), None);
    assert_eq!(ResultLimit::new(0).apply(&mut output), None);
    assert_eq!(output, before);
}

#[test]
fn the_ends_stay_and_the_note_says_how_much_is_missing() {
    assert_eq!(
        cut_middle("0123456789abcdefghij", 10),
        "01234\n[… 10 bytes left out …]\nfghij"
    );
    assert_eq!(cut_middle("0123456789", 0), "\n[… 10 bytes left out …]\n");
    // A character is never parted: what does not fit whole is left out.
    assert_eq!(cut_middle("ääääääää", 6), "ä\n[… 12 bytes left out …]\nä");
}

#[test]
fn short_blocks_beside_a_long_one_stay_whole_and_other_content_stays() {
    let mut output = ToolOutput::content(vec![
        Content::text("a heading"),
        Content::image("AAAA", "image/png"),
        Content::text("y".repeat(5_000)),
    ]);
    let whole = ResultLimit::new(500)
        .with_whole(WholeOutput::InDetails)
        .apply(&mut output)
        .unwrap();
    assert_eq!(output.content.len(), 3);
    assert_eq!(output.content[0].as_text(), Some("a heading"));
    assert_eq!(
        output.content[2].as_text().unwrap(),
        cut_middle(&"y".repeat(5_000), 491)
    );
    assert_eq!(output.details[WHOLE_OUTPUT], whole);
    assert_eq!(whole.len(), 5_010);
}

#[test]
fn details_that_are_there_are_kept_beside_the_whole() {
    for (details, key) in [(json!({ "a": 1 }), "/a"), (json!(1), "/details")] {
        let mut output = ToolOutput::text("z".repeat(300)).with_details(details);
        ResultLimit::new(100)
            .with_whole(WholeOutput::InDetails)
            .apply(&mut output);
        assert_eq!(output.details.pointer(key), Some(&json!(1)));
        assert_eq!(
            output.details[WHOLE_OUTPUT].as_str().map(str::len),
            Some(300)
        );
    }
}

proptest! {
    #[test]
    fn what_is_kept_and_what_is_missing_make_up_the_text(text in ".{0,400}", limit in 0_usize..500) {
        let cut = cut_middle(&text, limit);
        if text.len() <= limit {
            prop_assert_eq!(cut, text);
        } else {
            let (head, rest) = cut.split_once("\n[… ").unwrap();
            let (missing, tail) = rest.split_once(" bytes left out …]\n").unwrap();
            prop_assert!(head.len() + tail.len() <= limit);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert_eq!(head.len() + tail.len() + missing.parse::<usize>().unwrap(), text.len());
        }
    }
}
