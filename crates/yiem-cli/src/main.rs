//! The command yiem.
fn main() {}
