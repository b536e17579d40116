//! Streams of a legacy server: the one on which it speaks by itself, and answers that are read on.

use super::HttpShared;
use super::answer::{Reading, read_answer, reader};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{Answer, read};
use crate::transport::{Exchange, Inbox};
use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// How long to wait before a stream is opened again, unless the server says.
const RETRY: Duration = Duration::from_secs(1);
/// The shortest such wait: a server that says 0 is not asked again and again without a break.
const RETRY_FLOOR: Duration = Duration::from_millis(100);
/// The longest such wait.
const RETRY_CAP: Duration = Duration::from_secs(30);
/// How many times an answer is read on without a new event.
const READ_ON: usize = 5;

impl HttpShared {
    async fn get_stream(&self, last_event: Option<&str>) -> Result<reqwest::Response, McpError> {
        let dialect = self.state().dialect;
        let mut headers = dialect
            .map(|dialect| self.headers_for(dialect))
            .unwrap_or_default();
        if let Some(id) = last_event
            && let Ok(value) = HeaderValue::try_from(id)
        {
            headers.insert(LAST_EVENT, value);
        }
        let mut attempt = 0;
        loop {
            let token = self.next_token().await?;
            let response = self
                .request(
                    self.url.clone(),
                    Method::GET,
                    headers.clone(),
                    token.as_deref(),
                )?
                .header(ACCEPT, "text/event-stream")
                .send()
                .await
                .map_err(|error| super::post::send_error(&self.url, error))?;
            if response.status().is_success() {
                return Ok(response);
            }
            let refused = matches!(
                response.status(),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            );
            if refused && attempt == 0 && self.challenged(&response, attempt, token).await? {
                attempt += 1;
                continue;
            }
            return Err(McpError::new(McpErrorKind::Http {
                status: response.status().as_u16(),
                body: String::new(),
            }));
        }
    }

    /// Reads an answer on whose stream broke off after an event with an id.
    pub(super) async fn read_on(
        &self,
        exchange: &Exchange,
        mut reading: Reading,
    ) -> Result<Answer, McpError> {
        let mut idle = 0;
        while idle < READ_ON {
            self.env.sleep(pause(reading.retry)).await;
            let before = reading.last_id.clone();
            match self.get_stream(before.as_deref()).await {
                Ok(response) => {
                    if let Some(answer) =
                        read_answer(response, exchange, self.max_message, &mut reading).await?
                    {
                        return Ok(answer);
                    }
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        McpErrorKind::Http { .. } | McpErrorKind::Unauthorized(_)
                    ) =>
                {
                    return Err(McpError::lost(
                        "the stream broke off before the answer and cannot be read on",
                    )
                    .with_note(error.kind().to_string()));
                }
                Err(_) => {}
            }
            idle = if reading.last_id == before {
                idle + 1
            } else {
                0
            };
        }
        Err(McpError::lost(
            "the stream broke off before the answer, again and again",
        ))
    }
}

/// How long to wait before a stream is opened again.
fn pause(said: Option<Duration>) -> Duration {
    said.unwrap_or(RETRY).clamp(RETRY_FLOOR, RETRY_CAP)
}

/// Listens to what a legacy server says by itself, for as long as the connection lasts. A server that has
/// no such stream says so, and that is that.
/// `ready` is told once the stream is there, and dropped where there is none.
pub(super) async fn listen(shared: Arc<HttpShared>, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    let Some(inbox) = shared.state().inbox.clone() else {
        return;
    };
    let mut last_id: Option<String> = None;
    let mut failures = 0u32;
    loop {
        match shared.get_stream(last_id.as_deref()).await {
            Ok(response) => {
                failures = 0;
                if let Some(ready) = ready.take() {
                    let _ = ready.send(());
                }
                let retry = pass_on(response, &shared, &inbox, &mut last_id).await;
                shared.env.sleep(pause(retry)).await;
            }
            Err(error)
                if matches!(
                    error.kind(),
                    McpErrorKind::Http { .. } | McpErrorKind::Unauthorized(_)
                ) =>
            {
                return;
            }
            Err(_) => {
                failures += 1;
                if failures > 6 {
                    return;
                }
                shared
                    .env
                    .sleep((RETRY * 2u32.pow(failures.min(5))).min(RETRY_CAP))
                    .await;
            }
        }
    }
}

/// Gives every message of a stream to the inbox; ends with the stream.
async fn pass_on(
    mut response: reqwest::Response,
    shared: &HttpShared,
    inbox: &Inbox,
    last_id: &mut Option<String>,
) -> Option<Duration> {
    let mut reader = reader(shared.max_message);
    while let Ok(Some(piece)) = response.chunk().await {
        let fed = reader.feed(&piece, |event| {
            if !event.data.is_empty() && matches!(event.name, None | Some("message")) {
                for message in read(event.data.as_bytes()) {
                    shared.take(message, inbox);
                }
            }
        });
        if let Some(id) = reader.last_event_id().filter(|id| !id.is_empty()) {
            *last_id = Some(id.to_owned());
        }
        if fed.is_err() {
            break;
        }
    }
    reader.retry_ms().map(Duration::from_millis)
}
