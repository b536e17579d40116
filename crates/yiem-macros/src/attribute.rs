//! What stands in the brackets of `#[tool(…)]` and `#[arg(…)]`.
//!
//! Knows: the keys and what each may be. Does not know: the function.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Expr, Ident, LitBool, LitFloat, LitInt, LitStr, Path, Result, Token};

use crate::duration;

/// What `#[tool(…)]` says.
#[derive(Default)]
pub(crate) struct ToolAttribute {
    pub(crate) name: Option<LitStr>,
    pub(crate) label: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) timeout_millis: Option<u64>,
    pub(crate) result_bytes: Option<LitInt>,
    pub(crate) concurrency: Option<LitInt>,
    pub(crate) parallel: Option<bool>,
    pub(crate) blocking: bool,
    pub(crate) needs_approval: bool,
    pub(crate) replay_safe: bool,
    pub(crate) output_schema: bool,
    pub(crate) strict: bool,
    pub(crate) prepare: Option<Path>,
    pub(crate) validate: Option<Path>,
    pub(crate) krate: Option<Path>,
}

const TOOL_KEYS: &str = "name, label, description, timeout, result_bytes, concurrency, parallel, blocking, \
                         needs_approval, replay, output_schema, strict, prepare, validate, crate";

impl Parse for ToolAttribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut found = Self::default();
        each(input, |key, input| found.take(key, input))?;
        Ok(found)
    }
}

impl ToolAttribute {
    fn take(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "name" => self.name = Some(tool_name(input)?),
            "label" => self.label = Some(text(key, input)?),
            "description" => self.description = Some(text(key, input)?),
            "timeout" => self.timeout_millis = Some(timeout(input)?),
            "result_bytes" => self.result_bytes = Some(number(key, input)?),
            "concurrency" => self.concurrency = Some(number(key, input)?),
            "parallel" => self.parallel = Some(flag(input)?),
            "blocking" => self.blocking = flag(input)?,
            "needs_approval" => self.needs_approval = flag(input)?,
            "output_schema" => self.output_schema = flag(input)?,
            "strict" => self.strict = flag(input)?,
            "replay" => self.replay_safe = replay(input)?,
            "prepare" => self.prepare = Some(path(key, input)?),
            "validate" => self.validate = Some(path(key, input)?),
            "crate" => self.krate = Some(path(key, input)?),
            other => {
                return Err(Error::new(
                    key.span(),
                    format!("`{other}` is not known here; known are {TOOL_KEYS}"),
                ));
            }
        }
        Ok(())
    }
}

/// What `#[arg(…)]` says.
#[derive(Default)]
pub(crate) struct ArgAttribute {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) default: Option<ArgDefault>,
}

/// What an argument is when it is left out.
pub(crate) enum ArgDefault {
    /// `Default::default()`.
    OfType(Span),
    /// A value.
    Value(Box<Expr>),
}

impl Parse for ArgAttribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut found = Self::default();
        each(input, |key, input| {
            match key.to_string().as_str() {
                "name" => found.name = Some(text(key, input)?),
                "description" => found.description = Some(text(key, input)?),
                "default" if input.peek(Token![=]) => {
                    input.parse::<Token![=]>()?;
                    found.default = Some(ArgDefault::Value(Box::new(input.parse()?)));
                }
                "default" => found.default = Some(ArgDefault::OfType(key.span())),
                other => {
                    return Err(Error::new(
                        key.span(),
                        format!(
                            "`{other}` is not known here; known are name, description, default"
                        ),
                    ));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

fn each(
    input: ParseStream<'_>,
    mut take: impl FnMut(&Ident, ParseStream<'_>) -> Result<()>,
) -> Result<()> {
    let mut seen: Vec<String> = Vec::new();
    while !input.is_empty() {
        // `crate` is a keyword, and no identifier otherwise.
        let key = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
        if seen.contains(&key.to_string()) {
            return Err(Error::new(key.span(), format!("`{key}` stands here twice")));
        }
        take(&key, input)?;
        seen.push(key.to_string());
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

fn text(key: &Ident, input: ParseStream<'_>) -> Result<LitStr> {
    let shape = format!("write `{key} = \"…\"`");
    input
        .parse::<Token![=]>()
        .map_err(|e| Error::new(e.span(), &shape))?;
    input.parse().map_err(|e| Error::new(e.span(), &shape))
}

fn tool_name(input: ParseStream<'_>) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    let name: LitStr = input.parse()?;
    let value = name.value();
    let good = !value.is_empty()
        && value.len() <= 64
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if good {
        Ok(name)
    } else {
        Err(Error::new(
            name.span(),
            "a tool's name has 1 to 64 letters, digits, `_` and `-`: providers refuse others",
        ))
    }
}

fn timeout(input: ParseStream<'_>) -> Result<u64> {
    input.parse::<Token![=]>()?;
    let (text, span) = if input.peek(LitStr) {
        let lit: LitStr = input.parse()?;
        (lit.value(), lit.span())
    } else if input.peek(LitFloat) {
        let lit: LitFloat = input.parse()?;
        (lit.to_string(), lit.span())
    } else {
        let lit: LitInt = input
            .parse()
            .map_err(|e| Error::new(e.span(), "write `timeout = \"20s\"`"))?;
        (lit.to_string(), lit.span())
    };
    duration::millis(&text).map_err(|e| Error::new(span, e))
}

fn number(key: &Ident, input: ParseStream<'_>) -> Result<LitInt> {
    input.parse::<Token![=]>()?;
    let lit: LitInt = input
        .parse()
        .map_err(|e| Error::new(e.span(), format!("write `{key} = 4096`")))?;
    if lit.base10_parse::<usize>()? == 0 {
        return Err(Error::new(
            lit.span(),
            format!("`{key}` has to be at least 1"),
        ));
    }
    Ok(lit)
}

/// `blocking`, `blocking = true`, `blocking = false`.
fn flag(input: ParseStream<'_>) -> Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    input.parse::<Token![=]>()?;
    input
        .parse::<LitBool>()
        .map(|lit| lit.value)
        .map_err(|e| Error::new(e.span(), "write `true` or `false`"))
}

/// `replay = safe`, `replay = "safe"`, `replay = never`.
fn replay(input: ParseStream<'_>) -> Result<bool> {
    input.parse::<Token![=]>()?;
    let (word, span) = if input.peek(LitStr) {
        let lit: LitStr = input.parse()?;
        (lit.value(), lit.span())
    } else {
        let ident: Ident = input.parse()?;
        (ident.to_string(), ident.span())
    };
    match word.as_str() {
        "safe" => Ok(true),
        "never" => Ok(false),
        _ => Err(Error::new(
            span,
            "write `replay = safe` or `replay = never`",
        )),
    }
}

fn path(key: &Ident, input: ParseStream<'_>) -> Result<Path> {
    input.parse::<Token![=]>()?;
    let parsed = if input.peek(LitStr) {
        input.parse::<LitStr>()?.parse()
    } else {
        input.call(Path::parse_mod_style)
    };
    parsed.map_err(|e| Error::new(e.span(), format!("write `{key} = path::of::it`")))
}
