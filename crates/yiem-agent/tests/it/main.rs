//! The agent through its public API.

mod lifecycle;
