//! yiem-tools through its public API.

mod functions;
mod kit;
mod macro_tools;
