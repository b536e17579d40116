//! Who gives the token for a request.

use crate::error::McpError;
use async_trait::async_trait;
use std::fmt;

/// Gives tokens for the requests to one server.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// The token for the next request; `None` sends none. Called for every request: keep it cheap.
    ///
    /// # Errors
    /// There is no way to a token; the request is not sent.
    async fn token(&self) -> Result<Option<String>, McpError>;

    /// The server refused a request. True to send it again with what `token` gives then.
    ///
    /// # Errors
    /// A token cannot be had; the request fails with this error.
    async fn challenged(&self, challenge: Challenge) -> Result<bool, McpError> {
        let _ = challenge;
        Ok(false)
    }
}

/// A server's refusal of a request for want of a token, or of rights.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// 401 or 403.
    pub status: u16,
    /// The header `WWW-Authenticate`.
    pub www_authenticate: Option<String>,
    /// How many times this request was refused before.
    pub attempt: u32,
    /// The token that was refused; `None` where none was sent.
    pub token: Option<String>,
}

impl fmt::Debug for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Challenge")
            .field("status", &self.status)
            .field("www_authenticate", &self.www_authenticate)
            .field("attempt", &self.attempt)
            .field("token", &self.token.is_some())
            .finish()
    }
}

impl Challenge {
    /// A refusal.
    #[must_use]
    pub fn new(status: u16, www_authenticate: Option<String>, attempt: u32) -> Self {
        Self {
            status,
            www_authenticate,
            attempt,
            token: None,
        }
    }

    /// The same with the token that was refused.
    #[must_use]
    pub fn of_token(mut self, token: Option<String>) -> Self {
        self.token = token;
        self
    }
}

/// A token that never changes.
pub(super) struct Bearer(String);

impl Bearer {
    pub(super) fn new(token: String) -> Self {
        Self(token)
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}

#[async_trait]
impl TokenSource for Bearer {
    async fn token(&self) -> Result<Option<String>, McpError> {
        Ok(Some(self.0.clone()))
    }
}
