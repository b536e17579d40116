//! How to reach a server on NATS.
//!
//! Knows: servers, credentials, TLS, subjects, and how an address says them. Does not know: connections.

use super::codec::{NatsCodec, PayloadFetcher};
use super::envelope::EnvelopeConfig;
use super::subject::{SubjectStyle, Subjects};
use crate::dialect::DialectChoice;
use crate::error::McpError;
use serde_json::{Map, Value};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How to reach a server on NATS, or to offer one there.
#[derive(Clone)]
pub struct NatsConfig {
    pub(crate) servers: Vec<String>,
    pub(crate) subject: String,
    pub(crate) style: SubjectStyle,
    pub(crate) codec: NatsCodec,
    pub(crate) dialect: DialectChoice,
    pub(crate) auth: NatsAuth,
    pub(crate) tls: NatsTls,
    pub(crate) inbox_prefix: Option<String>,
    pub(crate) name: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) call_timeout: Duration,
    pub(crate) fetcher: Option<Arc<dyn PayloadFetcher>>,
}

/// What a NATS server is shown.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NatsAuth {
    /// Nothing.
    #[default]
    None,
    /// A token.
    Token(String),
    /// A token, in that environment variable.
    TokenEnv(String),
    /// User and password.
    UserPassword {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// `user:password`, in that environment variable; or the user alone, when the password has its own.
    UserEnv {
        /// The variable with the user, or with `user:password`.
        user: String,
        /// The variable with the password.
        password: Option<String>,
    },
    /// The seed of an nkey (`SU…`).
    Nkey(String),
    /// The seed of an nkey, in that environment variable.
    NkeyEnv(String),
    /// A credentials file with JWT and seed.
    CredentialsFile(PathBuf),
    /// The text of a credentials file.
    Credentials(String),
}

impl fmt::Debug for NatsAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Token(_) => f.write_str("Token(***)"),
            Self::TokenEnv(name) => write!(f, "TokenEnv({name})"),
            Self::UserPassword { .. } => f.write_str("UserPassword(***)"),
            Self::UserEnv { user, .. } => write!(f, "UserEnv({user})"),
            Self::Nkey(_) => f.write_str("Nkey(***)"),
            Self::NkeyEnv(name) => write!(f, "NkeyEnv({name})"),
            Self::CredentialsFile(path) => write!(f, "CredentialsFile({})", path.display()),
            Self::Credentials(_) => f.write_str("Credentials(***)"),
        }
    }
}

/// How a connection is protected. A server that demands TLS gets it in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NatsTls {
    /// Whether to refuse a server without TLS; also said by `tls://`.
    pub required: bool,
    /// Whether TLS comes before the server's first word.
    pub first: bool,
    /// A PEM file of authorities that are trusted in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM files of the client's own certificate and key.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl NatsConfig {
    /// A server at `subject`, reached through any of `servers` (`nats://HOST:PORT`, `tls://HOST:PORT`).
    ///
    /// The bare dialect, plain bodies, one subject, no credentials, 180 s a call (the seeds).
    pub fn new(
        servers: impl IntoIterator<Item = impl Into<String>>,
        subject: impl Into<String>,
    ) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            subject: subject.into(),
            style: SubjectStyle::Fixed,
            codec: NatsCodec::Plain,
            dialect: DialectChoice::Bare,
            auth: NatsAuth::None,
            tls: NatsTls::default(),
            inbox_prefix: None,
            name: "yiem".into(),
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(180),
            fetcher: None,
        }
    }

    /// Reads `nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT][,HOST…]/SUBJECT[?OPTIONS]`, also with `tls://`.
    ///
    /// Options, parted by `&`: `codec=plain|envelope`, `meta=none|modern`, `subjects=fixed|method`,
    /// `creds=FILE`, `user_env=NAME` (a variable with `user:password`), `password_env=NAME`,
    /// `token_env=NAME`, `nkey_env=NAME`, `inbox=PREFIX`, `ca=FILE`, `cert=FILE` and `key=FILE`,
    /// `tls_first=true`, `timeout=SECONDS`, and for envelopes `sender_id=ID`, `sender_name=NAME`,
    /// `fileserver=URL`. Everything may be percent-encoded.
    ///
    /// # Errors
    /// It is no such address, has an unknown option, or no subject. The error shows no credentials.
    pub fn from_url(url: &str) -> Result<Self, McpError> {
        let (scheme, rest) = url
            .split_once("://")
            .filter(|(scheme, _)| matches!(*scheme, "nats" | "tls" | "nats+tls"))
            .ok_or_else(|| McpError::config("an address on NATS begins with nats:// or tls://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, subject) = rest.split_once('/').ok_or_else(|| {
            McpError::config(
                "an address on NATS needs the subject of the server: nats://HOST:PORT/SUBJECT",
            )
        })?;
        let tls = scheme != "nats";
        let mut auth = NatsAuth::None;
        let mut servers = Vec::new();
        for place in authority.split(',') {
            let (user, host) = match place.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, place),
            };
            if host.is_empty() {
                return Err(McpError::config(
                    "an address on NATS needs a host: nats://HOST:PORT/SUBJECT",
                ));
            }
            if let Some(user) = user {
                auth = match user.split_once(':') {
                    Some((user, password)) => NatsAuth::UserPassword {
                        user: percent_decoded(user)?,
                        password: percent_decoded(password)?,
                    },
                    None => NatsAuth::Token(percent_decoded(user)?),
                };
            }
            servers.push(format!("{}://{host}", if tls { "tls" } else { "nats" }));
        }
        let mut config = Self::new(servers, percent_decoded(subject)?);
        config.auth = auth;
        config.tls.required = tls;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, "true"));
            config.set(&percent_decoded(key)?, percent_decoded(value)?)?;
        }
        config.subjects()?;
        Ok(config)
    }

    /// Reads an entry of the `mcpServers` map: `nats` is an address, or an object with `url` (or a list
    /// `servers`), `subject` and the options of [`NatsConfig::from_url`]; with an address alone, `subject`
    /// and the options may stand beside it.
    pub(crate) fn from_entry(nats: &Value, entry: &Map<String, Value>) -> Result<Self, McpError> {
        let (fields, url) = match nats {
            Value::Object(fields) => (fields, fields.get("url").and_then(Value::as_str)),
            Value::String(url) => (entry, Some(url.as_str())),
            _ => {
                return Err(McpError::config(
                    "`nats` is neither an address nor an object",
                ));
            }
        };
        let mut url = match (url, fields.get("servers").and_then(Value::as_array)) {
            (Some(url), _) => url.to_owned(),
            (None, Some(servers)) => joined(servers)?,
            (None, None) => return Err(McpError::config("`nats` needs a `url`: nats://HOST:PORT")),
        };
        let has_subject = url.split_once("://").is_some_and(|(_, rest)| {
            rest.split('?')
                .next()
                .and_then(|rest| rest.split_once('/'))
                .is_some_and(|(_, subject)| !subject.is_empty())
        });
        if let Some(subject) = fields.get("subject").and_then(Value::as_str)
            && !has_subject
        {
            let (base, query) = url.split_once('?').unwrap_or((&url, ""));
            let base = base.trim_end_matches('/');
            url = format!(
                "{base}/{}{}{query}",
                subject.replace('%', "%25").replace('?', "%3F"),
                if query.is_empty() { "" } else { "?" }
            );
        }
        let mut config = Self::from_url(&url)?;
        for (key, value) in fields {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                _ => continue,
            };
            match key.as_str() {
                // What was read above, and what is for every kind of server.
                "url" | "subject" | "nats" | "name" | "type" | "transport" | "disabled"
                | "enabled" | "required" | "timeout" | "timeoutMs" => {}
                "token" => config.auth = NatsAuth::Token(value),
                "nkey" => config.auth = NatsAuth::Nkey(value),
                "user" | "password" => {
                    let text = |key: &str| {
                        fields
                            .get(key)
                            .and_then(Value::as_str)
                            .unwrap_or_default()
                            .to_owned()
                    };
                    config.auth = NatsAuth::UserPassword {
                        user: text("user"),
                        password: text("password"),
                    };
                }
                key if std::ptr::eq(fields, entry) && !OPTIONS.contains(&key) => {}
                key => config.set(key, value)?,
            }
        }
        config.subjects()?;
        Ok(config)
    }

    fn set(&mut self, key: &str, value: String) -> Result<(), McpError> {
        let bad = |may_be: &str| {
            McpError::config(format!(
                "the option {key} of an address on NATS is `{value}`; it can be {may_be}"
            ))
        };
        match key {
            "codec" => match value.as_str() {
                "plain" => self.codec = NatsCodec::Plain,
                "envelope" => drop(self.envelope_mut()),
                _ => return Err(bad("plain or envelope")),
            },
            "meta" => match value.as_str() {
                "none" => self.dialect = DialectChoice::Bare,
                "modern" => self.dialect = DialectChoice::Modern,
                _ => return Err(bad("none or modern")),
            },
            "subjects" => match value.as_str() {
                "fixed" => self.style = SubjectStyle::Fixed,
                "method" => self.style = SubjectStyle::ByMethod,
                _ => return Err(bad("fixed or method")),
            },
            "creds" => self.auth = NatsAuth::CredentialsFile(value.into()),
            "token_env" => self.auth = NatsAuth::TokenEnv(value),
            "nkey_env" => self.auth = NatsAuth::NkeyEnv(value),
            "user_env" => {
                let password = match &mut self.auth {
                    NatsAuth::UserEnv { password, .. } => password.take(),
                    _ => None,
                };
                self.auth = NatsAuth::UserEnv {
                    user: value,
                    password,
                };
            }
            "password_env" => match &mut self.auth {
                NatsAuth::UserEnv { password, .. } => *password = Some(value),
                _ => {
                    self.auth = NatsAuth::UserEnv {
                        user: String::new(),
                        password: Some(value),
                    }
                }
            },
            "inbox" => self.inbox_prefix = Some(value),
            "ca" => self.tls.ca_file = Some(value.into()),
            "cert" => self.tls.client.get_or_insert_default().0 = value.into(),
            "key" => self.tls.client.get_or_insert_default().1 = value.into(),
            "tls_first" => match value.as_str() {
                "true" => self.tls.first = true,
                "false" => self.tls.first = false,
                _ => return Err(bad("true or false")),
            },
            "timeout" => match value
                .parse::<f64>()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            {
                Some(timeout) if !timeout.is_zero() => self.call_timeout = timeout,
                _ => return Err(bad("a number of seconds above 0")),
            },
            "sender_id" => self.envelope_mut().sender_id = value,
            "sender_name" => self.envelope_mut().sender_name = value,
            "fileserver" => self.envelope_mut().fileserver_url = value,
            _ => {
                return Err(McpError::config(format!(
                    "an address on NATS has no option `{key}`; known are {}",
                    OPTIONS.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn envelope_mut(&mut self) -> &mut EnvelopeConfig {
        if self.codec == NatsCodec::Plain {
            self.codec = NatsCodec::envelope();
        }
        match &mut self.codec {
            NatsCodec::Envelope(config) => config,
            NatsCodec::Plain => unreachable!("was just set to the envelope"),
        }
    }

    /// The same with another way to find the subject of a method.
    #[must_use]
    pub fn with_subjects(mut self, style: SubjectStyle) -> Self {
        self.style = style;
        self
    }

    /// The same with another codec.
    #[must_use]
    pub fn with_codec(mut self, codec: NatsCodec) -> Self {
        self.codec = codec;
        self
    }

    /// The same in another dialect. `Auto` is bare; modern is MCP as its revision of 2026-07-28 has it.
    #[must_use]
    pub fn with_dialect(mut self, dialect: DialectChoice) -> Self {
        self.dialect = if dialect == DialectChoice::Auto {
            DialectChoice::Bare
        } else {
            dialect
        };
        self
    }

    /// The same with credentials.
    #[must_use]
    pub fn with_auth(mut self, auth: NatsAuth) -> Self {
        self.auth = auth;
        self
    }

    /// The same, refusing a NATS server without TLS.
    #[must_use]
    pub fn with_tls_required(mut self) -> Self {
        self.tls.required = true;
        self
    }

    /// The same, trusting the authorities of a PEM file in place of the system's.
    #[must_use]
    pub fn with_ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.ca_file = Some(path.into());
        self
    }

    /// The same with a certificate of its own, PEM files of certificate and key.
    #[must_use]
    pub fn with_client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.tls.client = Some((certificate.into(), key.into()));
        self
    }

    /// The same with another beginning of its inboxes than `_INBOX`.
    #[must_use]
    pub fn with_inbox_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.inbox_prefix = Some(prefix.into());
        self
    }

    /// The same with another time to connect to one server (5 s).
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The same with another time that a call may be silent, unless the client sets one (180 s).
    #[must_use]
    pub fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// The same with a name that the NATS server shows for the connection (`yiem`).
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same with a fetcher for payloads that an envelope only links to.
    #[must_use]
    pub fn with_fetcher(mut self, fetcher: Arc<dyn PayloadFetcher>) -> Self {
        self.fetcher = Some(fetcher);
        self
    }

    /// The subject as it was given.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The last token of the subject: a name for whoever gave none.
    pub(crate) fn default_name(&self) -> &str {
        self.subject.rsplit('.').next().unwrap_or(&self.subject)
    }

    pub(crate) fn subjects(&self) -> Result<Subjects, McpError> {
        Subjects::new(&self.subject, self.style)
    }

    /// The servers as they may be shown: without credentials.
    pub(crate) fn shown_servers(&self) -> String {
        let shown: Vec<String> = self
            .servers
            .iter()
            .map(|server| without_credentials(server))
            .collect();
        shown.join(", ")
    }
}

impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConfig")
            .field("servers", &self.shown_servers())
            .field("subject", &self.subject)
            .field("style", &self.style)
            .field("codec", &self.codec)
            .field("dialect", &self.dialect)
            .field("auth", &self.auth)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// An address without `user:password@`.
pub(crate) fn without_credentials(server: &str) -> String {
    let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

/// The options of an address.
const OPTIONS: [&str; 17] = [
    "codec",
    "meta",
    "subjects",
    "creds",
    "user_env",
    "password_env",
    "token_env",
    "nkey_env",
    "inbox",
    "ca",
    "cert",
    "key",
    "tls_first",
    "timeout",
    "sender_id",
    "sender_name",
    "fileserver",
];

/// Several servers as one address.
fn joined(servers: &[Value]) -> Result<String, McpError> {
    let mut scheme = "nats";
    let mut hosts = Vec::new();
    for server in servers {
        let text = server
            .as_str()
            .ok_or_else(|| McpError::config("`servers` of `nats` is no list of addresses"))?;
        let host = match text.split_once("://") {
            Some((given, host)) => {
                if given != "nats" {
                    scheme = "tls";
                }
                host
            }
            None => text,
        };
        hosts.push(host.trim_end_matches('/'));
    }
    Ok(format!("{scheme}://{}", hosts.join(",")))
}

fn percent_decoded(text: &str) -> Result<String, McpError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = tail
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        let Some(code) = code else {
            return Err(McpError::config(
                "an address on NATS has a % without two hexadecimal digits after it; write %25 for %",
            ));
        };
        bytes.push(code);
        rest = &tail[2..];
    }
    String::from_utf8(bytes)
        .map_err(|_| McpError::config("an address on NATS is no UTF-8 once its %XX are read"))
}

#[cfg(test)]
mod tests;
