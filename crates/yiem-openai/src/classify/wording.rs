//! Codes, types and wordings of vendors, as data.
//!
//! Knows: what a piece of text in an error means. Does not know: which piece counts more.

use yiem_core::ModelErrorKind;

use ModelErrorKind::{
    Auth, ContentFilter, ContextLength, InvalidRequest, NotFound, Overloaded, Quota, RateLimit,
    Server,
};

/// A code or type of an error, in lower case with `_` between words.
#[derive(Debug)]
pub(super) struct Code {
    pub text: &'static str,
    pub kind: ModelErrorKind,
    /// It says what is wrong and not only what sort of thing.
    pub certain: bool,
    /// The text is the whole code, and not a part of it.
    pub whole: bool,
}

const fn certain(text: &'static str, kind: ModelErrorKind) -> Code {
    Code {
        text,
        kind,
        certain: true,
        whole: false,
    }
}

const fn general(text: &'static str, kind: ModelErrorKind) -> Code {
    Code {
        text,
        kind,
        certain: false,
        whole: false,
    }
}

const fn word(text: &'static str, kind: ModelErrorKind) -> Code {
    Code {
        text,
        kind,
        certain: false,
        whole: true,
    }
}

/// The first that fits counts, among the certain ones and then among the general ones.
pub(super) const CODES: &[Code] = &[
    certain("context_length", ContextLength),
    certain("context_size", ContextLength),
    certain("context_window", ContextLength),
    certain("context_limit", ContextLength),
    certain("prompt_too_long", ContextLength),
    certain("input_too_long", ContextLength),
    certain("string_above_max_length", ContextLength),
    certain("request_too_large", ContextLength),
    certain("max_tokens_exceeded", ContextLength),
    certain("prompt_tokens_exceeded", ContextLength),
    certain("tokens_limit_reached", ContextLength),
    certain("insufficient_quota", Quota),
    certain("insufficient_user_quota", Quota),
    certain("insufficient_balance", Quota),
    certain("insufficient_credits", Quota),
    certain("insufficient_funds", Quota),
    certain("current_quota", Quota),
    certain("billing", Quota),
    certain("payment_required", Quota),
    certain("arrear", Quota),
    certain("budget_exceeded", Quota),
    certain("credit_balance", Quota),
    certain("content_filter", ContentFilter),
    certain("content_policy", ContentFilter),
    certain("responsible_ai", ContentFilter),
    certain("moderation", ContentFilter),
    certain("data_inspection_failed", ContentFilter),
    certain("sensitive", ContentFilter),
    certain("model_not_found", NotFound),
    certain("model_not_exist", NotFound),
    certain("unknown_model", NotFound),
    certain("deployment_not_found", NotFound),
    certain("invalid_api_key", Auth),
    certain("api_key_invalid", Auth),
    certain("incorrect_api_key", Auth),
    certain("invalid_authentication", Auth),
    certain("authentication", Auth),
    certain("unauthenticated", Auth),
    certain("unauthorized", Auth),
    certain("permission", Auth),
    certain("forbidden", Auth),
    certain("access_denied", Auth),
    certain("rate_limit", RateLimit),
    certain("too_many_requests", RateLimit),
    certain("resource_exhausted", RateLimit),
    certain("throttl", RateLimit),
    certain("overloaded", Overloaded),
    certain("unavailable", Overloaded),
    certain("capacity", Overloaded),
    general("not_found", NotFound),
    general("invalid_request", InvalidRequest),
    general("bad_request", InvalidRequest),
    general("invalid_argument", InvalidRequest),
    general("unprocessable", InvalidRequest),
    general("validation", InvalidRequest),
    general("invalid_parameter", InvalidRequest),
    general("unsupported", InvalidRequest),
    general("server_error", Server),
    general("internal", Server),
    general("api_error", Server),
    general("timeout", Server),
    general("deadline_exceeded", Server),
    general("bad_gateway", Server),
    general("upstream", Server),
    general("provider", Server),
    word("requests", RateLimit),
    word("tokens", RateLimit),
    word("error", Server),
];

/// What a message means, in lower case. Throttling comes before sizes, since its messages speak
/// of tokens too.
pub(super) fn meaning(message: &str) -> Option<ModelErrorKind> {
    let listed = |list: &[(&[&str], ModelErrorKind)]| {
        list.iter()
            .find(|(parts, _)| parts.iter().all(|part| message.contains(part)))
            .map(|(_, kind)| *kind)
    };
    listed(THROTTLED)
        .or_else(|| says_too_long(message).then_some(ContextLength))
        .or_else(|| listed(WORDINGS))
}

/// Whether it says of something that a context is measured by that there is too much of it.
fn says_too_long(message: &str) -> bool {
    let has = |list: &[&str]| list.iter().any(|part| message.contains(part));
    has(MEASURES) && has(EXCESSES)
}

/// What a context is measured by.
const MEASURES: &[&str] = &[
    "context length",
    "context size",
    "context window",
    "context limit",
    "model context",
    "n_ctx",
    "maximum context",
    "max context",
    "model length",
    "max_model_len",
    "max_seq_len",
    "sequence length",
    "prompt length",
    "prompt token",
    "prompt_token",
    "input length",
    "input token",
    "input_token",
    "number of tokens",
    "token count",
    "token limit",
    "tokens limit",
    "total tokens",
    "上下文长度",
    "输入长度",
];

/// How it is said that there is too much of something.
const EXCESSES: &[&str] = &[
    "exceed",
    "too long",
    "too large",
    "too big",
    "too many",
    "longer than",
    "larger than",
    "bigger than",
    "greater than",
    "more than",
    "less than",
    "smaller than",
    "shorter than",
    "at most",
    "not enough",
    "does not fit",
    "doesn't fit",
    "do not fit",
    "don't fit",
    "beyond",
    "over the",
    "overflow",
    "surpass",
    "reached",
    "超",
];

/// Texts that a message has all of, and what it then means. The first that fits counts.
const THROTTLED: &[(&[&str], ModelErrorKind)] = &[
    (&["rate limit"], RateLimit),
    (&["rate-limit"], RateLimit),
    (&["ratelimit"], RateLimit),
    (&["rate_limit"], RateLimit),
    (&["rate limited"], RateLimit),
    (&["too many requests"], RateLimit),
    (&["tokens per minute"], RateLimit),
    (&["tokens per day"], RateLimit),
    (&["requests per"], RateLimit),
    (&["throttl"], RateLimit),
    (&["credit balance"], Quota),
    (&["insufficient balance"], Quota),
    (&["budget has been exceeded"], Quota),
    (&["余额不足"], Quota),
    (&["欠费"], Quota),
    (&["速率限制"], RateLimit),
    (&["请求过于频繁"], RateLimit),
];

/// The same for what is neither throttling nor money.
const WORDINGS: &[(&[&str], ModelErrorKind)] = &[
    (&["prompt is too long"], ContextLength),
    (&["prompt too long"], ContextLength),
    (&["input is too long"], ContextLength),
    (&["input too long"], ContextLength),
    (&["prompt is too large"], ContextLength),
    (&["prompt too large"], ContextLength),
    (&["conversation is too long"], ContextLength),
    (&["tokens", "more than the"], ContextLength),
    (&["tokens", "more than allowed"], ContextLength),
    (&["tokens", "over the limit"], ContextLength),
    (&["messages are too long"], ContextLength),
    (&["contextwindowexceeded"], ContextLength),
    (&["context", "overflow"], ContextLength),
    (&["body too large", "tokens"], ContextLength),
    (&["prompt", "超长"], ContextLength),
    (&["request too large"], ContextLength),
    (&["maximum context length"], ContextLength),
    (&["max context length"], ContextLength),
    (&["longer than", "context"], ContextLength),
    (&["larger than", "context"], ContextLength),
    (&["exceed", "context", "token"], ContextLength),
    (&["context window", "full"], ContextLength),
    (&["exceeds", "maximum", "tokens"], ContextLength),
    (&["exceed", "max", "tokens"], ContextLength),
    (&["maximum prompt length"], ContextLength),
    (&["prompt", "exceed", "length"], ContextLength),
    (&["range of input length"], ContextLength),
    (&["must have less than", "tokens"], ContextLength),
    (&["max_prompt_tokens"], ContextLength),
    (&["exceeds", "model's", "length"], ContextLength),
    (&["too many tokens"], ContextLength),
    (&["tokens", "must be <=", "max"], ContextLength),
    (
        &["inputs tokens", "max_new_tokens", "must be"],
        ContextLength,
    ),
    (&["reduce the length of the"], ContextLength),
    (&["context_length_exceeded"], ContextLength),
    (&["model_context_window_exceeded"], ContextLength),
    (&["overloaded"], Overloaded),
    (&["at capacity"], Overloaded),
    (&["over capacity"], Overloaded),
    (&["queue is full"], Overloaded),
    (&["temporarily unavailable"], Overloaded),
    (&["service unavailable"], Overloaded),
    (&["try again later"], Overloaded),
    (&["no available"], Overloaded),
    (&["server is busy"], Overloaded),
    (&["content filter"], ContentFilter),
    (&["content policy"], ContentFilter),
    (&["content management policy"], ContentFilter),
    (&["content moderation"], ContentFilter),
    (&["flagged"], ContentFilter),
    (&["敏感"], ContentFilter),
    (&["safety system"], ContentFilter),
    (&["inappropriate content"], ContentFilter),
    (&["api key"], Auth),
    (&["api_key"], Auth),
    (&["unauthorized"], Auth),
    (&["authentication"], Auth),
    (&["model", "not found"], NotFound),
    (&["model", "does not exist"], NotFound),
    (&["no such model"], NotFound),
    (&["unknown model"], NotFound),
    (&["timed out"], Server),
    (&["timeout"], Server),
    (&["internal server error"], Server),
    (&["internal error"], Server),
    (&["disconnected"], Server),
    (&["connection reset"], Server),
];
