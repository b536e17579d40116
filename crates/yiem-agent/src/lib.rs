//! The agent: run, tool pipeline, hooks, events, handle and journal.
