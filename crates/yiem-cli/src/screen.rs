//! What a person sees.
//!
//! Knows: terminals. Does not know: agents' insides, the command line.

mod markdown;
mod show;
mod style;

pub(crate) use show::{Progress, Show, ShowConfig, duration, status_of};
pub(crate) use style::{Style, harmless, is_dumb, on_one_line, terminal_width};
