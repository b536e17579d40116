//! `yiem wire`: the OpenAI chat format, read and written.
//!
//! Knows: where a case comes from and goes to. Does not know: the format; the functions that the
//! HTTP model calls do the work.

use std::io::{self, Read};

use yiem::SystemEnv;
use yiem::openai::case;

use crate::args::Wire;
use crate::command::tools::write_out;
use crate::failure::Failure;

pub(crate) fn run(direction: Wire) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("standard input could not be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!("the case on standard input is no UTF-8: {error}"))
    })?;
    let written = match direction {
        Wire::Decode => case::decode(&text, &SystemEnv::shared()),
        Wire::Encode => case::encode(&text),
    }
    .map_err(Failure::usage)?;
    write_out(&format!("{written}\n"))
}
