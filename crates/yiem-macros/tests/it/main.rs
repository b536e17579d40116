//! What `#[tool]` refuses, seen through the crate that it writes code for.

mod refusals;
