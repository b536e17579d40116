//! How a command ends that did not come to its end.
//!
//! Knows: exit codes, and that a failure is one line for people. Does not know: what failed.

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::screen::on_one_line;

/// The longest line that is written about a failure, in characters.
const LONGEST: usize = 2000;

/// Why a command did not come to its end: an exit code and one line.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    /// Something went wrong: exit code 1.
    pub(crate) fn new(text: impl fmt::Display) -> Self {
        Self {
            code: 1,
            text: on_one_line(&text.to_string(), LONGEST),
        }
    }

    /// The command was used wrongly: exit code 2.
    pub(crate) fn usage(text: impl fmt::Display) -> Self {
        Self {
            code: 2,
            ..Self::new(text)
        }
    }

    /// The user ended it: exit code 130, and nothing to say.
    pub(crate) fn interrupted() -> Self {
        Self {
            code: 130,
            text: String::new(),
        }
    }

    /// What became of writing to standard output. A reader that has gone is no failure.
    pub(crate) fn unless_written(done: io::Result<()>) -> Result<(), Self> {
        match done {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Self::new(format!(
                "standard output could not be written: {error}"
            ))),
            _ => Ok(()),
        }
    }

    /// Exit code 1 with nothing to say: for a command that has told its failure already.
    pub(crate) fn told() -> Self {
        Self {
            code: 1,
            text: String::new(),
        }
    }

    /// The line, empty when there is nothing to say.
    pub(crate) fn line(&self) -> &str {
        &self.text
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<yiem::Error> for Failure {
    fn from(error: yiem::Error) -> Self {
        let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
        Self::new(joined(&chain))
    }
}

/// Messages on one line, each cause that its effect does not tell already.
fn joined(chain: &[String]) -> String {
    let mut text = String::new();
    for part in chain {
        if text.is_empty() {
            text.clone_from(part);
        } else if !text.contains(part.as_str()) {
            text.push_str(": ");
            text.push_str(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_failure_and_a_full_disk_is_one() {
        let written = |kind: io::ErrorKind| Failure::unless_written(Err(kind.into()));
        assert!(Failure::unless_written(Ok(())).is_ok());
        assert!(written(io::ErrorKind::BrokenPipe).is_ok());
        let failure = written(io::ErrorKind::StorageFull).unwrap_err();
        assert!(
            failure
                .line()
                .starts_with("standard output could not be written: ")
        );
    }

    #[test]
    fn a_failure_is_one_line() {
        let failure = Failure::new("a\nb\r\n c\x1b[0m");
        assert_eq!(failure.line(), "a b c[0m");
        let error = yiem::Error::msg("refused").context("connecting");
        assert_eq!(Failure::from(error).line(), "connecting: refused");
        let error = yiem::Error::msg("refused").context("connecting was refused");
        assert_eq!(Failure::from(error).line(), "connecting was refused");
    }
}
