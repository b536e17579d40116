use super::*;

fn package(text: &str) -> Package {
    Package {
        name: "yiem-x".to_owned(),
        folder: "crates/yiem-x".into(),
        table: text.parse().unwrap(),
    }
}

const GOOD: &str = "
[package]
name = \"yiem-x\"
description = \"x\"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
authors.workspace = true
publish.workspace = true
[lints]
workspace = true
[dependencies]
serde.workspace = true
tokio = { workspace = true, features = [\"sync\"] }
";

#[test]
fn a_manifest_that_inherits_is_accepted() {
    assert_eq!(package_findings(&package(GOOD)), [""; 0]);
}

#[test]
fn whatever_is_not_inherited_is_refused() {
    for (from, to) in [
        ("version.workspace = true\n", "version = \"1.0.0\"\n"),
        ("license.workspace = true\n", ""),
        (
            "[lints]\nworkspace = true",
            "[lints.rust]\nunsafe_code = \"warn\"",
        ),
        ("serde.workspace = true", "serde = \"1\""),
        ("workspace = true, features", "version = \"1\", features"),
        ("description = \"x\"\n", ""),
    ] {
        let found = package_findings(&package(&GOOD.replacen(from, to, 1)));
        assert!(
            !found.is_empty(),
            "{from:?} replaced by {to:?} was accepted"
        );
    }
}

#[test]
fn a_crate_without_a_reason_and_a_reason_without_a_crate_are_refused() {
    let manifest: Table =
        "[workspace.dependencies]\nserde = \"1\"\nyiem = { path = \"crates/yiem\" }"
            .parse()
            .unwrap();
    assert_eq!(
        reasons_missing(&manifest, "| `serde` | reading |\n"),
        [""; 0]
    );
    assert_eq!(reasons_missing(&manifest, "| `serde` | |\n").len(), 1);
    assert_eq!(
        reasons_missing(&manifest, "| `serde` | reading |\n| `gone` | once |\n").len(),
        1
    );
}

#[test]
fn a_root_that_allows_unsafe_code_is_refused() {
    let good = "[workspace.package]\nedition = \"2024\"\nlicense = \"MIT OR Apache-2.0\"\n[workspace.lints.rust]\nunsafe_code = \"forbid\"\n";
    assert_eq!(workspace_findings(&good.parse().unwrap()), [""; 0]);
    assert_eq!(
        workspace_findings(&good.replace("forbid", "deny").parse().unwrap()).len(),
        1
    );
    assert_eq!(
        workspace_findings(&good.replace(" OR ", " AND ").parse().unwrap()).len(),
        1
    );
}
