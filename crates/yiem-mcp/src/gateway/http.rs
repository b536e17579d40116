//! The gateway's side of Streamable HTTP, in both eras, on hyper.
//!
//! Knows: what a request over HTTP has to look like, sessions of the legacy era, when an answer is JSON
//! and when a stream, who may ask. Does not know: what a request means.

mod config;
mod marks;
mod reply;
mod rules;
mod session;

pub use config::GatewayHttpConfig;

use super::core::{Asked, Asking, Core, cancelled_request};
use crate::error::McpError;
use crate::jsonrpc::{
    self, INVALID_REQUEST, Incoming, IncomingRequest, JsonRpcError, PARSE_ERROR, RequestId,
};
use crate::protocol::{code, meta_key, method};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming as RequestBody;
use hyper::header::{ALLOW, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use marks::Marks;
use reply::{Answering, Leftovers, Reply, Stream};
use rules::{Era, Refusal};
use serde_json::{Map, Value};
use session::Sessions;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use yiem_core::{BoxFuture, CancelToken, IdKind, SessionId};

/// How many connections there may be at once; more wait to be accepted.
const CONNECTIONS: usize = 1_024;
/// How long a request's head and body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);
/// After so long without an answer, a stream is begun, so that the caller sees that someone is there.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many notifications of one request may wait to be sent; more are dropped.
const NOTIFICATIONS_WAITING: usize = 256;

/// A listening address.
pub(super) struct HttpRim {
    listener: TcpListener,
    address: SocketAddr,
    desk: Arc<Desk>,
}

struct Desk {
    config: GatewayHttpConfig,
    core: Arc<Core>,
    sessions: Sessions,
    marks: Arc<Marks>,
    leftovers: Arc<Leftovers>,
    numbers: AtomicU64,
    /// The address is one of this machine's own, which web pages must not be led to.
    loopback: bool,
}

impl HttpRim {
    pub(super) async fn bind(config: GatewayHttpConfig, core: Arc<Core>) -> Result<Self, McpError> {
        let wanted = config.address;
        let cannot = |error: std::io::Error| {
            McpError::config(format!("the gateway cannot listen at {wanted}: {error}"))
                .with_source(error)
        };
        let listener = TcpListener::bind(wanted).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let desk = Desk {
            loopback: address.ip().is_loopback(),
            config,
            core,
            sessions: Sessions::default(),
            marks: Arc::default(),
            leftovers: Arc::default(),
            numbers: AtomicU64::new(0),
        };
        Ok(Self {
            listener,
            address,
            desk: Arc::new(desk),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until it is told to stop and what is under way has ended.
    pub(super) async fn serve(self, stop: CancelToken) {
        let Self { listener, desk, .. } = self;
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let accepted = async {
                let place = Arc::clone(&places)
                    .acquire_owned()
                    .await
                    .expect("the semaphore is never closed");
                (listener.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                () = stop.cancelled() => break,
                accepted = accepted => accepted,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (desk, stop) = (Arc::clone(&desk), stop.clone());
                    connections.spawn(async move {
                        connection(stream, desk, stop).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Out of descriptors, say: the others go on, and it is tried again.
                    tracing::warn!(%error, "the gateway cannot accept a connection");
                    desk.core.env.sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
        desk.leftovers.ended().await;
    }
}

async fn connection(stream: TcpStream, desk: Arc<Desk>, stop: CancelToken) {
    // Answers are small and waited for.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let desk = Arc::clone(&desk);
        async move { Ok::<_, Infallible>(desk.respond(request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ARRIVAL)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        served = &mut connection => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection of the gateway ended");
            }
            return;
        }
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Whose call it is.
struct Caller {
    key: Arc<str>,
    session: Option<SessionId>,
    era: Era,
    streams: bool,
    asking: Asking,
}

impl Desk {
    async fn respond(self: &Arc<Self>, request: Request<RequestBody>) -> Response<Reply> {
        match self.admit(&request) {
            Ok(()) => {}
            Err(refusal) => return refused(refusal),
        }
        match *request.method() {
            Method::POST => self.post(request).await.unwrap_or_else(refused),
            Method::GET => self.listen(&request).unwrap_or_else(refused),
            Method::DELETE => self.delete(&request),
            _ => {
                let refusal = Refusal::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "this server takes POST, GET and DELETE",
                );
                let mut response = refused(refusal);
                response.headers_mut().insert(
                    ALLOW,
                    hyper::header::HeaderValue::from_static("POST, GET, DELETE"),
                );
                response
            }
        }
    }

    /// Whether whoever asks may ask here at all.
    fn admit(&self, request: &Request<RequestBody>) -> Result<(), Refusal> {
        if request.uri().path() != self.config.path {
            return Err(Refusal::new(
                StatusCode::NOT_FOUND,
                format!("the MCP server is at {}", self.config.path),
            ));
        }
        rules::check_origin(request.headers(), self.loopback, &self.config)?;
        rules::check_token(request.headers(), self.config.bearer_token.as_deref())
    }

    fn delete(&self, request: &Request<RequestBody>) -> Response<Reply> {
        let Some(id) = rules::header(request.headers(), rules::SESSION_ID) else {
            return refused(Refusal::new(
                StatusCode::BAD_REQUEST,
                "a session is ended by its mcp-session-id",
            ));
        };
        if self.sessions.end(id) {
            self.core.cancel_all_of(id);
            self.core.callers.forget(id);
            return plain(StatusCode::OK);
        }
        refused(rules::no_session())
    }

    /// The stream on which a client of the legacy era is told of changes and asked.
    fn listen(
        self: &Arc<Self>,
        request: &Request<RequestBody>,
    ) -> Result<Response<Reply>, Refusal> {
        let headers = request.headers();
        let not_here = |why: &str| Refusal::new(StatusCode::METHOD_NOT_ALLOWED, why);
        if rules::era(headers, None)? == Era::Modern {
            return Err(not_here(
                "this revision listens by subscriptions/listen, a POST",
            ));
        }
        if !self.config.sessions {
            return Err(not_here("without sessions there is nothing to listen to"));
        }
        if !rules::accepted(headers)? {
            return Err(Refusal::new(
                StatusCode::NOT_ACCEPTABLE,
                "what is listened to is a text/event-stream; accept it",
            ));
        }
        let Some(id) = rules::header(headers, rules::SESSION_ID) else {
            // Clients take this status for "there is no such stream", and go on without.
            return Err(not_here("a session is listened to by its mcp-session-id"));
        };
        let capabilities = self
            .sessions
            .touch(id, self.core.env.elapsed())
            .ok_or_else(rules::no_session)?;
        let events = self.sessions.listens(id).ok_or_else(rules::no_session)?;
        let (desk, session) = (Arc::downgrade(self), id.to_owned());
        let send = move |message: Incoming| {
            let line = jsonrpc::outgoing(&message);
            desk.upgrade()
                .zip(line)
                .is_some_and(|(desk, line)| desk.sessions.send(&session, reply::event(&line)))
        };
        let mut response = Response::new(Reply::Own(reply::Own::stream(
            Arc::clone(&self.core),
            id.to_owned(),
            Map::clone(&capabilities),
            Arc::new(send),
            events,
        )));
        rules::stream_headers(response.headers_mut());
        Ok(response)
    }

    async fn post(
        self: &Arc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<Reply>, Refusal> {
        let (head, body) = request.into_parts();
        rules::check_content_type(&head.headers)?;
        let streams = rules::accepted(&head.headers)?;
        let body = self.body(body).await?;
        let is_batch = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
        let mut messages = jsonrpc::read(&body);
        if let [Incoming::Unreadable(stray)] = messages.as_slice() {
            let error =
                JsonRpcError::new(PARSE_ERROR, format!("{}: {}", stray.reason, stray.excerpt));
            return Err(Refusal::rpc(StatusCode::BAD_REQUEST, None, error));
        }
        let era = rules::era(&head.headers, messages.first())?;
        let session = match rules::header(&head.headers, rules::SESSION_ID) {
            // A modern caller has no session; what it sends in its place is not looked at.
            Some(id) if era == Era::Legacy => {
                let capabilities = self
                    .sessions
                    .touch(id, self.core.env.elapsed())
                    .ok_or_else(rules::no_session)?;
                Some((id.to_owned(), capabilities))
            }
            _ => None,
        };
        let asking = match &session {
            Some((_, capabilities)) => Asking::Requests(Arc::clone(capabilities)),
            None => Asking::Rounds,
        };
        let session = session.map(|(id, _)| id);
        let caller = Caller {
            key: match &session {
                Some(session) => session.as_str().into(),
                None => format!("http-{}", self.numbers.fetch_add(1, Ordering::Relaxed)).into(),
            },
            session: session.map(SessionId::from),
            era,
            streams,
            asking,
        };
        if is_batch && era == Era::Legacy {
            return Ok(self.batch(messages, caller).await);
        }
        match (messages.pop(), messages.is_empty()) {
            (Some(Incoming::Request(request)), true) => {
                if era == Era::Modern {
                    rules::check_modern_request(&head.headers, &request)?;
                    if request.method == method::TOOLS_CALL {
                        self.marks
                            .check(&self.core, &head.headers, &request)
                            .await?;
                    }
                }
                Ok(self.request(request, caller).await)
            }
            (Some(message), true) => {
                self.take(message, &caller).await;
                Ok(plain(StatusCode::ACCEPTED))
            }
            _ => Err(Refusal::rpc(
                StatusCode::BAD_REQUEST,
                None,
                JsonRpcError::new(INVALID_REQUEST, "a request holds one message"),
            )),
        }
    }

    async fn body(&self, body: RequestBody) -> Result<Bytes, Refusal> {
        let limit = self.config.max_body;
        let whole = Limited::new(body, limit).collect();
        let arrived = tokio::select! {
            arrived = whole => arrived,
            () = self.core.env.sleep(ARRIVAL) => {
                return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request's body did not arrive in time"));
            }
        };
        match arrived {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the request is too large; allowed are {limit} bytes"),
            )),
            Err(_) => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "the request's body broke off",
            )),
        }
    }

    /// Takes what is not answered.
    async fn take(&self, message: Incoming, caller: &Caller) {
        match message {
            Incoming::Notification {
                method: name,
                params,
            } => match cancelled_request(&params).filter(|_| name == method::CANCELLED) {
                Some(id) => drop(self.core.cancel(&caller.key, &id)),
                None => self.core.notified(&name, &params).await,
            },
            Incoming::Answer(answer) => {
                if !self.core.callers.answered(&caller.key, answer) {
                    tracing::debug!("an answer to a question that is not open");
                }
            }
            Incoming::Request(_) | Incoming::Unreadable(_) => {}
        }
    }

    /// Sends questions, and that one is taken back, to the stream on which the client of a session listens.
    /// Nothing else: what belongs to a request has no place there.
    fn to_stream_of(
        self: &Arc<Self>,
        caller: &Caller,
    ) -> impl Fn(Incoming) -> bool + Send + Sync + use<> {
        let (desk, session) = (Arc::downgrade(self), caller.session.clone());
        move |message| {
            let question = is_of_a_question(&message)
                .then(|| jsonrpc::outgoing(&message))
                .flatten();
            match (desk.upgrade(), &session, question) {
                (Some(desk), Some(session), Some(line)) => {
                    desk.sessions.send(session.as_str(), reply::event(&line))
                }
                _ => false,
            }
        }
    }

    /// The messages of a list, as the revision of 2025-03-26 has it: the answers are a list as well.
    async fn batch(self: &Arc<Self>, messages: Vec<Incoming>, caller: Caller) -> Response<Reply> {
        let mut answers = Vec::new();
        let mut calls = Vec::new();
        for message in messages {
            match message {
                Incoming::Request(request) => {
                    let id = request.id.clone();
                    let send = self.to_stream_of(&caller);
                    let answering = self.core.answer(asked(request, &caller), send);
                    calls.push(async move { (id, answering.await) });
                }
                Incoming::Unreadable(stray) => answers.push(jsonrpc::error_response(
                    None,
                    &JsonRpcError::new(
                        INVALID_REQUEST,
                        format!("{}: {}", stray.reason, stray.excerpt),
                    ),
                )),
                other => self.take(other, &caller).await,
            }
        }
        for (id, answer) in futures_util::future::join_all(calls).await {
            if let Some(answer) = answer {
                answers.push(written(&id, &answer));
            }
        }
        if answers.is_empty() {
            return plain(StatusCode::ACCEPTED);
        }
        let mut list = Vec::from(*b"[");
        list.extend(answers.join(&b","[..]));
        list.push(b']');
        json(StatusCode::OK, list)
    }

    async fn request(
        self: &Arc<Self>,
        request: IncomingRequest,
        caller: Caller,
    ) -> Response<Reply> {
        let id = request.id.clone();
        let lists = request.method == method::TOOLS_LIST;
        let opens = caller.era == Era::Legacy
            && request.method == method::INITIALIZE
            && self.config.sessions;
        let (send, notes) = mpsc::channel::<Bytes>(NOTIFICATIONS_WAITING);
        let elsewhere = self.to_stream_of(&caller);
        let streams = caller.streams && !opens;
        let send = move |message| {
            if !streams {
                return elsewhere(message);
            }
            let Some(line) = jsonrpc::outgoing(&message) else {
                return false;
            };
            match send.try_send(reply::event(&line)) {
                Ok(()) => true,
                // The stream of the call has ended; what it asked may be open all the same.
                Err(mpsc::error::TrySendError::Closed(_)) => elsewhere(message),
                // At the bound the newest is dropped: nothing may wait here.
                Err(mpsc::error::TrySendError::Full(_)) => false,
            }
        };
        // Not the desk: it owns the leftovers, of which this may become one.
        let (core, marks) = (Arc::clone(&self.core), Arc::clone(&self.marks));
        let capabilities = if opens {
            let declared = request.params.get("capabilities");
            declared.and_then(Value::as_object).cloned()
        } else {
            None
        };
        let mut asked = asked(request, &caller);
        asked.told |= opens;
        let work: BoxFuture<'static, _> = Box::pin(async move {
            let answer = core.answer(asked, send).await;
            if lists && let Some(Ok(page)) = &answer {
                marks.learn(page);
            }
            answer
        });
        // Only a modern caller says by leaving that it gives up; a legacy one's call goes on.
        let left = (caller.era == Era::Legacy).then(|| Arc::clone(&self.leftovers));
        let opened = |capabilities: Option<Map<String, Value>>| {
            opens.then(|| capabilities.unwrap_or_default())
        };
        let mut answering = Answering::new(work, left);
        let mut notes = Some(notes).filter(|_| caller.streams);
        let patience = self.core.env.sleep(PATIENCE);
        let first = tokio::select! {
            biased;
            note = next_note(&mut notes) => note,
            answer = &mut answering => {
                // What was told before the answer goes before it.
                let Some((first, notes)) = notes.and_then(|mut notes| Some((notes.try_recv().ok()?, notes))) else {
                    return self.whole(&id, answer, caller.era, opened(capabilities));
                };
                return streamed(Stream::ended(first, notes, answer, id, Arc::clone(&self.core.env)));
            }
            () = patience, if caller.streams && !opens => Bytes::from_static(reply::KEEP_ALIVE),
        };
        let Some(notes) = notes.filter(|_| !opens) else {
            let answer = answering.await;
            return self.whole(&id, answer, caller.era, opened(capabilities));
        };
        streamed(Stream::new(
            first,
            notes,
            answering,
            id,
            Arc::clone(&self.core.env),
        ))
    }

    /// The answer as JSON.
    fn whole(
        &self,
        id: &RequestId,
        answer: Option<Result<Value, JsonRpcError>>,
        era: Era,
        opens: Option<Map<String, Value>>,
    ) -> Response<Reply> {
        let Some(answer) = answer else {
            // Cancelled: nothing is owed but the end.
            return plain(StatusCode::ACCEPTED);
        };
        let status = match (&answer, era) {
            (Err(error), Era::Modern) => rules::status_of(error),
            _ => StatusCode::OK,
        };
        let mut response = json(status, written(id, &answer));
        if let Some(capabilities) = opens
            && answer.is_ok()
        {
            let session = self.core.env.new_id(IdKind::Session);
            if let Ok(value) = hyper::header::HeaderValue::from_str(&session) {
                let now = self.core.env.elapsed();
                if let Some(gone) = self.sessions.begin(session, capabilities, now) {
                    self.core.cancel_all_of(&gone);
                    self.core.callers.forget(&gone);
                }
                response.headers_mut().insert(rules::SESSION_ID, value);
            }
        }
        response
    }
}

fn asked(request: IncomingRequest, caller: &Caller) -> Asked {
    Asked {
        caller: Arc::clone(&caller.key),
        id: Some(request.id),
        method: request.method,
        params: request.params,
        session: caller.session.clone(),
        cancel: CancelToken::new(),
        asking: caller.asking.clone(),
        told: caller.session.is_some(),
    }
}

/// Whether it is a question to the caller, or takes one back.
fn is_of_a_question(message: &Incoming) -> bool {
    match message {
        Incoming::Request(_) => true,
        Incoming::Notification { method: name, .. } => name == method::CANCELLED,
        _ => false,
    }
}

/// The next notification; never ends when there can be none.
async fn next_note(notes: &mut Option<mpsc::Receiver<Bytes>>) -> Bytes {
    if let Some(waiting) = notes
        && let Some(note) = waiting.recv().await
    {
        return note;
    }
    std::future::pending().await
}

fn written(id: &RequestId, answer: &Result<Value, JsonRpcError>) -> Vec<u8> {
    match answer {
        Ok(result) => jsonrpc::result_response(id, result),
        Err(error) => jsonrpc::error_response(Some(id), error),
    }
}

fn json(status: StatusCode, body: Vec<u8>) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Some(body.into())));
    *response.status_mut() = status;
    rules::json_headers(response.headers_mut());
    response
}

fn streamed(stream: Stream) -> Response<Reply> {
    let mut response = Response::new(Reply::Stream(Box::new(stream)));
    rules::stream_headers(response.headers_mut());
    response
}

fn plain(status: StatusCode) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(None));
    *response.status_mut() = status;
    response
}

fn refused(refusal: Refusal) -> Response<Reply> {
    let unauthorized = refusal.status == StatusCode::UNAUTHORIZED;
    let mut response = json(
        refusal.status,
        jsonrpc::error_response(refusal.id.as_ref(), &refusal.error),
    );
    if unauthorized {
        response.headers_mut().insert(
            WWW_AUTHENTICATE,
            hyper::header::HeaderValue::from_static("Bearer"),
        );
    }
    response
}

/// Whether params say that they are of the stateless era.
fn says_modern(params: &Value) -> Option<&Value> {
    params.get("_meta")?.get(meta_key::PROTOCOL_VERSION)
}

/// A header and the body say different things.
fn mismatch(id: &RequestId, what: impl Into<String>) -> Refusal {
    Refusal::rpc(
        StatusCode::BAD_REQUEST,
        Some(id.clone()),
        JsonRpcError::new(code::HEADER_MISMATCH, what),
    )
}
