//! OAuth for servers behind HTTP addresses: tokens are had when a server asks for them, and renewed.
//!
//! Knows: when a token is missing, refused or too weak, who asks the person, what is remembered.
//! Does not know: how a request is sent. Discovery, registration, PKCE and the checks of issuers are
//! rmcp's `client,auth`; nothing of it is visible here.

mod assertion;
mod consent;
mod key;
mod store;

pub use consent::{Consent, LoopbackConsent};
pub use key::ClientKey;
pub use store::{FileTokenStore, MemoryTokenStore, TokenStore};

use crate::error::{McpError, McpErrorKind};
use crate::transport::{Challenge, TokenSource};
use assertion::ClientAssertion;
use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata,
    AuthorizationRequest, ClientCredentialsConfig, CredentialStore, OAuthClientConfig, OAuthState,
    StoredCredentials, WWWAuthenticateParams,
};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use yiem_core::{Env, SystemEnv};

/// How many times one request may be answered with a wish for more rights.
const STEP_UPS: u32 = 3;

/// Who we are to an authorization server, and who asks the person.
#[derive(Clone)]
pub struct OAuthConfig {
    client_name: String,
    client_id: Option<String>,
    client_secret: Option<String>,
    client_metadata_url: Option<String>,
    scopes: Vec<String>,
    grant: Grant,
    store: Option<Arc<dyn TokenStore>>,
    env: Arc<dyn Env>,
}

#[derive(Clone)]
enum Grant {
    Code(Arc<dyn Consent>),
    ClientCredentials,
    ClientKey(ClientKey),
}

impl Grant {
    fn key(&self) -> Option<&ClientKey> {
        match self {
            Self::ClientKey(key) => Some(key),
            Self::Code(_) | Self::ClientCredentials => None,
        }
    }
}

impl OAuthConfig {
    /// A client whose person is asked in a browser. Without more, it registers itself at the server.
    pub fn new(consent: Arc<dyn Consent>) -> Self {
        Self::by(Grant::Code(consent))
    }

    fn by(grant: Grant) -> Self {
        Self {
            client_name: "Yiem".into(),
            client_id: None,
            client_secret: None,
            client_metadata_url: None,
            scopes: Vec::new(),
            grant,
            store: None,
            env: SystemEnv::shared(),
        }
    }

    /// A client that acts for itself, by its own id and secret; no person is asked.
    pub fn client_credentials(
        client_id: impl Into<String>,
        client_secret: impl Into<String>,
    ) -> Self {
        Self::by(Grant::ClientCredentials)
            .client_id(client_id)
            .client_secret(client_secret)
    }

    /// A client that acts for itself, by its own id and private key (`private_key_jwt`); no person is asked, and
    /// no secret is sent. The authorization server knows the public key.
    pub fn client_credentials_with_key(client_id: impl Into<String>, key: ClientKey) -> Self {
        Self::by(Grant::ClientKey(key)).client_id(client_id)
    }

    /// The name that a person is shown. Default `Yiem`.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// The id of a client that is registered already.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// The secret that goes with the id.
    #[must_use]
    pub fn client_secret(mut self, secret: impl Into<String>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// The address of a document about this client, which servers that can read it take as its id.
    #[must_use]
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// Where tokens are kept. Default: in memory, so that a person is asked again at the next start.
    #[must_use]
    pub fn token_store(mut self, store: Arc<dyn TokenStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// The scopes to ask for. Default: what the server says.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// The clock and the ids of what a key signs. Default: the system's.
    #[must_use]
    pub fn env(mut self, env: Arc<dyn Env>) -> Self {
        self.env = env;
        self
    }
}

impl fmt::Debug for OAuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthConfig")
            .field("client_name", &self.client_name)
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret.is_some())
            .field("client_key", &self.grant.key())
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Tokens for one server, had by OAuth when the server asks for them.
///
/// Give it to `McpServer::token_source`. Tokens are kept where the configuration says, renewed before they
/// expire, and had anew when the server refuses them or names another authorization server.
pub struct OAuthTokens {
    url: String,
    config: OAuthConfig,
    manager: Mutex<Option<Arc<AuthorizationManager>>>,
    /// One asks for a token at a time.
    asking: Semaphore,
    /// Whether the store was looked into.
    looked: AtomicBool,
}

impl OAuthTokens {
    /// Tokens for the server at this address.
    pub fn new(url: impl Into<String>, config: OAuthConfig) -> Self {
        yiem_tls::install_default_provider();
        Self {
            url: url.into(),
            config,
            manager: Mutex::new(None),
            asking: Semaphore::new(1),
            looked: AtomicBool::new(false),
        }
    }

    fn manager(&self) -> Option<Arc<AuthorizationManager>> {
        self.manager
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn keep(&self, manager: AuthorizationManager) {
        *self.manager.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(manager));
    }

    /// The way to the store, as rmcp wants it.
    fn kept(&self) -> Option<Kept> {
        let store = Arc::clone(self.config.store.as_ref()?);
        Some(Kept {
            store,
            server: self.url.clone(),
        })
    }

    /// Takes up what was kept from before, once. What cannot be used is no failure: the person is asked.
    async fn look(&self) {
        let Some(kept) = self.kept() else { return };
        let _turn = self
            .asking
            .acquire()
            .await
            .expect("the semaphore is never closed");
        if self.looked.load(Ordering::Acquire) {
            return;
        }
        match self.restored(kept).await {
            Ok(Some(manager)) => self.keep(manager),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "kept tokens cannot be used"),
        }
        self.looked.store(true, Ordering::Release);
    }

    async fn restored(&self, kept: Kept) -> Result<Option<AuthorizationManager>, AuthError> {
        // Without anything kept no network is touched.
        if kept.load().await?.is_none() {
            return Ok(None);
        }
        let mut manager = AuthorizationManager::new(self.url.as_str()).await?;
        manager.set_credential_store(kept);
        if !manager.initialize_from_store().await? {
            return Ok(None);
        }
        if let (Some(id), Some(secret), Grant::Code(consent)) = (
            &self.config.client_id,
            &self.config.client_secret,
            &self.config.grant,
        ) {
            // To renew a token, a client with a secret has to say it.
            let client = OAuthClientConfig::new(id.as_str(), consent.redirect_uri());
            manager.configure_client(client.with_client_secret(secret.as_str()))?;
        }
        Ok(Some(manager))
    }

    /// From nothing to a token: who gives tokens, who are we to them, what does the person say.
    async fn authorize(&self, www_authenticate: Option<&str>) -> Result<(), McpError> {
        let manager = match &self.config.grant {
            Grant::Code(consent) => self.by_consent(consent.as_ref(), www_authenticate).await?,
            Grant::ClientCredentials => self.by_secret(www_authenticate).await?,
            Grant::ClientKey(key) => self.by_key(key, www_authenticate).await?,
        };
        self.keep(manager);
        Ok(())
    }

    /// A person agrees.
    async fn by_consent(
        &self,
        consent: &dyn Consent,
        www_authenticate: Option<&str>,
    ) -> Result<AuthorizationManager, McpError> {
        let mut state = OAuthState::new(self.url.as_str(), None)
            .await
            .map_err(oauth_error)?;
        if let (OAuthState::Unauthorized(manager), Some(kept)) = (&mut state, self.kept()) {
            manager.set_credential_store(kept);
        }
        let mut request = AuthorizationRequest::new(consent.redirect_uri())
            .with_client_name(self.config.client_name.as_str())
            .with_initial_scope_selection();
        if let Some(id) = &self.config.client_id {
            request = request.with_preregistered_client(id.as_str());
        }
        if let Some(secret) = &self.config.client_secret {
            request = request.with_client_secret(secret.as_str());
        }
        if let Some(url) = &self.config.client_metadata_url {
            request = request.with_client_metadata_url(url.as_str());
        }
        if !self.config.scopes.is_empty() {
            request = request.with_scopes(self.config.scopes.clone());
        }
        if let Some(challenge) = www_authenticate {
            request = request.with_challenge(challenge);
        }
        state
            .start_authorization(request)
            .await
            .map_err(oauth_error)?;
        let url = state.get_authorization_url().await.map_err(oauth_error)?;
        let answer = consent.ask(&url).await?;
        refused(&answer)?;
        state
            .handle_callback_url(&answer)
            .await
            .map_err(oauth_error)?;
        state
            .into_authorization_manager()
            .ok_or_else(|| unauthorized("the authorization did not end"))
    }

    /// The client says its secret.
    async fn by_secret(
        &self,
        www_authenticate: Option<&str>,
    ) -> Result<AuthorizationManager, McpError> {
        let (mut manager, metadata, scopes) = self.found(www_authenticate).await?;
        if let Some(kept) = self.kept() {
            manager.set_credential_store(kept);
        }
        let credentials = ClientCredentialsConfig::ClientSecret {
            client_id: self.config.client_id.clone().unwrap_or_default(),
            client_secret: self.config.client_secret.clone().unwrap_or_default(),
            scopes,
            resource: Some(self.url.clone()),
        };
        manager.set_metadata(metadata);
        manager
            .validate_client_credentials_metadata(&credentials)
            .and_then(|()| manager.configure_client_credentials(&credentials))
            .map_err(oauth_error)?;
        manager
            .exchange_client_credentials(&credentials)
            .await
            .map_err(oauth_error)?;
        Ok(manager)
    }

    /// The client signs who it is.
    async fn by_key(
        &self,
        key: &ClientKey,
        www_authenticate: Option<&str>,
    ) -> Result<AuthorizationManager, McpError> {
        let (mut manager, metadata, scopes) = self.found(www_authenticate).await?;
        let client_id = self.config.client_id.as_deref().unwrap_or_default();
        let assertion = ClientAssertion {
            client_id,
            key,
            resource: &self.url,
            scopes: &scopes,
        };
        let token = assertion.token(&metadata, self.config.env.as_ref()).await?;
        let kept = self.kept().unwrap_or_else(|| Kept {
            store: Arc::new(MemoryTokenStore::default()),
            server: self.url.clone(),
        });
        kept.save(token).await.map_err(oauth_error)?;
        manager.set_credential_store(kept);
        manager.set_metadata(metadata);
        manager
            .configure_client_id(client_id)
            .map_err(oauth_error)?;
        Ok(manager)
    }

    /// The authorization server, and the scopes that a client asks for which acts for itself: those that were
    /// configured, else what the server says.
    async fn found(
        &self,
        www_authenticate: Option<&str>,
    ) -> Result<(AuthorizationManager, AuthorizationMetadata, Vec<String>), McpError> {
        let manager = AuthorizationManager::new(self.url.as_str())
            .await
            .map_err(oauth_error)?;
        let found = manager
            .resolve_metadata_from_challenge(www_authenticate)
            .await
            .map_err(oauth_error)?;
        let mut scopes = self.config.scopes.clone();
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
            // For a client that renews its token by itself there is nothing to be offline for.
            scopes.retain(|scope| scope != "offline_access");
        }
        Ok((manager, found.metadata, scopes))
    }

    /// More rights under the client that we are already: those we had and those the server names.
    async fn step_up(&self, manager: &AuthorizationManager, scope: &str) -> Result<(), McpError> {
        let Grant::Code(consent) = &self.config.grant else {
            return Err(unauthorized(
                "the server wants rights that this client does not have",
            ));
        };
        let url = manager
            .request_scope_upgrade(scope)
            .await
            .map_err(oauth_error)?;
        let answer = consent.ask(&url).await?;
        refused(&answer)?;
        let callback = AuthorizationCallback::from_redirect_url(&answer).map_err(oauth_error)?;
        manager
            .exchange_code_for_token_with_issuer(
                &callback.code,
                &callback.csrf_token,
                callback.issuer.as_deref(),
            )
            .await
            .map_err(oauth_error)?;
        Ok(())
    }
}

impl fmt::Debug for OAuthTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthTokens")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TokenSource for OAuthTokens {
    async fn token(&self) -> Result<Option<String>, McpError> {
        if !self.looked.load(Ordering::Acquire) {
            self.look().await;
        }
        let Some(manager) = self.manager() else {
            return Ok(None);
        };
        match manager.get_access_token().await {
            Ok(token) => Ok(Some(token)),
            Err(AuthError::AuthorizationRequired) => Ok(None),
            Err(error) => Err(oauth_error(error)),
        }
    }

    async fn challenged(&self, challenge: Challenge) -> Result<bool, McpError> {
        let _turn = self
            .asking
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let manager = self.manager();
        if challenge.attempt == 0 && manager.is_some() {
            let now = self.token().await?;
            if now.is_some() && now != challenge.token {
                // Another request had a new token in the meantime.
                return Ok(true);
            }
        }
        let header = challenge.www_authenticate.as_deref();
        if challenge.status == 401 {
            if challenge.attempt > 1 {
                return Ok(false);
            }
            self.authorize(header).await?;
            return Ok(true);
        }
        let url = reqwest::Url::parse(&self.url)
            .map_err(|_| unauthorized("the server's address is none"))?;
        let wanted = header
            .map(|header| WWWAuthenticateParams::parse(header, &url))
            .unwrap_or_default();
        if !wanted.is_insufficient_scope() || challenge.attempt >= STEP_UPS {
            return Ok(false);
        }
        match manager {
            Some(manager) => {
                self.step_up(&manager, wanted.scope.as_deref().unwrap_or_default())
                    .await?
            }
            None => self.authorize(header).await?,
        }
        Ok(true)
    }
}

/// A store as rmcp wants it: its credentials are our secret text.
struct Kept {
    store: Arc<dyn TokenStore>,
    server: String,
}

fn store_error(error: impl fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let Some(text) = self.store.load(&self.server).await.map_err(store_error)? else {
            return Ok(None);
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|_| store_error("what was kept is of another version, or broken"))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_string(&credentials).map_err(store_error)?;
        self.store
            .save(&self.server, &text)
            .await
            .map_err(store_error)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.clear(&self.server).await.map_err(store_error)
    }
}

/// The redirect of a person who said no.
fn refused(answer: &str) -> Result<(), McpError> {
    let Ok(url) = reqwest::Url::parse(answer) else {
        return Ok(());
    };
    let value = |wanted: &str| {
        url.query_pairs()
            .find(|(key, _)| key == wanted)
            .map(|(_, value)| value.into_owned())
    };
    match value("error") {
        None => Ok(()),
        Some(error) => {
            let why = value("error_description")
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            Err(unauthorized(&format!(
                "the authorization was refused ({error}){why}"
            )))
        }
    }
}

fn unauthorized(what: &str) -> McpError {
    McpError::new(McpErrorKind::Unauthorized(what.to_owned()))
}

fn oauth_error(error: AuthError) -> McpError {
    unauthorized(&format!("OAuth: {error}")).with_source(error)
}
