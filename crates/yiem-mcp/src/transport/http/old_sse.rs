//! HTTP+SSE (2024-11-05): one stream for everything that comes, an address for everything that goes.

use super::HttpShared;
use super::answer::{read_capped, reader, too_large};
use crate::correlate::{Correlator, Settled};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{Answer, Incoming, RequestId, excerpt, read};
use crate::transport::{Exchange, Inbox};
use reqwest::header::{ACCEPT, HeaderMap};
use reqwest::{Method, Url};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::oneshot;
use yiem_sse::SseReader;

type Waiter = oneshot::Sender<Result<Answer, McpError>>;

/// A connection of the older kind.
pub(super) struct OldSse {
    shared: Weak<HttpShared>,
    post_to: Url,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiters: Correlator<Waiter>,
    ended: Option<McpError>,
}

struct Pending<'a> {
    old: &'a OldSse,
    id: &'a RequestId,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.old.state().waiters.give_up(self.id);
    }
}

impl OldSse {
    /// Opens the stream and waits for the address. The second value reads the stream and has to be run.
    pub(super) async fn connect(
        shared: Arc<HttpShared>,
        inbox: Inbox,
    ) -> Result<(Arc<Self>, impl Future<Output = ()> + Send + 'static), McpError> {
        let token = shared.next_token().await?;
        let mut response = shared
            .request(
                shared.url.clone(),
                Method::GET,
                HeaderMap::new(),
                token.as_deref(),
            )?
            .header(ACCEPT, "text/event-stream")
            .send()
            .await
            .map_err(|error| super::post::send_error(&shared.url, error))?;
        let status = response.status();
        if !status.is_success() {
            let body = excerpt(&read_capped(response, 4096).await.unwrap_or_default());
            return Err(McpError::new(McpErrorKind::Http {
                status: status.as_u16(),
                body,
            }));
        }
        let cap = shared.max_message;
        let mut reader = reader(cap);
        let mut early: Vec<String> = Vec::new();
        let mut endpoint: Option<String> = None;
        while endpoint.is_none() {
            let piece = response
                .chunk()
                .await
                .map_err(|error| {
                    McpError::unreachable("the stream broke off").with_source(error.without_url())
                })?
                .ok_or_else(|| {
                    McpError::unreachable("the stream ended without an address to post to")
                })?;
            let fed = reader.feed(&piece, |event| match event.name {
                Some("endpoint") if endpoint.is_none() => {
                    endpoint = Some(event.data.trim().to_owned())
                }
                None | Some("message") => early.push(event.data.to_owned()),
                _ => {}
            });
            fed.map_err(|error| too_large(error, cap))?;
        }
        let endpoint = endpoint.unwrap_or_default();
        let post_to = shared.url.join(&endpoint).map_err(|_| {
            McpError::protocol(format!(
                "the server's address to post to is none: {endpoint:?}"
            ))
        })?;
        if post_to.origin() != shared.url.origin() {
            return Err(McpError::protocol(
                "the server's address to post to is of another origin",
            ));
        }
        let old = Arc::new(Self {
            shared: Arc::downgrade(&shared),
            post_to,
            state: Mutex::default(),
        });
        let reading = {
            let old = Arc::clone(&old);
            async move {
                for data in early {
                    old.take(&data, &inbox);
                }
                let reason = old.read(response, reader, &inbox).await;
                old.end(&reason);
                inbox.closed(reason);
            }
        };
        Ok((old, reading))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(
        &self,
        mut response: reqwest::Response,
        mut reader: SseReader,
        inbox: &Inbox,
    ) -> McpError {
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    let fed = reader.feed(&piece, |event| {
                        if matches!(event.name, None | Some("message")) {
                            self.take(event.data, inbox);
                        }
                    });
                    if fed.is_err() {
                        return McpError::lost("an event of the server is larger than allowed");
                    }
                }
                Ok(None) => return McpError::lost("the server closed its stream"),
                Err(error) => {
                    return McpError::lost("the server's stream broke off")
                        .with_source(error.without_url());
                }
            }
        }
    }

    fn take(&self, data: &str, inbox: &Inbox) {
        if data.is_empty() {
            return;
        }
        for message in read(data.as_bytes()) {
            match message {
                Incoming::Answer(answer) => {
                    let id = answer.id.clone();
                    let settled = self.state().waiters.settle(answer);
                    if let Settled::Waiter(waiter, outcome) = settled {
                        let _ = waiter.send(Ok(Answer { id, outcome }));
                    }
                }
                other => inbox.message(other),
            }
        }
    }

    fn end(&self, reason: &McpError) {
        let waiters = {
            let mut state = self.state();
            state.ended = Some(reason.again());
            state.waiters.take_all()
        };
        for waiter in waiters {
            let _ = waiter.send(Err(reason.again()));
        }
    }

    pub(super) async fn send(&self, body: Vec<u8>) -> Result<(), McpError> {
        let shared = self
            .shared
            .upgrade()
            .ok_or_else(|| McpError::not_sent("the connection is closed"))?;
        let response = shared
            .post_to(self.post_to.clone(), body, HeaderMap::new())
            .await?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let body = excerpt(&read_capped(response, 4096).await.unwrap_or_default());
        Err(McpError::new(McpErrorKind::Http {
            status: status.as_u16(),
            body,
        }))
    }

    pub(super) async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        let (sender, answer) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(ended) = &state.ended {
                return Err(McpError::not_sent(ended.kind().to_string()));
            }
            state.waiters.wait(exchange.id.clone(), sender);
        }
        let _pending = Pending {
            old: self,
            id: &exchange.id,
        };
        self.send(exchange.body()).await?;
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(McpError::lost("the connection to the server is gone")),
        }
    }
}
