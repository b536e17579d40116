//! The public reader against its corpus, at every splitting, and at its bounds.

mod bounds;
mod corpus;
mod splits;
