use super::*;

#[test]
fn comments_and_literals_are_blanked_and_lines_stay() {
    let source = "let a = \"tokio \\\" x\"; // tokio\n/* tokio /* in */ tokio */ let b = r#\"tokio\"#;\nlet c = '\"'; let d: &'a str = b\"tokio\";";
    let code = code_only(source);
    assert!(!code.contains("tokio"), "{code}");
    assert_eq!(code.lines().count(), 3);
    assert!(
        code.contains("let b =") && code.contains("let c =") && code.contains("&'a str"),
        "{code}"
    );
}

#[test]
fn raw_identifiers_and_names_that_end_in_r_are_code() {
    assert_eq!(code_only("let r#type = for_r;"), "let r#type = for_r;");
}

#[test]
fn items_are_told_apart_with_attributes_and_bodies() {
    let code = "#![warn(x)]\npub use a::{b, c};\n#[cfg(feature)]\npub mod d;\npub mod e {\n    pub use f::g;\n}\nfn h() { let x = { 1 }; }\nconst I: u8 = { 2 };\n";
    let found = items(code, 1);
    let heads: Vec<(&str, usize)> = found
        .iter()
        .map(|item| (item.head.as_str(), item.line))
        .collect();
    assert_eq!(
        heads,
        [
            ("pub use a::", 2),
            ("pub mod d", 4),
            ("pub mod e", 5),
            ("fn h()", 8),
            ("const I: u8 =", 9)
        ]
    );
    assert_eq!(
        found[2].body.as_deref().map(str::trim),
        Some("pub use f::g;")
    );
    assert!(found[1].attributes.contains("cfg"));
}

#[test]
fn an_item_with_braces_ends_with_them() {
    let code = "pub fn f(i: impl Iterator<Item = u8>) -> u8 { 1 }\npub const fn g() {}\nuse a::{b};\nfn h() {}";
    assert_eq!(items(code, 1).len(), 4);
}

#[test]
fn a_word_is_found_whole_only() {
    assert!(holds_word("x.await?", ".await"));
    assert!(!holds_word("x.awaited", ".await"));
    assert!(!holds_word("my_tokio::x", "tokio::"));
    assert_eq!(line_of_word("a\nb tokio::x", "tokio::"), Some(2));
}

#[test]
fn tests_of_all_kinds_are_found() {
    let source = "#[test]\nfn a() {}\n#[tokio::test(start_paused = true)]\nasync fn b() {}\nfn no() {}\nproptest! {\n    #[test]\n    fn c(x in 0..3) {}\n}\n#[cfg(test)]\nmod d { fn e() {} }\n";
    assert_eq!(test_names(source), ["a", "b", "c"]);
}
