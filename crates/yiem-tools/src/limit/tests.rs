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

fn resource(uri: &str, title: Option<&str>, body: ResourceBody) -> Content {
    Content::Resource(yiem_core::ResourceContent {
        uri: uri.to_owned(),
        mime_type: None,
        title: title.map(str::to_owned),
        body,
        extra: Default::default(),
    })
}

#[test]
fn the_text_of_a_resource_is_text_and_its_name_is_no_text() {
    let long = "r".repeat(5_000);
    let mut output = ToolOutput::content(vec![
        Content::text("short"),
        resource("file:///a", None, ResourceBody::Text(long.clone())),
        resource(
            &"u".repeat(9_000),
            Some(&"t".repeat(9_000)),
            ResourceBody::Link,
        ),
    ]);
    let whole = ResultLimit::new(500).apply(&mut output).unwrap();
    assert_eq!(whole, format!("short\n{long}"));
    let shown: Vec<String> = output.content.iter().map(Content::to_plain_text).collect();
    assert_eq!(shown[0], "short");
    assert_eq!(shown[1], cut_middle(&long, 495));
    assert!(matches!(output.content[1], Content::Resource(_)));
    assert!(
        shown[2].len() < 5_000 && shown[2].contains("bytes left out"),
        "{}",
        shown[2]
    );
}

#[test]
fn a_million_pieces_are_cut_as_one_text() {
    let mut blocks = vec![Content::text("ab"); 100_000];
    blocks.insert(1, Content::image("AAAA", "image/png"));
    let mut output = ToolOutput::content(blocks);
    let whole = ResultLimit::new(1_000).apply(&mut output).unwrap();
    assert_eq!(whole.len(), 299_999);
    assert_eq!(output.content.len(), 2);
    assert_eq!(
        output.content[0].as_text(),
        Some(&*cut_middle(&whole, 1_000))
    );
    assert!(matches!(output.content[1], Content::Image(_)));
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
