//! The token of a client that says who it is by a signed statement (`private_key_jwt`, RFC 7523).
//!
//! Knows: what stands in the statement, the token request and its answer. Does not know: where the
//! authorization server was found, or where the token is kept.

use super::key::ClientKey;
use super::unauthorized;
use crate::error::McpError;
use reqwest::Url;
use reqwest::redirect::Policy;
use rmcp::transport::auth::{AuthorizationMetadata, StoredCredentials};
use serde_json::{Value, json};
use std::time::Duration;
use yiem_core::{Env, IdKind, SystemEnv};

/// How long a statement holds. Servers are known that take no more than a minute.
const HOLDS: i64 = 60;
/// How long the authorization server may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer that is read, in bytes.
const ANSWER_CAP: usize = 1 << 20;
/// The longest words of the server that an error repeats, in characters.
const WORDS_CAP: usize = 300;

/// Asks for a token as this client.
pub(super) struct ClientAssertion<'a> {
    pub(super) client_id: &'a str,
    pub(super) key: &'a ClientKey,
    /// The MCP server that the token is for.
    pub(super) resource: &'a str,
    pub(super) scopes: &'a [String],
}

impl ClientAssertion<'_> {
    /// A token of the authorization server with this metadata.
    pub(super) async fn token(
        &self,
        metadata: &AuthorizationMetadata,
        env: &dyn Env,
    ) -> Result<StoredCredentials, McpError> {
        let endpoint = endpoint(&metadata.token_endpoint, self.resource)?;
        let statement = self.statement(metadata, env)?;
        let mut form = endpoint.clone();
        form.query_pairs_mut()
            .clear()
            .append_pair("grant_type", "client_credentials")
            .append_pair(
                "client_assertion_type",
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            )
            .append_pair("client_assertion", &statement)
            .append_pair("resource", self.resource);
        if !self.scopes.is_empty() {
            form.query_pairs_mut()
                .append_pair("scope", &self.scopes.join(" "));
        }
        let form = form.query().unwrap_or_default().to_owned();
        let (status, answer) = post(endpoint, form).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if status != 200 {
            let words = |key: &str| {
                let words = answer.get(key).and_then(Value::as_str)?;
                // A server may repeat what it was sent.
                let words = words.replace(&statement, "…");
                Some(words.chars().take(WORDS_CAP).collect::<String>())
            };
            let error = words("error").unwrap_or_else(|| "it does not say why".into());
            let more = words("error_description")
                .map(|more| format!(": {more}"))
                .unwrap_or_default();
            return Err(unauthorized(&format!(
                "the authorization server gave no token for the client `{}` (HTTP status {status}, {error}){more}",
                self.client_id
            )));
        }
        self.credentials(answer, metadata)
    }

    fn statement(
        &self,
        metadata: &AuthorizationMetadata,
        env: &dyn Env,
    ) -> Result<String, McpError> {
        let listed = |key: &str| {
            let values = metadata.additional_fields.get(key)?.as_array()?;
            Some(values.iter().filter_map(Value::as_str).collect::<Vec<_>>())
        };
        if let Some(methods) = listed("token_endpoint_auth_methods_supported")
            && !methods.contains(&"private_key_jwt")
        {
            return Err(unauthorized(&format!(
                "the authorization server takes no client by its key (private_key_jwt); it takes {}",
                methods.join(", ")
            )));
        }
        // Without a name that it was found under, a statement could be meant for anybody.
        let issuer = metadata.issuer.as_deref().ok_or_else(|| {
            unauthorized(
                "the authorization server does not say who it is (no `issuer` in its metadata), \
                 so that nothing can be signed for it",
            )
        })?;
        let taken = listed("token_endpoint_auth_signing_alg_values_supported");
        let signature = self.key.signature(taken.as_deref())?;
        let now = seconds(env);
        let claims = json!({
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": issuer,
            "jti": env.new_id(IdKind::Message),
            "iat": now,
            "exp": now + HOLDS,
        });
        self.key.token(signature, &claims)
    }

    fn credentials(
        &self,
        mut answer: Value,
        metadata: &AuthorizationMetadata,
    ) -> Result<StoredCredentials, McpError> {
        let scope = answer.get("scope").and_then(Value::as_str);
        let granted = scope.map_or_else(
            || self.scopes.to_vec(),
            |scope| scope.split_whitespace().map(str::to_owned).collect(),
        );
        if let Some(fields) = answer.as_object_mut() {
            // A new statement is worth as much, and needs no other way of saying who we are.
            fields.remove("refresh_token");
        }
        // The reason could show the token.
        let token = serde_json::from_value(answer).map_err(|_| {
            unauthorized(
                "the authorization server answered with status 200 and no token: \
                 `access_token` and `token_type` are wanted",
            )
        })?;
        // Whether it is still good is asked of the system's clock, by rmcp.
        let now = u64::try_from(seconds(&*SystemEnv::shared())).ok();
        let stored = StoredCredentials::new(self.client_id.to_owned(), Some(token), granted, now);
        Ok(stored.with_issuer(metadata.issuer.clone()))
    }
}

/// Seconds since 1970.
fn seconds(env: &dyn Env) -> i64 {
    env.now().as_millis().div_euclid(1000)
}

/// Where tokens are had: over TLS, unless it and the MCP server are on this machine.
fn endpoint(address: &str, resource: &str) -> Result<Url, McpError> {
    let url = Url::parse(address)
        .map_err(|_| unauthorized("the authorization server's token endpoint is no address"))?;
    let here = |url: &Url| match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    };
    let both_here = || here(&url) && Url::parse(resource).is_ok_and(|resource| here(&resource));
    match url.scheme() {
        "https" => Ok(url),
        "http" if both_here() => Ok(url),
        _ => Err(unauthorized(
            "the authorization server's token endpoint is not https, so that nothing is sent there",
        )),
    }
}

async fn post(url: Url, form: String) -> Result<(u16, Vec<u8>), McpError> {
    let failed = |error: reqwest::Error| {
        unauthorized("the authorization server was not reached for a token")
            .with_source(error.without_url())
    };
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(yiem_tls::client_config())
        // A statement is for one address.
        .redirect(Policy::none())
        .timeout(TIMEOUT)
        .build()
        .map_err(failed)?;
    let request = client
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json")
        .body(form);
    let mut response = request.send().await.map_err(failed)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if body.len() + piece.len() > ANSWER_CAP {
            return Err(unauthorized(&format!(
                "the authorization server's answer is larger than {ANSWER_CAP} bytes"
            )));
        }
        body.extend_from_slice(&piece);
    }
    Ok((status, body))
}
