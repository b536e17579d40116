//! What each server wants, as data (O-5).
//!
//! Knows: the settings and their defaults, and presets by name. Does not know: how a request is
//! written; nor does it guess a server by its address.

use std::fmt;
use std::str::FromStr;

/// Settings for one server. The default suits most servers that are not OpenAI's own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compat {
    /// How text-only content of system and user messages is written. Default: a string, since
    /// many servers refuse lists. `Blocks` is SP-011 to SP-015 to the letter.
    pub content: ContentStyle,
    /// The same for assistant messages. Default: a string.
    pub assistant_content: ContentStyle,
    /// The same for tool results. Default: a string.
    pub tool_content: ContentStyle,
    /// The content of an assistant message that has calls and no text. Default: `null` (SP-013).
    pub empty_assistant_content: EmptyContent,
    /// Whether tool results carry the tool's `name`. Default: no.
    pub tool_name_field: bool,
    /// The form that ids of calls must have. Default: any, letter for letter.
    pub tool_call_ids: CallIds,
    /// Whether an assistant message is put between a tool result and a user message.
    /// Default: no.
    pub assistant_after_tool_result: bool,
    /// Whether user or assistant messages in a row become one. Default: no.
    pub merge_consecutive: bool,
    /// Whether all system messages become one, in front. Default: no.
    pub single_system_message: bool,
    /// Whether the system prompt has the role `developer`. Default: no.
    pub developer_role: bool,
    /// How reasoning goes back to the model that made it. Default: not at all.
    pub reasoning_replay: ReasoningReplay,
    /// What becomes of another model's reasoning. Default: it is left out.
    pub foreign_reasoning: ForeignReasoning,
    /// Whether the field of `reasoning_replay` is sent empty with calls that were made without
    /// reasoning. Default: no.
    pub reasoning_required: bool,
    /// The name of the limit of an answer's tokens. Default: `max_tokens`.
    pub max_tokens_field: MaxTokensField,
    /// Whether usage is asked for in a stream. Default: yes.
    pub stream_usage: bool,
    /// Whether `parallel_tool_calls` may be sent. Default: yes.
    pub parallel_tool_calls: bool,
    /// Whether `strict` may be sent with a tool. Default: yes.
    pub strict_tools: bool,
    /// Whether `tools: []` is sent when there are no tools but the history has calls.
    /// Default: no.
    pub empty_tools_with_tool_history: bool,
    /// The field that the session's id is sent in, for a server that keeps a cache by it.
    /// Default: none.
    pub session_field: Option<&'static str>,
    /// Make tool calls that stand as text in an answer into real calls, if the name was
    /// offered. Default: no.
    pub recover_leaked_calls: bool,
    /// The server's prompt opens the think tag itself, so that text before a closing tag is
    /// reasoning; text is then held back until that tag or the end comes. Default: no.
    pub think_open_implied: bool,
}

impl Default for Compat {
    fn default() -> Self {
        Self {
            content: ContentStyle::String,
            assistant_content: ContentStyle::String,
            tool_content: ContentStyle::String,
            empty_assistant_content: EmptyContent::Null,
            tool_name_field: false,
            tool_call_ids: CallIds::Any,
            assistant_after_tool_result: false,
            merge_consecutive: false,
            single_system_message: false,
            developer_role: false,
            reasoning_replay: ReasoningReplay::None,
            foreign_reasoning: ForeignReasoning::Drop,
            reasoning_required: false,
            max_tokens_field: MaxTokensField::MaxTokens,
            stream_usage: true,
            parallel_tool_calls: true,
            strict_tools: true,
            empty_tools_with_tool_history: false,
            session_field: None,
            recover_leaked_calls: false,
            think_open_implied: false,
        }
    }
}

impl Compat {
    /// All content as lists of blocks, as the seeds write it (SP-011 to SP-015).
    #[must_use]
    pub fn blocks() -> Self {
        Self {
            content: ContentStyle::Blocks,
            assistant_content: ContentStyle::Blocks,
            tool_content: ContentStyle::Blocks,
            ..Self::default()
        }
    }
}

/// How text-only content is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentStyle {
    /// A plain string.
    String,
    /// A list of blocks.
    Blocks,
}

/// The content beside calls when there is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyContent {
    /// `null`.
    Null,
    /// `""`.
    EmptyString,
    /// No `content` at all.
    Omit,
}

/// The form that ids of calls must have. An id that has it is sent letter for letter; another
/// becomes its readable part and a hash, the same in call and result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIds {
    /// Any.
    Any,
    /// Nine characters of `a-z`, `A-Z`, `0-9`.
    Mistral9,
    /// At most so many characters.
    MaxLength(usize),
}

/// How reasoning goes back to the model that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningReplay {
    /// Not at all.
    None,
    /// In the field that it came in.
    SameField,
    /// In `reasoning_content`.
    ReasoningContent,
    /// In `reasoning`.
    Reasoning,
    /// In `reasoning_details`, as it came.
    ReasoningDetails,
    /// In think tags in front of the text.
    ThinkTags,
}

/// What becomes of reasoning that another model made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignReasoning {
    /// It is left out.
    Drop,
    /// It goes as text in front of the answer.
    AsText,
}

/// The name of the limit of an answer's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// A server whose settings are known. Chosen by name, never guessed from an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// OpenAI's own API.
    OpenAi,
    /// vLLM.
    Vllm,
    /// LM Studio.
    LmStudio,
    /// llama.cpp's server, and llama-cpp-python.
    LlamaCpp,
    /// Ollama's OpenAI-compatible interface.
    Ollama,
    /// Mistral.
    Mistral,
    /// DeepSeek.
    DeepSeek,
    /// Gemini's OpenAI-compatible interface.
    Gemini,
    /// OpenRouter.
    OpenRouter,
    /// Groq.
    Groq,
}

impl Preset {
    /// All presets, with their names.
    pub const ALL: [(&'static str, Self); 10] = [
        ("openai", Self::OpenAi),
        ("vllm", Self::Vllm),
        ("lmstudio", Self::LmStudio),
        ("llamacpp", Self::LlamaCpp),
        ("ollama", Self::Ollama),
        ("mistral", Self::Mistral),
        ("deepseek", Self::DeepSeek),
        ("gemini", Self::Gemini),
        ("openrouter", Self::OpenRouter),
        ("groq", Self::Groq),
    ];

    /// The name that it is chosen by.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, preset)| *preset == self)
            .map_or("openai", |(name, _)| name)
    }

    /// Its settings. `docs/openai.md` says why each is as it is.
    #[must_use]
    pub fn compat(self) -> Compat {
        let base = Compat::default();
        match self {
            Self::OpenAi => Compat {
                developer_role: true,
                max_tokens_field: MaxTokensField::MaxCompletionTokens,
                tool_call_ids: CallIds::MaxLength(40),
                session_field: Some("prompt_cache_key"),
                ..base
            },
            Self::Vllm => Compat {
                reasoning_replay: ReasoningReplay::SameField,
                ..base
            },
            Self::LmStudio => Compat {
                strict_tools: false,
                parallel_tool_calls: false,
                recover_leaked_calls: true,
                ..base
            },
            Self::LlamaCpp => Compat {
                empty_assistant_content: EmptyContent::EmptyString,
                strict_tools: false,
                single_system_message: true,
                reasoning_replay: ReasoningReplay::SameField,
                recover_leaked_calls: true,
                ..base
            },
            Self::Ollama => Compat {
                empty_assistant_content: EmptyContent::EmptyString,
                strict_tools: false,
                parallel_tool_calls: false,
                recover_leaked_calls: true,
                ..base
            },
            Self::Mistral => Compat {
                tool_call_ids: CallIds::Mistral9,
                assistant_after_tool_result: true,
                tool_name_field: true,
                stream_usage: false,
                ..base
            },
            Self::DeepSeek => Compat {
                reasoning_replay: ReasoningReplay::ReasoningContent,
                reasoning_required: true,
                strict_tools: false,
                parallel_tool_calls: false,
                ..base
            },
            Self::Gemini => Compat {
                tool_name_field: true,
                strict_tools: false,
                parallel_tool_calls: false,
                ..base
            },
            Self::OpenRouter => Compat {
                reasoning_replay: ReasoningReplay::ReasoningDetails,
                ..base
            },
            Self::Groq => Compat {
                max_tokens_field: MaxTokensField::MaxCompletionTokens,
                strict_tools: false,
                ..base
            },
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        let plain: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        Self::ALL
            .iter()
            .find(|(known, _)| *known == plain)
            .map(|(_, preset)| *preset)
            .ok_or_else(|| UnknownPreset(name.to_owned()))
    }
}

/// A name that no preset has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no preset {0:?}; known are openai, vllm, lmstudio, llamacpp, ollama, mistral, deepseek, gemini, openrouter, groq"
)]
pub struct UnknownPreset(String);
