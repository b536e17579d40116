//! The attribute macro that makes a tool of an async function.
