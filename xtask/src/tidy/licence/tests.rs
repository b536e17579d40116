use super::*;

fn one(name: &str, version: &str, licence: &str) -> Resolved {
    Resolved {
        name: name.to_owned(),
        version: version.to_owned(),
        licence: licence.to_owned(),
    }
}

#[test]
fn licences_are_read_as_expressions() {
    for good in [
        "MIT",
        "MIT OR Apache-2.0",
        "MIT/Apache-2.0",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
    ] {
        assert!(is_accepted(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR Apache-2.0) AND GPL-3.0",
        "AGPL-3.0 OR GPL-3.0",
    ] {
        assert!(!is_accepted(bad), "{bad}");
    }
}

#[test]
fn a_licence_that_is_not_on_the_list_is_refused() {
    assert_eq!(
        refused_licences(&[one("a", "1.0.0", "MIT"), one("b", "1.0.0", "GPL-3.0")]).len(),
        1
    );
}

#[test]
fn a_crate_in_two_versions_needs_a_reason_and_a_reason_needs_its_crate() {
    let two = [
        one("a", "1.0.0", "MIT"),
        one("a", "2.0.0", "MIT"),
        one("b", "1.0.0", "MIT"),
    ];
    assert_eq!(doubles(&two, &[]).len(), 1);
    assert_eq!(doubles(&two, &["a".to_owned()]), [""; 0]);
    assert_eq!(doubles(&two[1..], &["a".to_owned()]).len(), 1);
}
