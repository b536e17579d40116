//! Replies of other APIs than chat completions, by what gives them away.
//!
//! Knows: the marks of these APIs, as data, and what to do about each. Does not know: how to
//! read them. Those that YiemAgent's formats cover (Ollama's and Anthropic's whole bodies among
//! them) are read and never come here.

use yiem_core::{ModelError, ModelErrorKind};

use crate::wire::RareOfBody;

/// Another API.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    name: &'static str,
    /// What its events begin with, in the field `type`.
    events: &'static [&'static str],
    /// A field that only its bodies have.
    field: Option<Field>,
    advice: &'static str,
}

/// A field of a body, as `wire` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Candidates,
    Output,
    Data,
}

const ALL: &[Foreign] = &[
    Foreign {
        name: "Anthropic's Messages API",
        events: &[
            "message_start",
            "message_delta",
            "message_stop",
            "content_block_",
        ],
        field: None,
        advice: "use the address of its OpenAI-compatible interface",
    },
    Foreign {
        name: "OpenAI's Responses API",
        events: &["response."],
        field: Some(Field::Output),
        advice: "ask for /chat/completions and not for /responses",
    },
    Foreign {
        name: "Gemini's own API",
        events: &[],
        field: Some(Field::Candidates),
        advice: "use its OpenAI-compatible interface, whose base URL ends in /v1beta/openai",
    },
    Foreign {
        name: "Cohere's own API",
        events: &[
            "message-start",
            "content-start",
            "content-delta",
            "content-end",
            "tool-call-",
            "message-end",
        ],
        field: None,
        advice: "use the address of its OpenAI-compatible interface",
    },
    Foreign {
        name: "a list, such as that of the models",
        events: &[],
        field: Some(Field::Data),
        advice: "the base URL is that of the API, without the path of an endpoint",
    },
];

/// The other API that an event is of, by its type.
pub(crate) fn of_event(rare: &RareOfBody<'_>) -> Option<&'static Foreign> {
    let kind = rare.kind.get()?;
    let is = |api: &&Foreign| api.events.iter().any(|event| kind.starts_with(event));
    ALL.iter().find(is)
}

/// The other API that a body or an event is of, by its fields.
pub(crate) fn of_body(rare: &RareOfBody<'_>) -> Option<&'static Foreign> {
    let has = |field: Field| {
        let raw = match field {
            Field::Candidates => rare.candidates,
            Field::Output => rare.output,
            Field::Data => rare.data,
        };
        raw.is_some_and(|raw| raw.get().starts_with(['[', '{']))
    };
    ALL.iter().find(|api| api.field.is_some_and(has))
}

impl Foreign {
    /// The error that its reply is.
    pub(crate) fn error(&self) -> ModelError {
        ModelError::new(
            ModelErrorKind::Malformed,
            format!(
                "the reply is no chat completion but that of {}; {}",
                self.name, self.advice
            ),
        )
    }
}
