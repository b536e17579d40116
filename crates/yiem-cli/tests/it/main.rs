//! The command as people call it: the real binary, against small servers on loopback.

mod chat;
mod command;
mod demonstration;
mod endpoint;
mod model_server;
mod run;
mod serve;
mod tools;
mod wire;
