//! Servers on NATS: request and reply, with progress on the reply inbox (M-3).
//!
//! Knows: subjects, inboxes, both codecs, what ends an exchange, what NATS says when nobody is there.
//! Does not know: MCP's methods, deadlines, when a call is worth another try.

mod codec;
mod config;
mod fault;
mod inbox;
mod link;
mod subject;

pub mod envelope;

pub(crate) use codec::{Codec, Decoded};
pub use codec::{NatsCodec, PayloadFetcher};
pub use config::{NatsAuth, NatsConfig, NatsTls};
pub(crate) use link::Link;
pub use subject::{SubjectStyle, Subjects};

use super::{Exchange, Inbox, Notice, Transport, TransportProfile};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{self, Answer, AnswerOutcome, JsonRpcError, RequestId};
use async_nats::{Client, Message, PublishErrorKind, StatusCode};
use async_trait::async_trait;
use bytes::Bytes;
use inbox::{AnswerInbox, Waiting};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use yiem_core::Env;

/// The largest answer that is read (M-8); brokers allow 1 MiB unless they are told otherwise.
const MAX_MESSAGE: usize = 32 << 20;
/// After an answer that cannot be read: how long one that can is waited for.
const SECOND_CHANCE: Duration = Duration::from_secs(1);
/// How long closing may take.
const CLOSING: Duration = Duration::from_secs(2);
/// In the data of an error: the answer was larger than the broker lets pass.
pub(crate) const ANSWER_TOO_LARGE: &str = "answerTooLarge";

/// A server on NATS.
///
/// One connection, opened at first use, which comes back by itself when it is lost; requests that are
/// pending then go on waiting until their deadline. The conversation is `docs/mcp-nats.md`.
pub struct NatsTransport {
    config: NatsConfig,
    env: Arc<dyn Env>,
    open: Mutex<Option<Arc<Open>>>,
}

/// An open connection with what belongs to it.
struct Open {
    link: Link,
    subjects: Subjects,
    codec: Codec,
    /// Under which the answers of this connection come.
    answers: AnswerInbox,
}

impl NatsTransport {
    /// A way to the server of that configuration. Nothing is started yet.
    #[must_use]
    pub fn new(config: NatsConfig, env: Arc<dyn Env>) -> Self {
        Self {
            config,
            env,
            open: Mutex::new(None),
        }
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Result<Arc<Open>, McpError> {
        self.slot()
            .clone()
            .ok_or_else(|| McpError::not_sent("there is no connection to the NATS server"))
    }
}

impl Open {
    fn client(&self) -> &Client {
        &self.link.client
    }

    /// Waits for messages on the way back until one of them ends the exchange.
    async fn answer(
        &self,
        answers: &mut Waiting,
        exchange: &Exchange,
        fetcher: Option<&Arc<dyn PayloadFetcher>>,
        env: &Arc<dyn Env>,
    ) -> Result<Came, McpError> {
        let mut unreadable: Option<(McpError, yiem_core::BoxFuture<'static, ()>)> = None;
        loop {
            let message = match &mut unreadable {
                None => answers.next().await,
                Some((_, too_long)) => tokio::select! {
                    biased;
                    message = answers.next() => message,
                    () = too_long => None,
                },
            };
            let Some(message) = message else {
                return Err(match unreadable {
                    Some((error, _)) => error,
                    None => self
                        .link
                        .health
                        .lost("it was closed before the answer came"),
                });
            };
            match self.take(&message, exchange, fetcher).await {
                Ok(Some(came)) => return Ok(came),
                Ok(None) => {}
                Err(error) => {
                    if !matches!(error.kind(), McpErrorKind::Unreadable(_)) {
                        return Err(error);
                    }
                    unreadable.get_or_insert_with(|| (error, env.sleep(SECOND_CHANCE)));
                }
            }
        }
    }

    /// One message from the way back: `None` when it is not what ends the exchange.
    async fn take(
        &self,
        message: &Message,
        exchange: &Exchange,
        fetcher: Option<&Arc<dyn PayloadFetcher>>,
    ) -> Result<Option<Came>, McpError> {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            return Ok(Some(Came::Nobody));
        }
        if message.payload.len() > MAX_MESSAGE {
            return Err(fault::too_large(
                "the answer",
                message.payload.len(),
                MAX_MESSAGE,
            ));
        }
        match self.codec.decode(&message.payload) {
            Decoded::Bytes => taken(exchange, jsonrpc::read(&message.payload)),
            Decoded::Value(value, _) => taken(exchange, jsonrpc::read_value(value)),
            Decoded::Unreadable(why) => Err(McpError::unreadable(why)),
            Decoded::Link(url, _) => match fetcher {
                Some(fetcher) => {
                    let bytes = fetcher.fetch(&url).await?;
                    // What lies there is the payload: bare, or wrapped once more.
                    match self.codec.decode(&bytes) {
                        Decoded::Bytes => taken(exchange, jsonrpc::read(&bytes)),
                        Decoded::Value(value, _) => taken(exchange, jsonrpc::read_value(value)),
                        Decoded::Unreadable(why) => Err(McpError::unreadable(why)),
                        Decoded::Link(..) => {
                            Err(McpError::unreadable("a linked payload is a link again"))
                        }
                    }
                }
                None => Err(McpError::protocol(format!(
                    "the answer lies at an address ({}) that Yiem does not fetch from by itself: answers as \
                     large as this one have to be sent directly, or a `PayloadFetcher` be given",
                    jsonrpc::excerpt(url.as_bytes())
                ))),
            },
        }
    }
}

/// What came back.
enum Came {
    Answer(Answer),
    Nobody,
}

fn taken(exchange: &Exchange, messages: Vec<jsonrpc::Incoming>) -> Result<Option<Came>, McpError> {
    let unreadable = match messages.as_slice() {
        [jsonrpc::Incoming::Unreadable(stray)] => Some(McpError::unreadable(format!(
            "{}: {}",
            stray.reason, stray.excerpt
        ))),
        _ => None,
    };
    match (exchange.take_all(messages), unreadable) {
        (Some(answer), _) => match size_refusal(&answer) {
            Some(error) => Err(error),
            None => Ok(Some(Came::Answer(answer))),
        },
        (None, Some(error)) => Err(error),
        (None, None) => Ok(None),
    }
}

/// A gateway that could not send its answer for its size says so in an error with both sizes.
fn size_refusal(answer: &Answer) -> Option<McpError> {
    let AnswerOutcome::Error(JsonRpcError {
        data: Some(data), ..
    }) = &answer.outcome
    else {
        return None;
    };
    if data.get("reason")?.as_str()? != ANSWER_TOO_LARGE {
        return None;
    }
    let number = |key: &str| {
        data.get(key)
            .and_then(Value::as_u64)
            .and_then(|n| usize::try_from(n).ok())
    };
    Some(fault::too_large(
        "the answer",
        number("size")?,
        number("limit")?,
    ))
}

/// The last token of a reply subject; a cancellation finds it by the request's id.
fn reply_token(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::Text(text) => text.bytes().fold("t".to_owned(), |mut token, byte| {
            use std::fmt::Write as _;
            // Hexadecimal, so that no text can be two tokens.
            let _ = write!(token, "{byte:02x}");
            token
        }),
    }
}

fn closed(error: &(dyn std::error::Error + 'static)) -> McpError {
    McpError::not_sent(format!(
        "the connection to the NATS server is closed: {}",
        fault::innermost(error)
    ))
}

async fn publish(
    open: &Open,
    subject: &str,
    reply: Option<String>,
    body: Bytes,
) -> Result<(), McpError> {
    let size = body.len();
    open.link.check_size("the request", size)?;
    let subject = subject.to_owned();
    let published = match reply {
        Some(reply) => open.client().publish_with_reply(subject, reply, body).await,
        None => open.client().publish(subject, body).await,
    };
    published.map_err(|error| match error.kind() {
        PublishErrorKind::MaxPayloadExceeded => {
            fault::too_large("the request", size, open.client().max_payload())
        }
        PublishErrorKind::InvalidSubject => McpError::config(error.to_string()),
        _ => closed(&error),
    })
}

#[async_trait]
impl Transport for NatsTransport {
    fn profile(&self) -> TransportProfile {
        TransportProfile {
            dialect: self.config.dialect,
            ..TransportProfile::detecting()
        }
        .with_call_timeout(self.config.call_timeout)
    }

    async fn open(&self, inbox: Inbox) -> Result<(), McpError> {
        let usable = self
            .slot()
            .clone()
            .filter(|open| open.link.is_usable() && open.answers.is_open());
        let open = match usable {
            Some(open) => open,
            None => {
                let subjects = self.config.subjects()?;
                let link = Link::connect(&self.config, Arc::clone(&self.env)).await?;
                let broker = self
                    .config
                    .servers
                    .first()
                    .map(|server| config::without_credentials(server));
                let codec = Codec::new(
                    self.config.codec.clone(),
                    Arc::clone(&self.env),
                    broker.as_deref().unwrap_or_default(),
                );
                let inbox = link.client.new_inbox();
                let messages = link
                    .client
                    .subscribe(format!("{inbox}.*"))
                    .await
                    .map_err(|error| closed(&error))?;
                let answers = AnswerInbox::new(inbox, messages);
                let open = Arc::new(Open {
                    link,
                    subjects,
                    codec,
                    answers,
                });
                *self.slot() = Some(Arc::clone(&open));
                open
            }
        };
        open.link.health.on_end(move |reason| inbox.closed(reason));
        Ok(())
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        let open = self.current()?;
        let subject = open.subjects.of(&exchange.method);
        let body = open
            .codec
            .encode(&exchange.method, exchange.body(), &subject);
        open.link.check_size("the request", body.len())?;
        let Some(mut answers) = open.answers.wait(reply_token(&exchange.id)) else {
            return Err(McpError::not_sent(
                "the connection to the NATS server is closed",
            ));
        };
        let reply = open.answers.reply(&answers.token);
        let connects = open.link.health.connects();
        let body = Bytes::from(body);
        let mut last_try = false;
        loop {
            publish(&open, &subject, Some(reply.clone()), body.clone()).await?;
            match open
                .answer(
                    &mut answers,
                    &exchange,
                    self.config.fetcher.as_ref(),
                    &self.env,
                )
                .await?
            {
                Came::Answer(answer) => return Ok(answer),
                // Nobody got the request, so sending it again is safe.
                Came::Nobody if !last_try && open.link.health.is_unsettled(connects) => {
                    last_try = true;
                    open.link.health.settled().await;
                }
                Came::Nobody => return Err(fault::no_server(&subject)),
            }
        }
    }

    async fn notify(&self, notice: Notice) -> Result<(), McpError> {
        let open = self.current()?;
        let subject = open.subjects.of(&notice.method);
        let body = open.codec.encode(&notice.method, notice.body(), &subject);
        // A cancellation carries the reply subject of its request: ids alone are not unique among clients.
        let reply =
            request_named_in(&notice.params).map(|id| open.answers.reply(&reply_token(&id)));
        publish(&open, &subject, reply, body.into()).await
    }

    fn trouble(&self, method: &str, waited: Duration) -> Option<String> {
        let open = self.slot().clone()?;
        open.link
            .health
            .trouble(&open.subjects.of(method), open.answers.subject(), waited)
    }

    async fn close(&self) {
        let open = self.slot().take();
        let Some(open) = open else { return };
        let draining = async {
            // What was published is written before the connection goes; a broken one has nothing to write.
            let _ = open.client().flush().await;
            let _ = open.client().drain().await;
        };
        tokio::select! {
            () = draining => {}
            () = self.env.sleep(CLOSING) => {}
        }
    }
}

fn request_named_in(params: &Map<String, Value>) -> Option<RequestId> {
    RequestId::from_value(params.get("requestId")?)
}

impl fmt::Debug for NatsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsTransport")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
