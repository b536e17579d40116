//! yiem-tools through its public API.

mod accept;
mod catalog;
mod functions;
mod hostile;
mod kit;
mod macro_tools;
mod not_found;
mod properties;
mod registry;
mod search;
