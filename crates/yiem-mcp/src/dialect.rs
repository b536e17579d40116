//! Which dialect a server speaks, and finding out.
//!
//! Knows: the revisions, what opening a connection asks and how each answer is understood.
//! Does not know: transports, tasks, time; whoever drives [`Opening`] sends what it asks for.

use crate::jsonrpc::JsonRpcError;
use crate::protocol::{ServerFacts, code};
use serde_json::Value;
use std::fmt;

#[cfg(test)]
mod tests;

/// A revision of the protocol that Yiem speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    /// 2024-11-05: the HTTP+SSE transport.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches.
    V2025_03_26,
    /// 2025-06-18: structured content, elicitation.
    V2025_06_18,
    /// 2025-11-25: the last with a handshake.
    V2025_11_25,
    /// 2026-07-28: stateless.
    V2026_07_28,
}

impl ProtocolVersion {
    /// All, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest that opens with a handshake.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// As it is written on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Reads a revision; `None` for one that Yiem does not speak.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text.trim())
    }

    /// Whether it is stateless, with `_meta` on every request.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The dialect of a server (M-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Only `tools/list` and `tools/call`, without handshake and metadata (the seeds).
    Bare,
    /// With a handshake, 2024-11-05 to 2025-11-25.
    Legacy(ProtocolVersion),
    /// With metadata on every request, 2026-07-28.
    Modern(ProtocolVersion),
}

impl Dialect {
    /// The revision; `None` for bare.
    #[must_use]
    pub fn version(self) -> Option<ProtocolVersion> {
        match self {
            Self::Bare => None,
            Self::Legacy(version) | Self::Modern(version) => Some(version),
        }
    }

    /// Whether it is the stateless one.
    #[must_use]
    pub fn is_modern(self) -> bool {
        matches!(self, Self::Modern(_))
    }

    /// Whether it is one with a handshake.
    #[must_use]
    pub fn is_legacy(self) -> bool {
        matches!(self, Self::Legacy(_))
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare => f.write_str("bare"),
            Self::Legacy(version) | Self::Modern(version) => version.fmt(f),
        }
    }
}

/// Which dialect to use: found out, or set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum DialectChoice {
    /// What suits the transport: bare in-process, for closures and on NATS, found out elsewhere.
    #[default]
    Auto,
    /// Asks `server/discover`, and shakes hands with a server that does not know it.
    Detect,
    /// Bare.
    Bare,
    /// With a handshake.
    Legacy,
    /// Stateless.
    Modern,
}

/// What to do next to open a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum OpeningStep {
    /// Send `server/discover` as a request of this revision.
    Discover(ProtocolVersion),
    /// Send `initialize` and ask for this revision.
    Initialize(ProtocolVersion),
    /// The dialect is known. A legacy connection owes `notifications/initialized` now.
    Done(Dialect, ServerFacts),
    /// It cannot be opened, and why.
    Failed(OpeningFailure),
}

/// Why a connection could not be opened.
#[derive(Debug, Clone, PartialEq)]
pub enum OpeningFailure {
    /// No revision is spoken by both.
    Versions(String),
    /// `initialize` was refused.
    Refused(JsonRpcError),
    /// The answer makes no sense.
    Unreadable(String),
}

/// What came back for a step.
#[derive(Debug, Clone, PartialEq)]
pub enum OpeningReply {
    /// A result.
    Result(Value),
    /// A JSON-RPC error.
    Error(JsonRpcError),
    /// An answer that is none, e.g. an HTTP status, or no answer in time.
    Nothing,
}

/// The way to a server's dialect, as a state that is driven from outside.
#[derive(Debug, Clone)]
pub struct Opening {
    choice: DialectChoice,
    asked: ProtocolVersion,
    /// How often a version was refused: a retry, also with the same one, is made once.
    refusals: u8,
    shaking: bool,
}

impl Opening {
    /// Begins; `DialectChoice::Auto` counts as `Detect`.
    #[must_use]
    pub fn start(choice: DialectChoice) -> (Self, OpeningStep) {
        let legacy = choice == DialectChoice::Legacy;
        let asked = if legacy {
            ProtocolVersion::NEWEST_LEGACY
        } else {
            ProtocolVersion::NEWEST
        };
        let step = match choice {
            DialectChoice::Bare => OpeningStep::Done(Dialect::Bare, ServerFacts::unknown()),
            DialectChoice::Legacy => OpeningStep::Initialize(asked),
            _ => OpeningStep::Discover(asked),
        };
        (
            Self {
                choice,
                asked,
                refusals: 0,
                shaking: legacy,
            },
            step,
        )
    }

    /// Takes what came back for the last step.
    pub fn reply(&mut self, reply: OpeningReply) -> OpeningStep {
        if self.shaking {
            self.after_initialize(reply)
        } else {
            self.after_discover(reply)
        }
    }

    fn after_discover(&mut self, reply: OpeningReply) -> OpeningStep {
        match reply {
            OpeningReply::Result(result) if ServerFacts::is_discovery(&result) => {
                let facts = ServerFacts::from_discovery(&result);
                if facts.versions.is_empty() {
                    return OpeningStep::Done(Dialect::Modern(self.asked), facts);
                }
                match shared_modern(&facts.versions) {
                    Some(version) => OpeningStep::Done(Dialect::Modern(version), facts),
                    None if facts.versions.iter().any(|version| is_legacy(version)) => {
                        self.shake_hands()
                    }
                    None => OpeningStep::Failed(no_shared_version(&facts.versions)),
                }
            }
            OpeningReply::Error(error) if error.code == code::UNSUPPORTED_VERSION => {
                let theirs = supported_of(&error);
                match shared_modern(&theirs) {
                    Some(version) if self.refusals == 0 => {
                        self.refusals += 1;
                        self.asked = version;
                        OpeningStep::Discover(version)
                    }
                    _ => OpeningStep::Failed(no_shared_version(&theirs)),
                }
            }
            OpeningReply::Error(error)
                if error.code == code::HEADER_MISMATCH
                    || error.code == code::MISSING_CAPABILITY =>
            {
                OpeningStep::Done(Dialect::Modern(self.asked), ServerFacts::unknown())
            }
            _ if self.choice == DialectChoice::Modern => {
                OpeningStep::Done(Dialect::Modern(self.asked), ServerFacts::unknown())
            }
            _ => self.shake_hands(),
        }
    }

    fn shake_hands(&mut self) -> OpeningStep {
        if self.choice == DialectChoice::Modern {
            return OpeningStep::Done(Dialect::Modern(self.asked), ServerFacts::unknown());
        }
        self.shaking = true;
        self.refusals = 0;
        self.asked = ProtocolVersion::NEWEST_LEGACY;
        OpeningStep::Initialize(self.asked)
    }

    fn after_initialize(&mut self, reply: OpeningReply) -> OpeningStep {
        match reply {
            OpeningReply::Result(result) => {
                if !result.is_object() {
                    return OpeningStep::Failed(OpeningFailure::Unreadable(format!(
                        "the result of initialize is no object: {}",
                        crate::jsonrpc::excerpt(result.to_string().as_bytes())
                    )));
                }
                let facts = ServerFacts::from_initialize(&result);
                let version = match facts.versions.first() {
                    None => self.asked,
                    Some(offered) => match ProtocolVersion::parse(offered) {
                        Some(version) if !version.is_modern() => version,
                        _ => return OpeningStep::Failed(no_shared_version(&facts.versions)),
                    },
                };
                OpeningStep::Done(Dialect::Legacy(version), facts)
            }
            OpeningReply::Error(error) => {
                let theirs = supported_of(&error);
                let shared = ProtocolVersion::ALL.into_iter().rev().find(|ours| {
                    !ours.is_modern() && theirs.iter().any(|version| version == ours.as_str())
                });
                match shared {
                    Some(version) if self.refusals == 0 && version != self.asked => {
                        self.refusals += 1;
                        self.asked = version;
                        OpeningStep::Initialize(version)
                    }
                    _ => OpeningStep::Failed(OpeningFailure::Refused(error)),
                }
            }
            OpeningReply::Nothing => {
                OpeningStep::Failed(OpeningFailure::Unreadable("no answer to initialize".into()))
            }
        }
    }
}

fn is_legacy(version: &str) -> bool {
    ProtocolVersion::parse(version).is_some_and(|version| !version.is_modern())
}

fn shared_modern(theirs: &[String]) -> Option<ProtocolVersion> {
    ProtocolVersion::ALL
        .into_iter()
        .rev()
        .find(|ours| ours.is_modern() && theirs.iter().any(|version| version == ours.as_str()))
}

fn supported_of(error: &JsonRpcError) -> Vec<String> {
    let list = error.data.as_ref().and_then(|data| data.get("supported"));
    list.and_then(Value::as_array)
        .map(|list| {
            list.iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default()
}

fn no_shared_version(theirs: &[String]) -> OpeningFailure {
    let ours: Vec<&str> = ProtocolVersion::ALL
        .iter()
        .map(|version| version.as_str())
        .collect();
    let theirs = if theirs.is_empty() {
        "none that it named".to_owned()
    } else {
        theirs.join(", ")
    };
    OpeningFailure::Versions(format!(
        "no protocol revision in common: the server speaks {theirs}; Yiem speaks {}",
        ours.join(", ")
    ))
}
