//! Tool calls that stand as text in an answer, because a server did not read its model's markup.
//!
//! Knows: the markup of models, as data, and that explaining a call is not making one: a call
//! counts only inside its markup, or where it is the whole answer, and only if its name was
//! offered. Does not know: when recovery is wanted.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::arguments;
use crate::names::OfferedTools;
use crate::think::overlap;

/// Text that opens the markup of calls, and how what follows is written.
const MARKUP: &[(&str, Form)] = &[
    ("<tool_call>", Form::Tagged("</tool_call>")),
    ("<tool_calls>", Form::Tagged("</tool_calls>")),
    ("<function_call>", Form::Tagged("</function_call>")),
    ("<functioncall>", Form::Tagged("</functioncall>")),
    ("<|tool_call|>", Form::Tagged("<|/tool_call|>")),
    ("<|tool_call_start|>", Form::Tagged("<|tool_call_end|>")),
    ("<|python_tag|>", Form::Tagged("<|eom_id|>")),
    ("<|action_start|><|plugin|>", Form::Tagged("<|action_end|>")),
    ("<|START_ACTION|>", Form::Tagged("<|END_ACTION|>")),
    ("<TOOLCALL>", Form::Tagged("</TOOLCALL>")),
    ("<tool_use>", Form::Tagged("</tool_use>")),
    ("<seed:tool_call>", Form::Tagged("</seed:tool_call>")),
    ("functools[", Form::List),
    ("<function=", Form::Function),
    (
        "<minimax:tool_call>",
        Form::Invokes {
            prefix: "",
            close: "</minimax:tool_call>",
        },
    ),
    (
        "<function_calls>",
        Form::Invokes {
            prefix: "",
            close: "</function_calls>",
        },
    ),
    (
        "<｜DSML｜function_calls>",
        Form::Invokes {
            prefix: "｜DSML｜",
            close: "</｜DSML｜function_calls>",
        },
    ),
    ("[TOOL_CALLS]", Form::Mistral),
    (
        "<|tool_calls_section_begin|>",
        Form::Section {
            begin: "<|tool_call_begin|>",
            separator: "<|tool_call_argument_begin|>",
            end: "<|tool_call_end|>",
            close: "<|tool_calls_section_end|>",
        },
    ),
    (
        "<｜tool▁calls▁begin｜>",
        Form::Section {
            begin: "<｜tool▁call▁begin｜>",
            separator: "<｜tool▁sep｜>",
            end: "<｜tool▁call▁end｜>",
            close: "<｜tool▁calls▁end｜>",
        },
    ),
    ("<|channel|>commentary to=", Form::Channel),
    ("<|start|>assistant<|channel|>commentary to=", Form::Channel),
];

#[derive(Debug, Clone, Copy)]
enum Form {
    /// One call or a list of calls as JSON (or in another form that models write there), then
    /// this.
    Tagged(&'static str),
    /// A JSON list of calls whose bracket is part of the opening text.
    List,
    /// `<invoke name="NAME">` elements with `<parameter name="KEY">` elements, each tag's name
    /// behind the prefix.
    Invokes {
        prefix: &'static str,
        close: &'static str,
    },
    /// `NAME>` arguments `</function>`.
    Function,
    /// A JSON list of calls, or `NAME[ARGS]` or `NAME` and arguments.
    Mistral,
    /// Calls, each name and arguments between tokens.
    Section {
        begin: &'static str,
        separator: &'static str,
        end: &'static str,
        close: &'static str,
    },
    /// `functions.NAME … <|message|>` arguments `<|call|>`.
    Channel,
}

/// Tokens that end a reply, which a server that does not read markup may leave behind it.
const ENDS: [&str; 8] = [
    "</s>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
];

/// The most white space that is held back because markup may follow.
const MARGIN: usize = 256;

/// A call that was found; its arguments are text that still has to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub name: String,
    pub arguments: String,
}

/// Holds back text from where markup may begin, and reads it at the end.
#[derive(Debug, Default)]
pub(crate) struct LeakFilter {
    held: String,
    /// Text without any markup was let through; the whole answer is no single call then.
    passed: bool,
    /// Markup began: the rest is held until the end.
    holding: bool,
}

impl LeakFilter {
    /// Takes the next piece; gives what can be shown already.
    pub(crate) fn push(&mut self, piece: &str) -> Option<String> {
        self.held.push_str(piece);
        if self.holding {
            return None;
        }
        if !self.passed && self.held.trim_start().starts_with(['{', '[', '`']) {
            // Perhaps the whole answer is one call.
            self.holding = true;
            return None;
        }
        let found = MARKUP
            .iter()
            .filter_map(|(open, _)| self.held.find(open))
            .min();
        self.holding = found.is_some();
        let end = found.unwrap_or_else(|| {
            let begun = MARKUP
                .iter()
                .map(|(open, _)| overlap(&self.held, open))
                .max();
            self.held.len() - begun.unwrap_or(0)
        });
        // White space next to the markup goes with it; a great deal of it is no one's margin.
        let trimmed = self.held[..end].trim_end().len();
        let end = if end - trimmed > MARGIN { end } else { trimmed };
        if end == 0 {
            return None;
        }
        self.passed = true;
        Some(self.held.drain(..end).collect())
    }

    /// The rest of the text, and the calls that were in it. `None` = none are looked for.
    pub(crate) fn finish(self, offered: Option<&OfferedTools>) -> (String, Vec<Found>) {
        let Some(offered) = offered.filter(|_| !self.held.trim().is_empty()) else {
            return (self.held, Vec::new());
        };
        if !self.passed
            && let Some(calls) = whole_answer(&self.held, offered)
        {
            return (String::new(), calls);
        }
        recover(&self.held, offered)
    }
}

/// The answer is nothing but a call, or a list of calls, in a fence or bare.
fn whole_answer(text: &str, offered: &OfferedTools) -> Option<Vec<Found>> {
    let mut text = text.trim();
    // Program text in a fence is an example more often than a call, unless it says what it is or
    // is the list that some models are taught to write.
    let mut example = false;
    if let Some(inner) = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
    {
        let language = ["json", "tool_code", "python"]
            .iter()
            .find(|language| inner.starts_with(**language));
        text = inner[language.map_or(0, |language| language.len())..].trim();
        example = language != Some(&"tool_code") && !text.starts_with('[');
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(value) => calls_of(value, offered, Bare::Yes),
        Err(_) if example => None,
        Err(_) => pythonic(text, offered),
    }
}

/// Calls as a Python program writes them, `[add(a=1, b=2), now()]` or one of them, and nothing
/// else.
fn pythonic(text: &str, offered: &OfferedTools) -> Option<Vec<Found>> {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let mut rest = inner.unwrap_or(text).trim();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (name, arguments) = rest.split_once('(')?;
        let (values, end) = crate::arguments::keywords(arguments)?;
        let name = name.trim();
        let name = offered
            .find(name)
            .or_else(|| offered.find(name.strip_suffix(".call")?))?;
        calls.push(Found {
            name: name.to_owned(),
            arguments: values,
        });
        rest = arguments[end..].trim_start();
        match rest.strip_prefix(',') {
            Some(more) if inner.is_some() => rest = more.trim_start(),
            _ if rest.is_empty() => {}
            _ => return None,
        }
    }
    (!calls.is_empty()).then_some(calls)
}

/// How much markup may turn out to be none before the rest is left as text: a model that
/// stammers one token must not make this slow.
const FAILURES: usize = 64;

/// Where each opening of markup comes next; each is looked for once over the whole text.
struct Openings<'t> {
    text: &'t str,
    next: Vec<Option<usize>>,
}

impl<'t> Openings<'t> {
    fn new(text: &'t str) -> Self {
        let next = MARKUP.iter().map(|(open, _)| text.find(open)).collect();
        Self { text, next }
    }

    /// The first from there on, the longest where several begin: where, what, and its form.
    fn first(&mut self, from: usize) -> Option<(usize, &'static str, Form)> {
        for (next, (open, _)) in self.next.iter_mut().zip(MARKUP) {
            if next.is_some_and(|at| at < from) {
                *next = self.text[from..].find(open).map(|at| from + at);
            }
        }
        let found = self.next.iter().zip(MARKUP);
        found
            .filter_map(|(at, (open, form))| Some(((*at)?, *open, *form)))
            .min_by_key(|(at, open, _)| (*at, std::cmp::Reverse(open.len())))
    }
}

fn recover(text: &str, offered: &OfferedTools) -> (String, Vec<Found>) {
    let (mut kept, mut calls) = (String::new(), Vec::new());
    let mut openings = Openings::new(text);
    let (mut from, mut failures) = (0, 0);
    let mut removed = false;
    while failures < FAILURES
        && let Some((at, open, form)) = openings.first(from)
    {
        let begun = at + open.len();
        match read(form, &text[begun..], offered) {
            Some((found, length)) => {
                push_text(&mut kept, &text[from..at], removed, true);
                calls.extend(found);
                from = begun + length;
                removed = true;
            }
            None => {
                push_text(&mut kept, &text[from..begun], removed, false);
                removed = false;
                from = begun;
                failures += 1;
            }
        }
    }
    let mut rest = &text[from..];
    while removed && let Some(more) = ENDS.iter().find_map(|end| rest.trim().strip_prefix(end)) {
        rest = more;
    }
    push_text(&mut kept, rest, removed, false);
    if calls.is_empty() {
        return (text.to_owned(), calls);
    }
    (kept, calls)
}

fn push_text(kept: &mut String, text: &str, after_markup: bool, before_markup: bool) {
    let text = if after_markup {
        text.trim_start()
    } else {
        text
    };
    kept.push_str(if before_markup { text.trim_end() } else { text });
}

/// Reads the calls of one piece of markup; gives them and how long it is. `None` when it is no
/// such markup, or names a tool that was not offered.
fn read(form: Form, text: &str, offered: &OfferedTools) -> Option<(Vec<Found>, usize)> {
    match form {
        Form::Tagged(close) => tagged(text, close, offered),
        Form::List => {
            let (value, end) = json(&format!("[{text}"))?;
            Some((calls_of(&value, offered, Bare::No)?, end - 1))
        }
        Form::Invokes { prefix, close } => invokes(text, prefix, close, offered),
        Form::Function => {
            let (call, at) = function(text, offered)?;
            Some((vec![call], at))
        }
        Form::Mistral => mistral(text, offered),
        Form::Section {
            begin,
            separator,
            end,
            close,
        } => section(text, [begin, separator, end, close], offered),
        Form::Channel => channel(text, offered),
    }
}

fn tagged(text: &str, close: &str, offered: &OfferedTools) -> Option<(Vec<Found>, usize)> {
    let body = text.trim_start();
    let mut at = text.len() - body.len();
    let mut calls = Vec::new();
    if let Some(inner) = body.strip_prefix("<function=") {
        let (call, length) = function(inner, offered)?;
        calls.push(call);
        at += body.len() - inner.len() + length;
    } else if !body.starts_with(['{', '[']) {
        // GLM names the tool and gives each key and value an element; Llama writes Python.
        let end = body.find(close).unwrap_or(body.len());
        calls.extend(
            keyed(&body[..end], offered)
                .map(|call| vec![call])
                .or_else(|| pythonic(body[..end].trim(), offered))?,
        );
        at += end;
    } else {
        loop {
            let (value, end) = json(&text[at..]).or_else(|| mended_until(&text[at..], close))?;
            calls.extend(calls_of(&value, offered, Bare::No)?);
            at += end;
            let rest = text[at..].trim_start();
            let more = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start();
            if !more.starts_with('{') {
                break;
            }
            at = text.len() - more.len();
        }
    }
    Some((calls, closed(text, at, close)))
}

/// `NAME`, then `<arg_key>` and `<arg_value>` elements in turn.
fn keyed(text: &str, offered: &OfferedTools) -> Option<Found> {
    let (name, mut rest) = match text.find("<arg_key>") {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let name = offered.find(name.trim())?.to_owned();
    let mut arguments = serde_json::Map::new();
    while let Some((key, after)) = element(rest, "<arg_key>", "</arg_key>") {
        let (value, after) = element(after, "<arg_value>", "</arg_value>")?;
        arguments.insert(key.trim().to_owned(), Value::from(value));
        rest = after;
    }
    rest.trim().is_empty().then(|| Found {
        name,
        arguments: Value::Object(arguments).to_string(),
    })
}

/// The text of the element that comes next, and what stands behind it.
fn element<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    text.trim_start().strip_prefix(open)?.split_once(close)
}

fn invokes(
    text: &str,
    prefix: &str,
    close: &str,
    offered: &OfferedTools,
) -> Option<(Vec<Found>, usize)> {
    let tag = |name: &str| {
        (
            format!("<{prefix}{name} name=\""),
            format!("</{prefix}{name}>"),
        )
    };
    let ((invoke, invoked), (parameter, given)) = (tag("invoke"), tag("parameter"));
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some((call, after)) = element(rest, &invoke, &invoked) {
        let (name, mut inner) = call.split_once("\">")?;
        let mut arguments = serde_json::Map::new();
        while let Some((one, more)) = element(inner, &parameter, &given) {
            let (key, one) = one.split_once('"')?;
            let (_, value) = one.split_once('>')?;
            arguments.insert(key.to_owned(), Value::from(value));
            inner = more;
        }
        if !inner.trim().is_empty() {
            return None;
        }
        calls.push(Found {
            name: offered.find(name)?.to_owned(),
            arguments: Value::Object(arguments).to_string(),
        });
        rest = after;
    }
    if calls.is_empty() {
        return None;
    }
    Some((calls, closed(text, text.len() - rest.len(), close)))
}

/// Where the markup ends: behind its closing text, if that follows.
fn closed(text: &str, at: usize, close: &str) -> usize {
    let rest = text[at..].trim_start();
    match rest.strip_prefix(close) {
        Some(after) => text.len() - after.len(),
        None => at,
    }
}

/// The JSON value at the beginning.
fn json(text: &str) -> Option<(Box<RawValue>, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>();
    let value = values.next()?.ok()?;
    let nested = value.get().starts_with(['{', '[']);
    nested.then(|| (value, values.byte_offset()))
}

/// A value that is nearly JSON, up to the closing text.
fn mended_until(text: &str, close: &str) -> Option<(Box<RawValue>, usize)> {
    let end = text.find(close)?;
    let read = arguments::read(&text[..end], arguments::Reply::Whole);
    read.object().filter(|object| !object.is_empty())?;
    let json = RawValue::from_string(read.raw().into_owned()).ok()?;
    Some((json, end))
}

/// `NAME>` and arguments as JSON, or as `<parameter=KEY>` elements.
fn function(text: &str, offered: &OfferedTools) -> Option<(Found, usize)> {
    const CLOSE: &str = "</function>";
    let (name, rest) = text.split_once('>')?;
    let name = offered.find(name.trim())?.to_owned();
    let start = text.len() - rest.len();
    if let Some((value, end)) = json(rest).filter(|(value, _)| value.get().starts_with('{')) {
        let call = Found {
            name,
            arguments: value.get().to_owned(),
        };
        return Some((call, closed(text, start + end, CLOSE)));
    }
    let end = rest.find(CLOSE)?;
    let mut arguments = serde_json::Map::new();
    let mut inner = &rest[..end];
    while let Some((_, element)) = inner.split_once("<parameter=") {
        let (key, element) = element.split_once('>')?;
        let (value, after) = element.split_once("</parameter>")?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        // The element's text is the value's; a schema says later what it should be.
        arguments.insert(key.trim().to_owned(), Value::from(value));
        inner = after;
    }
    let call = Found {
        name,
        arguments: Value::Object(arguments).to_string(),
    };
    Some((call, start + end + CLOSE.len()))
}

fn mistral(text: &str, offered: &OfferedTools) -> Option<(Vec<Found>, usize)> {
    if text.trim_start().starts_with(['[', '{']) {
        let (value, end) = json(text)?;
        return Some((calls_of(&value, offered, Bare::No)?, end));
    }
    let brace = text.find('{')?;
    let head = &text[..brace];
    let name = head.split(['[', '<']).next().unwrap_or(head).trim();
    let name = offered.find(name)?.to_owned();
    let (value, end) = json(&text[brace..])?;
    Some((
        vec![Found {
            name,
            arguments: value.get().to_owned(),
        }],
        brace + end,
    ))
}

fn section(
    text: &str,
    [begin, separator, end, close]: [&str; 4],
    offered: &OfferedTools,
) -> Option<(Vec<Found>, usize)> {
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(inner) = rest.trim_start().strip_prefix(begin) {
        let (head, inner) = inner.split_once(separator)?;
        let (body, after) = inner.split_once(end).unwrap_or((inner, ""));
        // DeepSeek's older form has the kind of call first and the name behind it.
        let (head, body) = match body.split_once('\n') {
            Some((name, body)) if head.trim() == "function" => (name, body),
            _ => (head, body),
        };
        // Kimi numbers its calls: functions.NAME:0.
        let name = head.trim();
        let name = name
            .rsplit_once(':')
            .filter(|(_, n)| n.parse::<u32>().is_ok())
            .map_or(name, |(n, _)| n);
        let name = offered.find(name)?.to_owned();
        let body = body.trim();
        let body = body
            .strip_prefix("```json")
            .or(body.strip_prefix("```"))
            .unwrap_or(body);
        let body = body.strip_suffix("```").unwrap_or(body).trim();
        calls.push(Found {
            name,
            arguments: body.to_owned(),
        });
        rest = after;
    }
    if calls.is_empty() {
        return None;
    }
    Some((calls, closed(text, text.len() - rest.len(), close)))
}

fn channel(text: &str, offered: &OfferedTools) -> Option<(Vec<Found>, usize)> {
    let (head, body) = text.split_once("<|message|>")?;
    let name = head.split(|c: char| c.is_whitespace() || c == '<').next()?;
    let name = offered.find(name)?.to_owned();
    let (value, end) = json(body)?;
    let at = text.len() - body.len() + end;
    Some((
        vec![Found {
            name,
            arguments: value.get().to_owned(),
        }],
        closed(text, at, "<|call|>"),
    ))
}

/// Whether a value stands without markup: only arguments tell then that it is a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    Yes,
    No,
}

/// The calls that a value is; `None` when it is none, or one of a tool that was not offered.
fn calls_of(value: &RawValue, offered: &OfferedTools, bare: Bare) -> Option<Vec<Found>> {
    let list = |json: &RawValue| {
        let items = serde_json::from_str::<Vec<&RawValue>>(json.get()).ok()?;
        let calls = items.iter().map(|item| call_of(item, offered, bare));
        (!items.is_empty()).then(|| calls.collect()).flatten()
    };
    if value.get().starts_with('[') {
        return list(value);
    }
    // A whole message as text.
    match members(value)?.get("tool_calls") {
        Some(calls) if members(value)?.len() == 1 => list(calls),
        _ => Some(vec![call_of(value, offered, bare)?]),
    }
}

/// An object's members as they stand; numbers in them are kept to the last digit.
fn members(value: &RawValue) -> Option<HashMap<String, &RawValue>> {
    serde_json::from_str(value.get()).ok()
}

fn call_of(value: &RawValue, offered: &OfferedTools, bare: Bare) -> Option<Found> {
    let outer = members(value)?;
    let object = outer
        .get("function")
        .and_then(|function| members(function))
        .unwrap_or(outer);
    let name = ["name", "function", "tool", "tool_name"]
        .iter()
        .find_map(|key| serde_json::from_str::<String>(object.get(*key)?.get()).ok())?;
    let arguments = ["arguments", "parameters", "args", "input"]
        .iter()
        .find_map(|key| object.get(*key))
        .map(|arguments| arguments::text_of(arguments).into_owned());
    if arguments.is_none() && bare == Bare::Yes {
        return None;
    }
    Some(Found {
        name: offered.find(&name)?.to_owned(),
        arguments: arguments.unwrap_or_default(),
    })
}
