use super::*;

fn found(path: &str, source: &str) -> Vec<String> {
    file_findings("yiem-core", Path::new(path), source)
}

#[test]
fn a_good_file_has_no_findings() {
    let source =
        "//! What it is.\n#[expect(clippy::x, reason = \"because\")]\nfn f() { g(\"println!\") }\n";
    assert_eq!(found("src/a.rs", source), [""; 0]);
}

#[test]
fn a_file_without_a_head_is_refused_unless_it_is_a_test() {
    assert_eq!(found("src/a.rs", "fn f() {}\n").len(), 1);
    assert_eq!(found("src/a/tests.rs", "fn f() {}\n"), [""; 0]);
    assert_eq!(found("tests/it/main.rs", "mod a;\n"), [""; 0]);
}

#[test]
fn a_name_that_says_nothing_is_refused() {
    for path in ["src/utils.rs", "src/types/a.rs", "tests/it/common.rs"] {
        assert_eq!(found(path, "//! x\n").len(), 1, "{path}");
    }
    assert_eq!(found("src/typed.rs", "//! x\n"), [""; 0]);
}

#[test]
fn allowed_lints_ignored_tests_prints_and_bare_exceptions_are_refused() {
    for line in [
        "#[allow(dead_code)]",
        "#[ignore]",
        "#[ignore = \"later\"]",
        "println!();",
        "#[expect(dead_code)]",
    ] {
        assert_eq!(
            found("src/a.rs", &format!("//! x\n{line}\nfn f() {{}}\n")).len(),
            1,
            "{line}"
        );
    }
}

#[test]
fn an_empty_file_is_refused() {
    assert_eq!(found("src/a/tests.rs", "\n"), [": is empty"]);
}
