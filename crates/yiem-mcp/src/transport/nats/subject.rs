//! Where requests go: subjects of the NATS binding (M-3).
//!
//! Knows: which subjects can be used, and how a method finds its subject. Does not know: connections.

use crate::error::McpError;

/// How a request finds its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum SubjectStyle {
    /// Every message goes to the one subject (the seeds).
    #[default]
    Fixed,
    /// Each method has its own: `{prefix}.v1.server.{id}.{method}`, dots for slashes.
    ByMethod,
}

/// The subjects of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subjects(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Fixed(String),
    ByMethod { base: String },
}

/// Between the prefix and the id of a server, where each method has its own subject.
const INFIX: &str = ".v1.server.";

impl Subjects {
    /// The subjects of a server that is reached at `subject`.
    ///
    /// By method, `subject` is `{prefix}.{id}`, its last token being the id; a single token is an id under
    /// the prefix `mcp`; and the whole `{prefix}.v1.server.{id}` is taken as it is.
    ///
    /// # Errors
    /// The subject is empty, has an empty token, a space or a wildcard.
    pub fn new(subject: &str, style: SubjectStyle) -> Result<Self, McpError> {
        check(subject)?;
        Ok(Self(match style {
            SubjectStyle::Fixed => Kind::Fixed(subject.to_owned()),
            SubjectStyle::ByMethod if subject.contains(INFIX) => Kind::ByMethod {
                base: subject.to_owned(),
            },
            SubjectStyle::ByMethod => {
                let (prefix, id) = subject.rsplit_once('.').unwrap_or(("mcp", subject));
                return Self::by_method(prefix, id);
            }
        }))
    }

    /// The subjects of the server `id` under `prefix`, one for each method.
    ///
    /// # Errors
    /// As [`Subjects::new`]; and the id has a dot.
    pub fn by_method(prefix: &str, id: &str) -> Result<Self, McpError> {
        if id.contains('.') {
            return Err(McpError::config(format!(
                "the id `{id}` of a server on NATS must be one token, without a dot"
            )));
        }
        let base = format!("{prefix}{INFIX}{id}");
        check(&base)?;
        Ok(Self(Kind::ByMethod { base }))
    }

    /// Where a message of this method goes.
    #[must_use]
    pub fn of(&self, method: &str) -> String {
        match &self.0 {
            Kind::Fixed(subject) => subject.clone(),
            Kind::ByMethod { base } => format!("{base}.{}", tokens(method)),
        }
    }

    /// What a responder subscribes to for requests.
    #[must_use]
    pub fn for_requests(&self) -> String {
        match &self.0 {
            Kind::Fixed(subject) => subject.clone(),
            Kind::ByMethod { base } => format!("{base}.>"),
        }
    }

    /// Where the responders of one queue group tell each other of cancellations.
    #[must_use]
    pub fn for_gossip(&self) -> String {
        match &self.0 {
            Kind::Fixed(subject) => format!("{subject}.yiem-cancelled"),
            Kind::ByMethod { base } => format!("{base}-yiem-cancelled"),
        }
    }

    /// What an error calls the place.
    #[must_use]
    pub fn place(&self) -> &str {
        match &self.0 {
            Kind::Fixed(subject) | Kind::ByMethod { base: subject } => subject,
        }
    }
}

/// A method as tokens of a subject: dots for slashes, and nothing in it that a subject cannot have.
fn tokens(method: &str) -> String {
    let tokens: Vec<String> = method
        .split(['/', '.'])
        .filter(|token| !token.is_empty())
        .map(|token| {
            token
                .chars()
                .map(|c| {
                    if c.is_whitespace() || c.is_control() || c == '*' || c == '>' {
                        '_'
                    } else {
                        c
                    }
                })
                .collect()
        })
        .collect();
    if tokens.is_empty() {
        "_".to_owned()
    } else {
        tokens.join(".")
    }
}

/// Refuses what cannot be published to.
fn check(subject: &str) -> Result<(), McpError> {
    let why = if subject.is_empty() {
        "it is empty; write nats://HOST:PORT/SUBJECT"
    } else if subject.chars().any(|c| c.is_whitespace() || c.is_control()) {
        "it has a space or a control character"
    } else if subject.split('.').any(str::is_empty) {
        "it has an empty token: a dot at its begin or end, or two in a row"
    } else if subject.split('.').any(|token| token == "*" || token == ">") {
        "it has a wildcard; a server is reached at one subject"
    } else {
        return Ok(());
    };
    Err(McpError::config(format!(
        "`{subject}` is no subject for a server on NATS: {why}"
    )))
}

#[cfg(test)]
mod tests;
