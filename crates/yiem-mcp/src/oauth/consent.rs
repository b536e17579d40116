//! Asking a person for consent, in a browser.

use crate::error::{McpError, McpErrorKind};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Brings a person to an authorization server and back.
#[async_trait]
pub trait Consent: Send + Sync {
    /// The address that the server sends the browser back to.
    fn redirect_uri(&self) -> String;

    /// Shows the address to a person; gives the address that the browser was sent back to, with its query.
    ///
    /// May be dropped at any await: the request that wanted the token was given up.
    ///
    /// # Errors
    /// No answer can be had.
    async fn ask(&self, url: &str) -> Result<String, McpError>;
}

/// Waits for the browser at a port of this machine, which is how programs without an address of their own
/// do it (RFC 8252).
pub struct LoopbackConsent {
    listener: TcpListener,
    port: u16,
    open: Arc<dyn Fn(&str) + Send + Sync>,
}

impl LoopbackConsent {
    /// Takes a free port. `open` shows the address to the person: prints it, or starts a browser.
    ///
    /// # Errors
    /// No port can be had.
    pub async fn bind(open: impl Fn(&str) + Send + Sync + 'static) -> Result<Self, McpError> {
        Self::bind_now(open)
    }

    /// As [`LoopbackConsent::bind`], without waiting. Inside of a Tokio runtime.
    ///
    /// # Errors
    /// No port can be had.
    pub fn bind_now(open: impl Fn(&str) + Send + Sync + 'static) -> Result<Self, McpError> {
        let port_error = |error| {
            McpError::new(McpErrorKind::Config(
                "no local port for the answer of the browser".into(),
            ))
            .with_source(error)
        };
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .and_then(TcpListener::from_std)
            .map_err(port_error)?;
        let port = listener.local_addr().map_err(port_error)?.port();
        Ok(Self {
            listener,
            port,
            open: Arc::new(open),
        })
    }
}

impl fmt::Debug for LoopbackConsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopbackConsent")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// The longest request line that a browser may send.
const REQUEST_CAP: usize = 16 << 10;

#[async_trait]
impl Consent for LoopbackConsent {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    async fn ask(&self, url: &str) -> Result<String, McpError> {
        (self.open)(url);
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                continue;
            };
            if let Some(target) = answer_browser(stream).await {
                return Ok(format!("http://127.0.0.1:{}{target}", self.port));
            }
        }
    }
}

/// Reads one request of a browser and thanks for it; `None` for anything but the way back.
async fn answer_browser(mut stream: TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 2048];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") && request.len() < REQUEST_CAP {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
    let text = String::from_utf8_lossy(&request);
    let target = text.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    let is_answer = target.starts_with("/callback?");
    let (status, words) = if is_answer {
        (
            "200 OK",
            "Done. You can close this window and go back to the program.",
        )
    } else {
        ("404 Not Found", "There is nothing here.")
    };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{words}",
        words.len()
    );
    // A browser that is gone already has nothing to be thanked for.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    is_answer.then_some(target)
}
