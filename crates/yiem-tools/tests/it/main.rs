//! yiem-tools through its public API.

mod catalog;
mod functions;
mod hostile;
mod kit;
mod macro_tools;
#[cfg(feature = "schema")]
mod properties;
mod registry;
