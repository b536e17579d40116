#[test]
fn this_workspace_is_tidy() {
    super::check(&crate::manifest::root()).unwrap_or_else(|failure| panic!("{failure}"));
}
