use super::*;

/// The styles as words, so that a test can be read.
fn readable(text: &str) -> String {
    [
        ("\x1b[0m", "</>"),
        ("\x1b[1m", "<b>"),
        ("\x1b[2m", "<dim>"),
        ("\x1b[3m", "<i>"),
        ("\x1b[36m", "<code>"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (code, word)| {
        text.replace(code, word)
    })
}

fn whole(text: &str) -> String {
    let mut markdown = Markdown::default();
    let out = markdown.push(text);
    readable(&(out + &markdown.finish()))
}

fn in_pieces(text: &str) -> String {
    let mut markdown = Markdown::default();
    let mut out: String = text
        .chars()
        .map(|c| markdown.push(&c.to_string()))
        .collect();
    out.push_str(&markdown.finish());
    readable(&out)
}

#[track_caller]
fn check(text: &str, shown: &str) {
    assert_eq!(whole(text), shown, "{text:?}");
    assert_eq!(in_pieces(text), shown, "{text:?} in pieces");
}

#[test]
fn emphasis_and_code_are_styled() {
    check("a **bold** word", "a <b>bold</> word");
    check(
        "an *italic* one, _and_ this",
        "an <i>italic</> one, <i>and</> this",
    );
    check("***both***.", "<b><i>both</>.");
    check("use `x*y*z` here", "use <code>x*y*z</> here");
    check("``a ` b``", "<code>a ` b</>");
    check("**open", "<b>open</>");
    check("**a `b` c**", "<b>a </><b><code>b</><b> c</>");
}

#[test]
fn signs_that_mean_nothing_stay() {
    for text in [
        "2 * 3 * 4",
        "snake_case_name",
        "a ** b",
        "* ",
        "5 > 3",
        "#hashtag",
        "-5 degrees",
        "a_",
        "1. one",
        "`",
        "~",
    ] {
        let shown = if text == "* " { "• " } else { text };
        check(text, shown);
    }
    check("\\*not\\* \\a", "*not* \\a");
}

#[test]
fn lines_are_what_they_begin_with() {
    check("# Title\ntext", "<b>Title</>\ntext");
    check("- one\n  * two\n+ three", "• one\n  • two\n• three");
    check("> said\nmore", "<dim>│ said</>\nmore");
    check("---\n", &format!("<dim>{}</>\n", "─".repeat(24)));
    check("**Bold** begins", "<b>Bold</> begins");
    check("\n\n", "\n\n");
}

#[test]
fn a_fenced_block_is_shown_as_it_is() {
    check(
        "```rust\nlet a = **b**;\n\n`` ` x\n```\nafter *it*",
        "<dim>rust</>\n<code>let a = **b**;</>\n\n<code>`` ` x</>\nafter <i>it</>",
    );
    check("```\nopen", "\n<code>open</>");
    check("~~~\na\n```\n~~~\nb", "\n<code>a</>\n<code>```</>\nb");
    check("```\na\n```", "\n<code>a</>\n");
}

#[test]
fn styles_end_with_their_line_and_with_the_text() {
    check("*a\nb*", "<i>a</>\nb*");
    check("`a", "<code>a</>");
}

#[test]
fn what_steers_a_terminal_never_comes_out() {
    check("a\x1b[2Jb\x07", "a[2Jb");
}

#[test]
fn text_is_held_back_no_longer_than_needed() {
    let mut markdown = Markdown::default();
    assert_eq!(markdown.push("Hel"), "Hel");
    assert_eq!(markdown.push("lo *"), "lo ");
    assert_eq!(markdown.push("x"), "\x1b[3mx");
}
