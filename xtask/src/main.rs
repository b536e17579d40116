//! The checks of this workspace.
fn main() {}
