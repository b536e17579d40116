//! A framework for agents that use tools, locally and over MCP.
