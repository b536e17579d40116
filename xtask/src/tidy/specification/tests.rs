use super::*;

fn known() -> Known {
    let mut known = Known::default();
    known.crates.push((
        "yiem_core".to_owned(),
        "pub struct Message { pub role: Role } impl Message { pub fn text(&self) {} }".to_owned(),
    ));
    known.crates.push(("yiem_tests".to_owned(), String::new()));
    for (krate, file, test) in [
        ("yiem_core", "src/message/tests", "reads_back"),
        ("yiem_tests", "it/hooks", "order_holds"),
        ("yiem_core", "tests/it/json", "is_camel"),
    ] {
        known
            .tests
            .insert((krate.to_owned(), file.to_owned(), test.to_owned()));
    }
    known
}

fn about(row: &str) -> Vec<String> {
    let all = findings(
        &format!("| id | what | item | test |\n| --- | --- | --- | --- |\n{row}\n"),
        &known(),
        &|file| file == "docs/mcp.md",
    );
    all.into_iter()
        .filter(|finding| finding.contains("specification.md:"))
        .collect()
}

#[test]
fn rows_whose_items_and_tests_exist_are_accepted() {
    for row in [
        "| C-1 | x | `yiem_core::message::Message` | `yiem_core::message::tests::reads_back` |",
        "| C-1 | x | `yiem_core::Message::text` | `yiem_core::it::json::is_camel` |",
        "| C-1 | x | `yiem_core::Message::role`, `docs/mcp.md` | `tests/it/hooks.rs::order_holds` |",
        "| C-1 | x | `yiem_core::Message`<br>`yiem_core::Message::text` | `hooks::order_holds` |",
    ] {
        assert_eq!(about(row), [""; 0], "{row}");
    }
}

#[test]
fn rows_that_name_what_does_not_exist_are_refused() {
    for row in [
        "| C-1 | x | `yiem_core::Missing` | `yiem_core::message::tests::reads_back` |",
        "| C-1 | x | `yiem_core::Message::missing` | `yiem_core::message::tests::reads_back` |",
        "| C-1 | x | `yiem_core::Message` | `yiem_core::message::tests::missing` |",
        "| C-1 | x | `yiem_core::Message` | `yiem_core::other::tests::reads_back` |",
        "| C-1 | x | `yiem_core::Message` | `tests/it/other.rs::order_holds` |",
        "| C-1 | x | `docs/none.md` | `hooks::order_holds` |",
        "| C-1 | x | open | `hooks::order_holds` |",
        "| C-1 | x | open | open |",
        "| C-1 | x |  |  |",
    ] {
        assert!(!about(row).is_empty(), "{row}");
    }
}

#[test]
fn an_id_without_a_row_is_refused() {
    let all = findings("", &known(), &|_| false);
    assert!(
        all.iter()
            .any(|finding| finding.ends_with("no row for SP-024")),
        "{all:?}"
    );
    assert!(
        all.iter()
            .any(|finding| finding.ends_with("no row for R-17")),
        "{all:?}"
    );
    assert!(
        all.iter().any(|finding| finding.contains("\"T: \"")),
        "{all:?}"
    );
}
