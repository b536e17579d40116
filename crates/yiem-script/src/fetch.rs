//! `host.fetch`: HTTP to the hosts of a list, and to nobody else (T-7).
//!
//! Knows: which hosts, which addresses, how redirects are followed. Does not know: scripts.
//!
//! A host is let through by its name, and then by the addresses that it has: what the name
//! resolves to is looked at in the connection's own resolver, so that the address that was
//! checked is the one that is connected to.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use futures_util::StreamExt;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use serde_json::{Map, Value, json};
use yiem_core::{BoxFuture, JsonObject};

pub(crate) mod address;

/// Hosts that scripts may reach by `host.fetch`.
///
/// ```
/// use yiem_script::FetchGrant;
///
/// let grant = FetchGrant::hosts(["api.example.com", "*.example.org", "files.example.net:8443"])?;
/// assert!(FetchGrant::hosts(["*"]).is_err());
/// # Ok::<(), yiem_script::FetchGrantError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchGrant {
    hosts: Vec<HostPattern>,
    http: bool,
    private: bool,
    max_bytes: usize,
    /// Certificates in DER.
    roots: Vec<Vec<u8>>,
}

/// A host that cannot stand in a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{pattern:?} is no host to allow: write a name such as api.example.com, *.example.com or example.com:8443"
)]
#[non_exhaustive]
pub struct FetchGrantError {
    /// What was given.
    pub pattern: String,
}

/// Certificates of authorities that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the authorities for host.fetch cannot be trusted: {0}; give their certificates in PEM")]
pub struct CertificateError(String);

#[derive(Clone, Debug, PartialEq, Eq)]
struct HostPattern {
    /// Whether the names under it are meant, and not itself.
    below: bool,
    host: String,
    port: Option<u16>,
}

impl HostPattern {
    fn parse(pattern: &str) -> Result<Self, FetchGrantError> {
        let refused = || FetchGrantError {
            pattern: pattern.to_owned(),
        };
        let (below, rest) = match pattern.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        // The URL parser writes hosts as it will write those that are asked for.
        let url = Url::parse(&format!("https://{rest}/")).map_err(|_| refused())?;
        let plain = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty();
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_name = url.domain().is_some();
        if !plain
            || host.is_empty()
            || rest.contains(['/', '@', '*'])
            || (below && !(is_name && host.contains('.')))
        {
            return Err(refused());
        }
        let has_port = rest.rsplit_once(':').is_some_and(|(before, port)| {
            !port.is_empty()
                && port.bytes().all(|b| b.is_ascii_digit())
                && (!before.contains(':') || before.ends_with(']'))
        });
        Ok(Self {
            below,
            host,
            port: has_port.then(|| url.port_or_known_default()).flatten(),
        })
    }

    fn admits(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else {
            return false;
        };
        let named = if self.below {
            host.strip_suffix(self.host.as_str())
                .is_some_and(|sub| sub.len() > 1 && sub.ends_with('.'))
        } else {
            host == self.host
        };
        // Without a port only the scheme's own will do.
        named
            && match self.port {
                Some(port) => url.port_or_known_default() == Some(port),
                None => url.port().is_none(),
            }
    }
}

impl FetchGrant {
    /// These hosts, over HTTPS, where they have public addresses. `*.example.com` means the
    /// names under it; without a port, the usual one is meant.
    ///
    /// # Errors
    /// One of them is no host, or would mean all hosts.
    pub fn hosts<H: AsRef<str>>(
        hosts: impl IntoIterator<Item = H>,
    ) -> Result<Self, FetchGrantError> {
        let hosts: Result<Vec<_>, _> = hosts
            .into_iter()
            .map(|host| HostPattern::parse(host.as_ref()))
            .collect();
        Ok(Self {
            hosts: hosts?,
            http: false,
            private: false,
            max_bytes: 1 << 20,
            roots: Vec::new(),
        })
    }

    /// The same, over plain HTTP too.
    #[must_use]
    pub fn allow_http(mut self) -> Self {
        self.http = true;
        self
    }

    /// The same, where the hosts have private addresses too: the machine itself, the local
    /// network, the metadata service of a cloud. Only for hosts that you run yourself.
    #[must_use]
    pub fn allow_private_addresses(mut self) -> Self {
        self.private = true;
        self
    }

    /// The same, trusting these certificate authorities besides the machine's: for hosts of a
    /// company's own. One or more certificates in PEM, as a CA file has them.
    ///
    /// # Errors
    /// There is no certificate in the text, or one that cannot be read.
    pub fn trust_authorities(mut self, pem: impl AsRef<[u8]>) -> Result<Self, CertificateError> {
        let roots = yiem_tls::certificates_of(pem.as_ref()).map_err(CertificateError)?;
        self.roots.extend(roots);
        Ok(self)
    }

    /// The same with another limit on the body of an answer; 1 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Why an address may not be asked for, if it may not.
    fn refuse(&self, url: &Url) -> Option<String> {
        let host = url.host_str().unwrap_or_default();
        match url.scheme() {
            "https" => {}
            "http" if self.http => {}
            scheme => return Some(format!("{scheme} addresses may not be fetched, use https")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Some(
                "an address with a user name may not be fetched; use the header Authorization"
                    .to_owned(),
            );
        }
        if !self.hosts.iter().any(|pattern| pattern.admits(url)) {
            let port = url
                .port()
                .map(|port| format!(":{port}"))
                .unwrap_or_default();
            return Some(format!(
                "{host}{port} may not be fetched: it is not on the list of hosts"
            ));
        }
        if !self.private && address::literal(host).is_some_and(|ip| !address::is_public(ip)) {
            return Some(format!(
                "{host} may not be fetched: it is a private address"
            ));
        }
        None
    }
}

/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Headers that belong to the connection and not to the script.
const KEPT_HEADERS: &[&str] = &[
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "expect",
];

/// Fetches for scripts, with one pool of connections.
pub(crate) struct Fetcher {
    grant: FetchGrant,
    resolver: Resolver,
    client: OnceLock<Result<Client, String>>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

impl Fetcher {
    pub(crate) fn new(grant: FetchGrant) -> Self {
        let resolver = Resolver {
            admits: if grant.private {
                |_| true
            } else {
                address::is_public
            },
            lookup: Arc::new(|name| {
                Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
            }),
        };
        Self::with(grant, resolver)
    }

    fn with(grant: FetchGrant, resolver: Resolver) -> Self {
        Self {
            grant,
            resolver,
            client: OnceLock::new(),
        }
    }

    fn client(&self) -> Result<&Client, String> {
        let made = self.client.get_or_init(|| {
            let builder = Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                // A proxy would resolve names by itself.
                .no_proxy()
                .dns_resolver(Arc::new(self.resolver.clone()));
            let tls = if self.grant.roots.is_empty() {
                yiem_tls::client_config()
            } else {
                yiem_tls::client_config_with(self.grant.roots.iter().cloned())?
            };
            builder
                .tls_backend_preconfigured(tls)
                .build()
                .map_err(|e| told(&e))
        });
        made.as_ref().map_err(Clone::clone)
    }

    /// Asks, following redirects within the list. Gives `status`, `url`, `headers`, `body`.
    pub(crate) async fn fetch(&self, mut request: JsonObject) -> Result<Value, String> {
        let url = request
            .get("url")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut url = Url::parse(url).map_err(|e| format!("{url:?} is no address: {e}"))?;
        let mut method = method_of(request.get("method"))?;
        let mut headers = headers_of(request.get("headers"))?;
        let mut body = body_of(request.remove("body"), &mut headers)?;
        for _ in 0..=MAX_REDIRECTS {
            if let Some(refused) = self.grant.refuse(&url) {
                return Err(refused);
            }
            let mut asked = self
                .client()?
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some(body) = &body {
                asked = asked.body(body.clone());
            }
            let response = asked.send().await.map_err(|e| told(&e))?;
            let Some(next) = redirected(&response)? else {
                return self.shown(response).await;
            };
            if next.origin() != url.origin() {
                headers.remove("authorization");
                headers.remove("cookie");
            }
            let keeps = matches!(response.status().as_u16(), 307 | 308);
            if !keeps && method != Method::HEAD {
                method = Method::GET;
                body = None;
                headers.remove("content-type");
            }
            url = next;
        }
        Err(format!("there were more than {MAX_REDIRECTS} redirects"))
    }

    async fn shown(&self, response: Response) -> Result<Value, String> {
        let status = response.status().as_u16();
        let url = response.url().to_string();
        let mut headers = Map::new();
        for (name, value) in response.headers() {
            let value = String::from_utf8_lossy(value.as_bytes());
            match headers.get_mut(name.as_str()) {
                Some(Value::String(before)) => {
                    before.push_str(", ");
                    before.push_str(&value);
                }
                _ => {
                    headers.insert(name.to_string(), value.into());
                }
            }
        }
        let mut body = Vec::new();
        let mut parts = response.bytes_stream();
        while let Some(part) = parts.next().await {
            body.extend_from_slice(&part.map_err(|e| told(&e))?);
            if body.len() > self.grant.max_bytes {
                return Err(format!(
                    "the answer is larger than {} bytes",
                    self.grant.max_bytes
                ));
            }
        }
        let body = String::from_utf8_lossy(&body);
        Ok(json!({ "status": status, "url": url, "headers": headers, "body": body }))
    }
}

/// Where a response leads on to, if it does.
fn redirected(response: &Response) -> Result<Option<Url>, String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get("location") else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    match response.url().join(&location) {
        Ok(url) => Ok(Some(url)),
        Err(e) => Err(format!("the redirect leads to no address: {e}")),
    }
}

fn method_of(method: Option<&Value>) -> Result<Method, String> {
    match method {
        None | Some(Value::Null) => Ok(Method::GET),
        Some(Value::String(method)) => match method.to_ascii_uppercase().as_str() {
            "GET" => Ok(Method::GET),
            "HEAD" => Ok(Method::HEAD),
            "POST" => Ok(Method::POST),
            "PUT" => Ok(Method::PUT),
            "PATCH" => Ok(Method::PATCH),
            "DELETE" => Ok(Method::DELETE),
            "OPTIONS" => Ok(Method::OPTIONS),
            _ => Err(format!("the method {method:?} may not be used")),
        },
        Some(_) => Err("the method must be a text".to_owned()),
    }
}

fn headers_of(headers: Option<&Value>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    let given = match headers {
        None | Some(Value::Null) => return Ok(map),
        Some(Value::Object(given)) => given,
        Some(_) => return Err("headers must be an object of texts".to_owned()),
    };
    for (name, value) in given {
        let Some(value) = value.as_str() else {
            return Err(format!("the header {name} must be a text"));
        };
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is no name of a header"))?;
        if KEPT_HEADERS.contains(&header.as_str()) || header.as_str().starts_with("proxy-") {
            return Err(format!("the header {name} may not be set"));
        }
        let value = HeaderValue::from_str(value)
            .map_err(|_| format!("the header {name} holds characters that it cannot"))?;
        map.insert(header, value);
    }
    Ok(map)
}

fn body_of(body: Option<Value>, headers: &mut HeaderMap) -> Result<Option<String>, String> {
    match body {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            headers
                .entry("content-type")
                .or_insert(HeaderValue::from_static("application/json"));
            Ok(Some(other.to_string()))
        }
    }
}

/// An error and its causes, without the address: its query may hold a secret.
fn told(error: &reqwest::Error) -> String {
    let mut text = if error.is_connect() {
        "no connection"
    } else {
        "the request failed"
    }
    .to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(at) = cause {
        let said = at.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = at.source();
    }
    text
}

/// The addresses that a name has.
type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Resolves names, and gives only the addresses that may be connected to. Asked once for each
/// connection, whose address is one of those that it gives: there is no second question whose
/// answer could be another.
#[derive(Clone)]
struct Resolver {
    admits: fn(IpAddr) -> bool,
    lookup: Arc<Lookup>,
}

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let admits = self.admits;
        let found = (self.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            let found = found.await?;
            let admitted: Vec<SocketAddr> = found
                .iter()
                .copied()
                .filter(|found| admits(found.ip()))
                .collect();
            if admitted.is_empty() && !found.is_empty() {
                return Err(format!(
                    "{} may not be fetched: it has a private address",
                    name.as_str()
                )
                .into());
            }
            let addresses: reqwest::dns::Addrs = Box::new(admitted.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests;
