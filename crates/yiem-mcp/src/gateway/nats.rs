//! The gateway's side on NATS: requests come from a queue group, answers go to reply subjects.
//!
//! Knows: subscriptions, bodies of both codecs, how cancellations find the gateway that has the call, and
//! how to leave without losing a request. Does not know: what a request means.

use super::core::{Asked, Asking, Core, cancelled_request};
use crate::error::McpError;
use crate::jsonrpc::{
    self, INTERNAL_ERROR, INVALID_REQUEST, Incoming, JsonRpcError, PARSE_ERROR, RequestId,
};
use crate::protocol::method;
use crate::transport::nats::envelope::EnvelopeHead;
use crate::transport::nats::{ANSWER_TOO_LARGE, Codec, Decoded, Link, NatsConfig, Subjects};
use async_nats::{Message, Subject, Subscriber};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use yiem_core::CancelToken;

/// How many notifications of one request may wait to be sent; more are dropped.
const NOTIFICATIONS_WAITING: usize = 256;
/// How long the broker may take to confirm the subscriptions.
const CONFIRMATION: Duration = Duration::from_secs(5);
/// The queue group of gateways that were given none: two at one subject must not both answer.
const GROUP: &str = "yiem";
/// The longest pause between two tries to connect again.
const PAUSE: Duration = Duration::from_secs(5);

/// A gateway at one subject.
pub(super) struct NatsRim {
    config: NatsConfig,
    queue: String,
    core: Arc<Core>,
    subjects: Subjects,
    at: At,
}

/// A connection with its subscriptions.
struct At {
    link: Arc<Link>,
    requests: Subscriber,
    gossip: Subscriber,
}

impl NatsRim {
    /// Connects and subscribes; the broker has confirmed both when this returns.
    pub(super) async fn connect(
        config: NatsConfig,
        queue: Option<String>,
        core: Arc<Core>,
    ) -> Result<Self, McpError> {
        let subjects = config.subjects()?;
        let queue = queue.unwrap_or_else(|| GROUP.to_owned());
        let at = At::connect(&config, &queue, &subjects, &core).await?;
        Ok(Self {
            config,
            queue,
            core,
            subjects,
            at,
        })
    }

    /// Answers requests until it is told to stop and what is under way has ended.
    pub(super) async fn serve(self, stop: CancelToken) {
        let Self {
            config,
            queue,
            core,
            subjects,
            mut at,
        } = self;
        let broker = config.shown_servers();
        let codec = Arc::new(Codec::new(
            config.codec.clone(),
            Arc::clone(&core.env),
            &broker,
        ));
        let mut calls = JoinSet::new();
        loop {
            let desk = Desk {
                core: Arc::clone(&core),
                link: Arc::clone(&at.link),
                codec: Arc::clone(&codec),
                gossip: subjects.for_gossip(),
            };
            if desk.serve(&mut at, &mut calls, &stop).await == Left::Stopped {
                break;
            }
            tracing::warn!(servers = %broker, "the gateway's connection to NATS is gone; it connects again");
            let Some(again) = stop
                .run_until_cancelled(At::again(&config, &queue, &subjects, &core))
                .await
            else {
                break;
            };
            at = again;
        }
        while calls.join_next().await.is_some() {}
        // Answers are written before the connection goes; draining alone can leave some of many unwritten.
        let leaving = async {
            let _ = at.link.client.flush().await;
            let _ = at.link.client.drain().await;
        };
        tokio::select! {
            () = leaving => {}
            () = core.env.sleep(Duration::from_secs(2)) => {}
        }
    }
}

impl At {
    async fn connect(
        config: &NatsConfig,
        queue: &str,
        subjects: &Subjects,
        core: &Core,
    ) -> Result<Self, McpError> {
        let link = Link::connect(config, Arc::clone(&core.env)).await?;
        let subject = subjects.for_requests();
        let closed =
            |_| McpError::unreachable("the connection to the NATS server was closed at once");
        if queue.is_empty() || queue.chars().any(char::is_whitespace) {
            return Err(McpError::config(format!(
                "`{queue}` is no name for a queue group on NATS"
            )));
        }
        let requests = link
            .client
            .queue_subscribe(subject.clone(), queue.to_owned())
            .await
            .map_err(closed)?;
        let gossip = link
            .client
            .subscribe(subjects.for_gossip())
            .await
            .map_err(closed)?;
        let at = Self {
            link: Arc::new(link),
            requests,
            gossip,
        };
        at.confirmed(core).await?;
        let denied = at.link.health.denied_subscription(&subject);
        match denied {
            Some(text) => Err(McpError::new(crate::error::McpErrorKind::Unauthorized(
                format!("the NATS server does not let the gateway listen on {subject}: {text}"),
            ))),
            None => Ok(at),
        }
    }

    /// Waits for a message of our own to come back: what was subscribed before it is then in force, or
    /// was refused.
    async fn confirmed(&self, core: &Core) -> Result<(), McpError> {
        let client = &self.link.client;
        let inbox = client.new_inbox();
        let back = async {
            let mut own = client.subscribe(inbox.clone()).await.ok()?;
            client.publish(inbox.clone(), "".into()).await.ok()?;
            own.next().await
        };
        tokio::select! {
            _ = back => {}
            // One that may not use inboxes cannot be confirmed in this way.
            () = core.env.sleep(CONFIRMATION) => {}
        }
        // The news of a refusal takes its own way inside of the client library.
        core.env.sleep(Duration::from_millis(20)).await;
        Ok(())
    }

    async fn again(config: &NatsConfig, queue: &str, subjects: &Subjects, core: &Core) -> Self {
        let mut pause = Duration::from_millis(100);
        loop {
            match Self::connect(config, queue, subjects, core).await {
                Ok(at) => return at,
                Err(error) => tracing::warn!(%error, "the gateway cannot connect to NATS"),
            }
            core.env.sleep(pause).await;
            pause = (pause * 2).min(PAUSE);
        }
    }
}

#[derive(PartialEq, Eq)]
enum Left {
    Stopped,
    Lost,
}

/// What answering a message needs.
#[derive(Clone)]
struct Desk {
    core: Arc<Core>,
    link: Arc<Link>,
    codec: Arc<Codec>,
    gossip: String,
}

impl Desk {
    async fn serve(&self, at: &mut At, calls: &mut JoinSet<()>, stop: &CancelToken) -> Left {
        let mut draining = false;
        loop {
            tokio::select! {
                () = stop.cancelled(), if !draining => {
                    draining = true;
                    // No more is sent to us; what is on its way is still taken, up to the end of the stream.
                    if at.requests.drain().await.is_err() {
                        return Left::Stopped;
                    }
                }
                message = at.requests.next() => match message {
                    Some(message) => self.message(message, calls),
                    None if draining => return Left::Stopped,
                    None => return Left::Lost,
                },
                Some(message) = at.gossip.next() => self.gossip(&message),
                Some(_) = calls.join_next(), if !calls.is_empty() => {}
            }
        }
    }

    /// Cancellations that another gateway of the group was given.
    fn gossip(&self, message: &Message) {
        let Decoded::Value(value, _) = self.decoded(message) else {
            return;
        };
        for message_read in jsonrpc::read_value(value) {
            if let Incoming::Notification {
                method: name,
                params,
            } = message_read
                && name == method::CANCELLED
            {
                self.cancel(message.reply.as_ref(), &params);
            }
        }
    }

    fn decoded(&self, message: &Message) -> Decoded {
        match self.codec.decode(&message.payload) {
            Decoded::Bytes => match serde_json::from_slice::<Value>(&message.payload) {
                Ok(value) => Decoded::Value(value, None),
                Err(_) => Decoded::Bytes,
            },
            other => other,
        }
    }

    fn cancel(&self, reply: Option<&Subject>, params: &Value) -> bool {
        let Some(id) = cancelled_request(params) else {
            return true;
        };
        match reply {
            Some(reply) => {
                let found = self.core.cancel(reply, &id);
                if !found {
                    self.core.cancel_ahead(reply, &id);
                }
                found
            }
            // Ids alone are not unique among callers: only what cannot be mistaken is cancelled.
            None => self.core.cancel_only(&id),
        }
    }

    fn message(&self, message: Message, calls: &mut JoinSet<()>) {
        let (messages, head) = match self.codec.decode(&message.payload) {
            Decoded::Bytes => (jsonrpc::read(&message.payload), None),
            Decoded::Value(value, head) => (jsonrpc::read_value(value), head),
            Decoded::Link(_, head) => {
                let error = JsonRpcError::new(
                    INVALID_REQUEST,
                    "a payload that is only linked to is not fetched; send it directly",
                );
                self.refuse(message.reply, Some(head), None, error, calls);
                return;
            }
            Decoded::Unreadable(why) => {
                self.refuse(
                    message.reply,
                    None,
                    None,
                    JsonRpcError::new(PARSE_ERROR, why),
                    calls,
                );
                return;
            }
        };
        let head = head.map(Arc::from);
        for read in messages {
            match read {
                Incoming::Request(request) => {
                    self.request(
                        &message,
                        head.clone(),
                        Some(request.id),
                        request.method,
                        request.params,
                        calls,
                    );
                }
                Incoming::Notification {
                    method: name,
                    params,
                } if name == method::CANCELLED => {
                    if !self.cancel(message.reply.as_ref(), &params) {
                        self.pass_on(&message, calls);
                    }
                }
                // A request whose id is missing or null still has a way back.
                Incoming::Notification {
                    method: name,
                    params,
                } if message.reply.is_some() && !name.starts_with("notifications/") => {
                    self.request(&message, head.clone(), None, name, params, calls);
                }
                Incoming::Notification {
                    method: name,
                    params,
                } => {
                    let core = Arc::clone(&self.core);
                    calls.spawn(async move { core.notified(&name, &params).await });
                }
                Incoming::Answer(_) => {}
                Incoming::Unreadable(stray) => {
                    let error = JsonRpcError::new(
                        PARSE_ERROR,
                        format!("{}: {}", stray.reason, stray.excerpt),
                    );
                    self.refuse(message.reply.clone(), None, None, error, calls);
                }
            }
        }
    }

    /// Tells the others of the group of a cancellation for a call that is not ours.
    fn pass_on(&self, message: &Message, calls: &mut JoinSet<()>) {
        let client = self.link.client.clone();
        let (gossip, payload, reply) = (
            self.gossip.clone(),
            message.payload.clone(),
            message.reply.clone(),
        );
        calls.spawn(async move {
            let sent = match reply {
                Some(reply) => client.publish_with_reply(gossip, reply, payload).await,
                None => client.publish(gossip, payload).await,
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "a cancellation was not passed on");
            }
        });
    }

    fn refuse(
        &self,
        reply: Option<Subject>,
        head: Option<Box<EnvelopeHead>>,
        id: Option<RequestId>,
        error: JsonRpcError,
        calls: &mut JoinSet<()>,
    ) {
        let Some(reply) = reply else {
            tracing::debug!(%error, "a message that cannot be answered");
            return;
        };
        let desk = self.clone();
        calls.spawn(async move {
            desk.publish(&reply, head.as_deref(), id.as_ref(), &Err(error))
                .await
        });
    }

    fn request(
        &self,
        message: &Message,
        head: Option<Arc<EnvelopeHead>>,
        id: Option<RequestId>,
        name: String,
        params: Value,
        calls: &mut JoinSet<()>,
    ) {
        let Some(reply) = message.reply.clone() else {
            tracing::debug!(method = %name, "a request without a reply subject; it is not answered");
            return;
        };
        let desk = self.clone();
        calls.spawn(async move { desk.answer(reply, head, id, name, params).await });
    }

    async fn answer(
        &self,
        reply: Subject,
        head: Option<Arc<EnvelopeHead>>,
        id: Option<RequestId>,
        name: String,
        params: Value,
    ) {
        // A caller without `_meta` reads one message and takes it for the answer.
        let hears = params.get("_meta").is_some();
        let (send, mut waiting) = mpsc::channel::<Incoming>(NOTIFICATIONS_WAITING);
        let asked = Asked {
            caller: reply.as_str().into(),
            id: id.clone(),
            method: name,
            params,
            session: None,
            cancel: CancelToken::new(),
            // A member of the group does not know of the calls that another holds.
            asking: Asking::No,
            told: false,
        };
        // At the bound the newest is dropped: nothing may wait here.
        let send = move |note| hears && send.try_send(note).is_ok();
        let answering = self.core.answer(asked, send);
        tokio::pin!(answering);
        let mut open = true;
        let answer = loop {
            tokio::select! {
                biased;
                note = waiting.recv(), if open => match note {
                    Some(note) => self.note(&reply, head.as_deref(), note).await,
                    None => open = false,
                },
                answer = &mut answering => break answer,
            }
        };
        while let Ok(note) = waiting.try_recv() {
            self.note(&reply, head.as_deref(), note).await;
        }
        if let Some(answer) = answer {
            self.publish(&reply, head.as_deref(), id.as_ref(), &answer)
                .await;
        }
    }

    async fn note(&self, reply: &Subject, head: Option<&EnvelopeHead>, note: Incoming) {
        let Incoming::Notification {
            method: name,
            params: Value::Object(params),
        } = note
        else {
            return;
        };
        let body = self
            .codec
            .encode_answer(head, jsonrpc::notification(&name, &params), reply);
        if self.link.check_size("a notification", body.len()).is_ok() {
            let _ = self.link.client.publish(reply.clone(), body.into()).await;
        }
    }

    async fn publish(
        &self,
        reply: &Subject,
        head: Option<&EnvelopeHead>,
        id: Option<&RequestId>,
        answer: &Result<Value, JsonRpcError>,
    ) {
        let mut body = self.codec.encode_answer(head, written(id, answer), reply);
        let limit = self.link.client.max_payload();
        if body.len() > limit {
            let error = JsonRpcError::new(
                INTERNAL_ERROR,
                format!(
                    "the answer is too large for the NATS server: {} bytes, allowed are {limit}",
                    body.len()
                ),
            )
            .with_data(json!({"reason": ANSWER_TOO_LARGE, "size": body.len(), "limit": limit}));
            body = self
                .codec
                .encode_answer(head, written(id, &Err(error)), reply);
        }
        if let Err(error) = self.link.client.publish(reply.clone(), body.into()).await {
            tracing::warn!(%error, "an answer could not be sent");
        }
    }
}

/// An answer as JSON-RPC; to a request without an id its id is null.
fn written(id: Option<&RequestId>, answer: &Result<Value, JsonRpcError>) -> Vec<u8> {
    match (id, answer) {
        (Some(id), Ok(result)) => jsonrpc::result_response(id, result),
        (None, Ok(result)) => json!({"jsonrpc": "2.0", "id": null, "result": result})
            .to_string()
            .into_bytes(),
        (id, Err(error)) => jsonrpc::error_response(id, error),
    }
}
