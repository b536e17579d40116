use super::listing::{NextPage, Pager};
use crate::dialect::{Dialect, ProtocolVersion};
use serde_json::json;

const LEGACY: Dialect = Dialect::Legacy(ProtocolVersion::V2025_11_25);

#[test]
fn a_list_ends_without_a_cursor() {
    for dialect in [Dialect::Bare, LEGACY] {
        assert_eq!(Pager::new(dialect, 10).after(None), NextPage::End);
        assert_eq!(
            Pager::new(dialect, 10).after(Some(json!(null))),
            NextPage::End
        );
    }
}

#[test]
fn an_empty_cursor_ends_a_bare_list_and_is_passed_on_once_elsewhere() {
    assert_eq!(
        Pager::new(Dialect::Bare, 10).after(Some(json!(""))),
        NextPage::End
    );
    let mut pager = Pager::new(LEGACY, 10);
    assert_eq!(pager.after(Some(json!(""))), NextPage::Ask(json!("")));
    assert!(matches!(
        pager.after(Some(json!(""))),
        NextPage::Stop(_, true)
    ));
}

#[test]
fn a_cursor_seen_before_ends_the_list_and_drops_its_page() {
    let mut pager = Pager::new(LEGACY, 10);
    assert_eq!(pager.after(Some(json!("a"))), NextPage::Ask(json!("a")));
    assert_eq!(pager.after(Some(json!("b"))), NextPage::Ask(json!("b")));
    assert!(matches!(
        pager.after(Some(json!("a"))),
        NextPage::Stop(_, true)
    ));
}

#[test]
fn a_list_has_at_most_so_many_pages() {
    let mut pager = Pager::new(LEGACY, 3);
    assert!(matches!(pager.after(Some(json!(1))), NextPage::Ask(_)));
    assert!(matches!(pager.after(Some(json!(2))), NextPage::Ask(_)));
    assert!(matches!(
        pager.after(Some(json!(3))),
        NextPage::Stop(_, false)
    ));
}
