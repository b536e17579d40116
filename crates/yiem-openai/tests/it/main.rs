//! The public API: the HTTP model against a server on loopback, and properties of what is
//! written and read.

mod acceptable;
mod hostile;
mod http;
mod memory;
mod model;
mod presets;
mod reply;
mod served_cases;
mod server;
mod strict;
