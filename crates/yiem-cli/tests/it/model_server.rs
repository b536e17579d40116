//! A server of the OpenAI chat format that answers from a script.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// One answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A body with a status.
    Json(u16, Value),
    /// Events of a stream, each the JSON of a `data:` line, with the end mark.
    Stream(Vec<Value>),
    /// The beginning of a stream; then the server is gone, for good.
    Dies(Vec<Value>),
    /// Nothing, ever.
    Silence,
}

/// A text, streamed in words.
pub(crate) fn text(said: &str) -> Answer {
    let mut events: Vec<Value> = said
        .split_inclusive(' ')
        .map(|word| json!({"choices": [{"index": 0, "delta": {"content": word}}]}))
        .collect();
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    events.push(json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}}));
    Answer::Stream(events)
}

/// A call of a tool, its arguments as the text that they are.
pub(crate) fn tool_call(id: &str, name: &str, arguments: &str) -> Answer {
    let (begin, end) = arguments.split_at(arguments.len() / 2);
    let call =
        |function: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": [function]}}]});
    Answer::Stream(vec![
        call(
            json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": begin}}),
        ),
        call(json!({"index": 0, "function": {"arguments": end}})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ])
}

/// A request that came.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    /// Names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The text of the last message.
    pub(crate) fn last_text(&self) -> String {
        let messages = self.body["messages"].as_array().unwrap();
        match &messages.last().unwrap()["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// The server; its thread ends with the process.
pub(crate) struct ModelServer {
    pub(crate) base_url: String,
    asked: mpsc::Receiver<Asked>,
}

impl ModelServer {
    /// Answers one request after another with these; with the last one again and again.
    pub(crate) fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        let script: Vec<Answer> = script.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tell, asked) = mpsc::channel();
        thread::spawn(move || serve(&listener, &script, &tell));
        Self { base_url, asked }
    }

    /// The next request that came.
    #[track_caller]
    pub(crate) fn asked(&self) -> Asked {
        self.asked
            .recv_timeout(Duration::from_secs(100))
            .expect("a request")
    }

    /// Whether no more requests came.
    pub(crate) fn was_left_alone(&self) -> bool {
        self.asked.try_recv().is_err()
    }
}

fn serve(listener: &TcpListener, script: &[Answer], tell: &mpsc::Sender<Asked>) {
    let mut count = 0;
    let mut silent = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader) {
            // The test may have seen enough.
            let _ = tell.send(request);
            let answer = &script[count.min(script.len() - 1)];
            count += 1;
            let written = match answer {
                Answer::Json(status, body) => write_json(reader.get_mut(), *status, body),
                Answer::Stream(events) => write_stream(reader.get_mut(), events, true),
                Answer::Dies(events) => {
                    let _ = write_stream(reader.get_mut(), events, false);
                    return;
                }
                Answer::Silence => {
                    silent.push(reader);
                    break;
                }
            };
            if written.is_err() {
                break;
            }
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")?
        .1
        .parse()
        .ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked {
        path,
        headers,
        body: serde_json::from_slice(&body).ok()?,
    })
}

fn write_json(stream: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}

fn write_stream(stream: &mut TcpStream, events: &[Value], whole: bool) -> io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    for event in events {
        stream.write_all(chunk(&format!("data: {event}\n\n")).as_bytes())?;
    }
    if whole {
        stream.write_all((chunk("data: [DONE]\n\n") + "0\r\n\r\n").as_bytes())?;
    }
    stream.flush()
}
