use super::*;

#[test]
fn modules_uses_and_their_attributes_are_exports() {
    let source = "//! Docs.\n#![cfg_attr(docsrs, feature(doc_cfg))]\nmod a;\npub use a::{B, C};\n#[cfg(feature = \"x\")]\npub mod d {\n    //! Inside.\n    pub use e::F;\n}\n#[cfg(test)]\nmod tests { fn t() {} }\n";
    assert_eq!(more_than_exports(source), [""; 0]);
}

#[test]
fn logic_in_a_root_file_is_refused() {
    for item in [
        "pub fn f() {}",
        "pub struct S;",
        "impl A for B {}",
        "pub type R = u8;",
        "mod m { pub const C: u8 = 1; }",
        "macro_rules! m { () => {} }",
    ] {
        assert_eq!(
            more_than_exports(&format!("//! Docs.\npub use a::b;\n{item}\n")).len(),
            1,
            "{item}"
        );
    }
}

#[test]
fn a_procedural_macro_may_stand_in_its_root() {
    assert_eq!(
        more_than_exports("#[proc_macro_attribute]\npub fn tool(a: T, b: T) -> T { x::y(a, b) }\n"),
        [""; 0]
    );
}

#[test]
fn a_sibling_is_re_exported_by_the_facade_only() {
    let source = "pub use yiem_core::Message;\n";
    assert_eq!(re_exports_of_siblings("yiem-agent", source).len(), 1);
    assert_eq!(
        re_exports_of_siblings("yiem-tools", "pub use yiem_macros::tool;\n"),
        [""; 0]
    );
    assert_eq!(re_exports_of_siblings("yiem-tools", source).len(), 1);
    // The contracts as a crate, under their own name, go with a crate that speaks in them.
    assert_eq!(
        re_exports_of_siblings("yiem-agent", "pub use yiem_core;\npub use yiem_tools;\n"),
        [""; 0]
    );
    for renamed in [
        "pub use yiem_core as core;\n",
        "pub use yiem_core::*;\n",
        "pub use yiem_mcp;\n",
    ] {
        assert_eq!(re_exports_of_siblings("yiem-agent", renamed).len(), 1);
    }
    assert_eq!(
        re_exports_of_siblings("yiem-agent", "use yiem_core::Message;\n"),
        [""; 0]
    );
}
