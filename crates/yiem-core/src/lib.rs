//! Messages, tool calls, and the contracts for models, tools and tool sources.
