//! MCP servers that do whatever a script says, down to the bytes.
//!
//! Knows: which request is to be met with which bytes, over a pipe or over HTTP. Does not know: any type
//! of the client under test; what it writes, no code of the client has seen.

mod http;
mod old_sse;
mod script;
mod stdio;

pub use http::FakeHttpServer;
pub use old_sse::FakeSseServer;
pub use script::{Act, FakeMcpServer, Rule};
pub use stdio::serve_stdio;
