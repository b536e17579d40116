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
    let text = format!("BEGIN{}END", "x".repeat(1_000));
    let cut = cut_middle(&text, 200);
    assert!(cut.starts_with("BEGIN") && cut.ends_with("END"), "{cut}");
    assert!(cut.len() <= 200);
    let left_out: usize = cut
        .split_once("[… ")
        .unwrap()
        .1
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let note = format!("\n[… {left_out} bytes were left out here …]\n");
    assert_eq!(left_out, text.len() - (cut.len() - note.len()));
}

#[test]
fn short_blocks_beside_a_long_one_stay_whole_and_other_content_stays() {
    let mut output = ToolOutput::content(vec![
        Content::text("a heading"),
        Content::image("AAAA", "image/png"),
        Content::text("y".repeat(5_000)),
    ]);
    let whole = ResultLimit::new(500)
        .keeping_whole()
        .apply(&mut output)
        .unwrap();
    assert_eq!(output.content.len(), 3);
    assert_eq!(output.content[0].as_text(), Some("a heading"));
    assert!(output.content[2].as_text().unwrap().len() <= 491);
    assert_eq!(output.details[WHOLE_OUTPUT], whole);
    assert_eq!(whole.len(), 5_010);
}

#[test]
fn details_that_are_there_are_kept_beside_the_whole() {
    for (details, key) in [(json!({ "a": 1 }), "/a"), (json!(1), "/details")] {
        let mut output = ToolOutput::text("z".repeat(300)).with_details(details);
        ResultLimit::new(100).keeping_whole().apply(&mut output);
        assert_eq!(output.details.pointer(key), Some(&json!(1)));
        assert_eq!(
            output.details[WHOLE_OUTPUT].as_str().map(str::len),
            Some(300)
        );
    }
}

proptest! {
    #[test]
    fn a_cut_text_is_never_longer_than_its_limit(text in ".{0,400}", limit in 0_usize..500) {
        let cut = cut_middle(&text, limit);
        prop_assert!(cut.len() <= limit.max(text.len().min(limit)));
        if text.len() <= limit {
            prop_assert_eq!(cut, text);
        }
    }
}
