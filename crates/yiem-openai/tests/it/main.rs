//! The public API: the HTTP model against a server on loopback, and properties of what is
//! written and read.

mod http;
mod served_cases;
mod server;
