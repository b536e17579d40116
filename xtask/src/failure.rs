//! What went wrong, as text for the person at the terminal.

use std::fmt;

/// The result of a command of xtask.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// One message, or the list of everything that a check found.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure that lists findings, one a line; `Ok` when there are none.
    pub(crate) fn unless_empty(what: &str, findings: &[String]) -> Outcome {
        if findings.is_empty() {
            return Ok(());
        }
        let list: String = findings.iter().map(|f| format!("\n  - {f}")).collect();
        Err(Self(format!("{} {what}:{list}", findings.len())))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
