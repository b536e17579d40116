//! One POST: its headers, and what its status says.

use super::HttpShared;
use super::answer::{Reading, read_answer, read_capped};
use super::token::Challenge;
use crate::dialect::{Dialect, ProtocolVersion};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{Answer, AnswerOutcome, Incoming, RequestId, excerpt, read};
use crate::protocol::{encode_header_value, method};
use crate::transport::Exchange;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::oneshot;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// How much of the body of a refusal is read.
const REFUSAL_CAP: usize = 64 << 10;
/// How many times one request may be refused for want of a token.
const CHALLENGES: u32 = 4;
/// How long the end of a session may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// A request that is waited for; dropped before its answer, it is given up.
struct Pending<'a> {
    shared: &'a HttpShared,
    id: &'a RequestId,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.shared.state().waiters.give_up(self.id);
    }
}

impl HttpShared {
    /// Sends a request and waits for its answer: on its own way back or, from a legacy server, on another.
    pub(super) async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        if !exchange.dialect.is_legacy() {
            return self.round_trip(&exchange).await;
        }
        let (sender, elsewhere) = oneshot::channel();
        self.state().waiters.wait(exchange.id.clone(), sender);
        let _pending = Pending {
            shared: self,
            id: &exchange.id,
        };
        tokio::select! {
            biased;
            answer = self.round_trip(&exchange) => answer,
            Ok(answer) = elsewhere => Ok(answer),
        }
    }

    async fn round_trip(&self, exchange: &Exchange) -> Result<Answer, McpError> {
        let opens = &*exchange.method == method::INITIALIZE;
        let mut headers = if opens {
            HeaderMap::new()
        } else {
            self.headers_for(exchange.dialect)
        };
        if exchange.dialect.is_modern() {
            add_modern(&mut headers, exchange)?;
        }
        for (name, value) in &*exchange.trace {
            insert(&mut headers, name, value)?;
        }
        let had_session = headers.contains_key(SESSION);
        let response = self.post(exchange.body(), headers).await?;
        let status = response.status();
        if opens && status.is_success() {
            self.state().session = response.headers().get(SESSION).cloned();
        }
        if !status.is_success() {
            return self.refusal(response, exchange, had_session).await;
        }
        let mut reading = Reading::default();
        if let Some(answer) =
            read_answer(response, exchange, self.max_message, &mut reading).await?
        {
            return Ok(answer);
        }
        if exchange.dialect.is_legacy() && reading.last_id.is_some() {
            return self.read_on(exchange, reading).await;
        }
        Err(reading.ended_without_answer(status))
    }

    /// Sends what has no answer.
    pub(super) async fn tell(
        &self,
        body: Vec<u8>,
        dialect: Dialect,
        name: &str,
    ) -> Result<(), McpError> {
        let mut headers = self.headers_for(dialect);
        if dialect.is_modern() && !name.is_empty() {
            insert(&mut headers, METHOD.as_str(), name)?;
        }
        let response = self.post(body, headers).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let body = excerpt(&read_capped(response, REFUSAL_CAP).await.unwrap_or_default());
        tracing::warn!(
            status = status.as_u16(),
            method = name,
            "a notification was refused"
        );
        if name == method::INITIALIZED {
            // Servers that refuse it work all the same, or say so at the first request.
            return Ok(());
        }
        Err(McpError::new(McpErrorKind::Http {
            status: status.as_u16(),
            body,
        }))
    }

    /// Says goodbye to a session; whether the server listens is its own affair.
    pub(super) async fn end_session(&self) {
        let (Some(session), dialect) = (self.session(), self.state().dialect) else {
            return;
        };
        let mut headers = dialect.map_or_else(HeaderMap::new, |dialect| self.headers_for(dialect));
        headers.insert(SESSION, session);
        let goodbye = async {
            let token = self.next_token().await.ok().flatten();
            if let Ok(request) =
                self.request(self.url.clone(), Method::DELETE, headers, token.as_deref())
            {
                let _ = request.send().await;
            }
        };
        tokio::select! {
            () = goodbye => {}
            () = self.env.sleep(GOODBYE) => {}
        }
    }

    /// The headers that every request after the opening has.
    pub(super) fn headers_for(&self, dialect: Dialect) -> HeaderMap {
        let mut headers = HeaderMap::new();
        match dialect {
            Dialect::Bare => {}
            Dialect::Legacy(version) => {
                if version >= ProtocolVersion::V2025_06_18 {
                    headers.insert(VERSION, HeaderValue::from_static(version.as_str()));
                }
                if let Some(session) = self.session() {
                    headers.insert(SESSION, session);
                }
            }
            Dialect::Modern(version) => {
                headers.insert(VERSION, HeaderValue::from_static(version.as_str()));
            }
        }
        headers
    }

    /// The token for the next request.
    pub(super) async fn next_token(&self) -> Result<Option<String>, McpError> {
        match &self.token {
            Some(source) => source.token().await,
            None => Ok(None),
        }
    }

    /// A request with our own headers and the token.
    pub(super) fn request(
        &self,
        url: reqwest::Url,
        verb: Method,
        headers: HeaderMap,
        token: Option<&str>,
    ) -> Result<reqwest::RequestBuilder, McpError> {
        let mut request = self
            .client
            .request(verb, url)
            .headers(self.headers.clone())
            .headers(headers);
        if let Some(token) = token {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| McpError::config("the token cannot be sent in a header"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Posts, with another token where one was refused.
    async fn post(&self, body: Vec<u8>, headers: HeaderMap) -> Result<reqwest::Response, McpError> {
        self.post_to(self.url.clone(), body, headers).await
    }

    pub(super) async fn post_to(
        &self,
        url: reqwest::Url,
        body: Vec<u8>,
        headers: HeaderMap,
    ) -> Result<reqwest::Response, McpError> {
        let body = bytes::Bytes::from(body);
        for attempt in 0..CHALLENGES {
            let token = self.next_token().await?;
            let response = self
                .request(url.clone(), Method::POST, headers.clone(), token.as_deref())?
                .header(ACCEPT, "application/json, text/event-stream")
                .header(CONTENT_TYPE, "application/json")
                .body(body.clone())
                .send()
                .await
                .map_err(|error| send_error(&self.url, error))?;
            let status = response.status();
            if status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN {
                return Ok(response);
            }
            if !self.challenged(&response, attempt, token).await? {
                return Err(unauthorized(response, self.token.is_some()).await);
            }
        }
        Err(McpError::new(McpErrorKind::Unauthorized(format!(
            "the server refused the request {CHALLENGES} times, each with another token"
        ))))
    }

    pub(super) async fn challenged(
        &self,
        response: &reqwest::Response,
        attempt: u32,
        token: Option<String>,
    ) -> Result<bool, McpError> {
        let Some(source) = &self.token else {
            return Ok(false);
        };
        let header = response
            .headers()
            .get(WWW_AUTHENTICATE)
            .and_then(|value| value.to_str().ok());
        let challenge = Challenge::new(
            response.status().as_u16(),
            header.map(str::to_owned),
            attempt,
        );
        source.challenged(challenge.of_token(token)).await
    }

    /// What a status of failure says about a request.
    async fn refusal(
        &self,
        response: reqwest::Response,
        exchange: &Exchange,
        had_session: bool,
    ) -> Result<Answer, McpError> {
        let status = response.status();
        let body = read_capped(response, REFUSAL_CAP).await.unwrap_or_default();
        let mut found = None;
        for message in read(&body) {
            if let Incoming::Answer(
                answer @ Answer {
                    outcome: AnswerOutcome::Error(_),
                    ..
                },
            ) = message
            {
                found = Some(answer);
            }
        }
        let speaks_of_session = || {
            let text = String::from_utf8_lossy(&body).to_ascii_lowercase();
            text.contains("session")
        };
        let forgotten = status == StatusCode::NOT_FOUND
            || (status == StatusCode::BAD_REQUEST && speaks_of_session());
        if had_session && forgotten {
            self.state().session = None;
            return Err(McpError::not_sent("the server has forgotten our session"));
        }
        // A refusal of the opening is told by its status: the way to the older transport begins there.
        let opens = &*exchange.method == method::INITIALIZE;
        match found {
            Some(answer) if !(opens && matches!(status.as_u16(), 404 | 405)) => Ok(answer),
            _ => Err(McpError::new(McpErrorKind::Http {
                status: status.as_u16(),
                body: excerpt(&body),
            })),
        }
    }
}

/// What a modern request repeats in its headers.
fn add_modern(headers: &mut HeaderMap, exchange: &Exchange) -> Result<(), McpError> {
    insert(headers, METHOD.as_str(), &exchange.method)?;
    let name = match &*exchange.method {
        method::TOOLS_CALL | method::PROMPTS_GET => exchange.params.get("name"),
        method::RESOURCES_READ => exchange.params.get("uri"),
        _ => None,
    };
    if let Some(name) = name.and_then(Value::as_str) {
        insert(headers, NAME.as_str(), &encode_header_value(name))?;
    }
    for (name, value) in &exchange.param_headers {
        insert(headers, name, value)?;
    }
    Ok(())
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), McpError> {
    let refused = || McpError::config(format!("the header `{name}` cannot be sent"));
    let name = HeaderName::try_from(name).map_err(|_| refused())?;
    headers.insert(name, HeaderValue::try_from(value).map_err(|_| refused())?);
    Ok(())
}

async fn unauthorized(response: reqwest::Response, had_token: bool) -> McpError {
    let status = response.status().as_u16();
    let body = excerpt(&read_capped(response, REFUSAL_CAP).await.unwrap_or_default());
    let what = match (status, had_token) {
        (401, false) => {
            "the server wants a token (HTTP 401): give one with `.bearer(…)`, a header, or OAuth"
        }
        (401, true) => "the server does not accept the token (HTTP 401)",
        _ => "the server does not allow this (HTTP 403)",
    };
    McpError::new(McpErrorKind::Unauthorized(what.to_owned())).with_note(body)
}

/// A request that has no answer at all: what happened, and whether it may have run.
pub(super) fn send_error(url: &reqwest::Url, error: reqwest::Error) -> McpError {
    let host = url.host_str().unwrap_or_default();
    let place = url
        .port_or_known_default()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let cause = innermost(&error);
    let error = error.without_url();
    if error.is_connect() {
        return McpError::unreachable(format!("cannot connect to {place}"))
            .with_note(cause)
            .with_source(error);
    }
    if error.is_redirect() {
        return McpError::unreachable(format!("{place} redirects to another place: {cause}"))
            .with_source(error);
    }
    if error.is_builder() {
        return McpError::config("the request cannot be built")
            .with_note(cause)
            .with_source(error);
    }
    McpError::lost(format!("the connection to {place} broke off"))
        .with_note(cause)
        .with_source(error)
}

fn innermost(error: &reqwest::Error) -> String {
    let mut at: &dyn std::error::Error = error;
    while let Some(cause) = at.source() {
        at = cause;
    }
    at.to_string()
}
