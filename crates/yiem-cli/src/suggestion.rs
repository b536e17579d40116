//! What a flag or a command that there is not was likely meant to be.
//!
//! Knows: how far two words are apart. Does not know: what the words do.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;

/// The error with the nearest flag or command in it. clap compares words letter by letter from
/// their beginning, so that `--mpc` is nearer to `--compat` than to `--mcp`, and `rnu` is near
/// to nothing.
pub(crate) fn with_suggestion(mut error: clap::Error) -> clap::Error {
    let (unknown, suggested) = match error.kind() {
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        ErrorKind::InvalidSubcommand => (
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(unknown) else {
        return error;
    };
    let known = match suggested {
        ContextKind::SuggestedArg => flags(),
        _ => commands(),
    };
    if let Some(near) = nearest(word, &known) {
        let value = match suggested {
            ContextKind::SuggestedArg => ContextValue::String(near.to_owned()),
            _ => ContextValue::Strings(vec![near.to_owned()]),
        };
        error.insert(suggested, value);
        // It showed how to use what was guessed before.
        error.remove(ContextKind::Usage);
    }
    error
}

/// The flags of every command, shared ones first.
fn flags() -> Vec<String> {
    let command = Cli::command();
    std::iter::once(&command)
        .chain(command.get_subcommands())
        .flat_map(clap::Command::get_arguments)
        .filter_map(clap::Arg::get_long)
        .map(|name| format!("--{name}"))
        .collect()
}

fn commands() -> Vec<String> {
    let command = Cli::command();
    command
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect()
}

/// The known word that is at most a third of its letters away, two that changed places counted
/// as one.
fn nearest<'k>(word: &str, known: &'k [String]) -> Option<&'k str> {
    let letters = |text: &str| text.trim_start_matches('-').chars().count();
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(away, name)| *away <= (letters(name) / 3).max(1))
        .min_by_key(|(away, _)| *away)
        .map(|(_, name)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn told(line: &str) -> String {
        let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
        with_suggestion(error).to_string()
    }

    #[test]
    fn a_word_that_is_mistyped_leads_to_the_one_that_was_meant() {
        for (line, meant) in [
            ("yiem run hi --mpc a=stdio:b", "'--mcp'"),
            ("yiem run hi --mcp-conf x", "'--mcp-config'"),
            ("yiem run hi --modle x", "'--model'"),
            ("yiem run hi --tool x", "'--tools'"),
            ("yiem run hi --sesion x", "'--session'"),
            ("yiem run hi --quite", "'--quiet'"),
            ("yiem tools --jsno", "'--json'"),
            ("yiem rnu hi", "'run'"),
            ("yiem cal x", "'call'"),
            ("yiem tolls", "'tools'"),
        ] {
            assert!(told(line).contains(meant), "{line}: {}", told(line));
        }
        for line in ["yiem run hi --xyzzy", "yiem nonsense"] {
            assert!(!told(line).contains("similar"), "{line}: {}", told(line));
        }
    }
}
