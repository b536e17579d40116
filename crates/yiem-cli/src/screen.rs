//! What a person sees.
//!
//! Knows: terminals. Does not know: agents' insides, the command line.

mod lines;
mod markdown;
mod show;
mod style;

pub(crate) use lines::{LinePrinter, Lines};
pub(crate) use show::{Progress, Show, ShowConfig, duration, status_of};
pub(crate) use style::{Style, is_dumb, on_one_line, terminal_width};
