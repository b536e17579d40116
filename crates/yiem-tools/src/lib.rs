//! Tool registry, argument validation and typed function tools.
