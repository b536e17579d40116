//! An MCP client: dialects, transports, servers as tool sources.
