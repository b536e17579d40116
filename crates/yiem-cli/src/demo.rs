//! The demonstration: a model that is none, a tool of one's own and one of an MCP server.
//!
//! Knows: what answers when no endpoint is given. Does not know: the command line.

mod get_time;
mod get_weather;
mod model;
mod place;
mod question;

pub(crate) use get_time::GetTime;
pub(crate) use get_weather::GetWeather;
pub(crate) use model::DemoModel;
