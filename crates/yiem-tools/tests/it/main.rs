//! yiem-tools through its public API.

mod accept;
mod catalog;
mod functions;
mod hostile;
mod kit;
mod macro_tools;
mod properties;
mod registry;
mod search;
