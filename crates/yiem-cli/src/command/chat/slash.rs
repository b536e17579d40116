//! The commands inside a conversation: `/tools` and the like.
//!
//! Knows: which there are, and their texts. Does not know: what they do to the agent.

/// A command inside a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slash {
    Tools,
    /// With an id: another model from here on.
    Model(Option<String>),
    Cost,
    Session,
    Undo,
    Help,
    /// Declines the question that is open.
    No,
    Quit,
    /// None that there is.
    Unknown(String),
}

/// The commands, each with what it does.
const COMMANDS: &[(&str, &str)] = &[
    ("/tools", "the tools that the model may call"),
    ("/model", "the model; /model ID takes another one"),
    ("/cost", "tokens and money so far"),
    ("/session", "the conversation: its id, file and length"),
    (
        "/undo",
        "takes back your last message and all that followed",
    ),
    ("/no", "declines the question that is open"),
    ("/help", "this list"),
    ("/quit", "leaves; so does Ctrl-D"),
];

impl Slash {
    /// Reads a line that begins with a slash; `None` is no command but something to say.
    pub(super) fn read(line: &str) -> Option<Self> {
        let rest = line.trim().strip_prefix('/')?;
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let argument = Some(argument.trim().to_owned()).filter(|text| !text.is_empty());
        Some(match name.to_lowercase().as_str() {
            "tools" => Self::Tools,
            "model" => Self::Model(argument),
            "cost" | "usage" => Self::Cost,
            "session" => Self::Session,
            "undo" => Self::Undo,
            "help" | "?" | "h" => Self::Help,
            "no" => Self::No,
            "quit" | "exit" | "q" => Self::Quit,
            // A path, such as `/etc/hosts: what is it?`, is something to say.
            other if other.contains('/') => return None,
            other => Self::Unknown(other.to_owned()),
        })
    }

    /// The names, for completion.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        COMMANDS.iter().map(|(name, _)| *name)
    }
}

/// What `/help` shows.
pub(super) fn help() -> String {
    let mut text = String::new();
    for (name, about) in COMMANDS {
        text.push_str(&format!("{name:9} {about}\n"));
    }
    text.push_str("While it works: what you type is read before its next step; Ctrl-C stops it.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        assert_eq!(Slash::read("/tools"), Some(Slash::Tools));
        assert_eq!(
            Slash::read("  /MODEL  gpt-x "),
            Some(Slash::Model(Some("gpt-x".into())))
        );
        assert_eq!(Slash::read("/model"), Some(Slash::Model(None)));
        assert_eq!(
            Slash::read("/nope now"),
            Some(Slash::Unknown("nope".into()))
        );
        assert_eq!(Slash::read("/etc/hosts is a file?"), None);
        assert_eq!(Slash::read("hello /tools"), None);
        for name in Slash::names() {
            assert!(
                !matches!(Slash::read(name), None | Some(Slash::Unknown(_))),
                "{name}"
            );
            assert!(help().contains(name));
        }
    }
}
