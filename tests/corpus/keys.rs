//! A key of the HTTP model is in nothing that an agent gives out: traces with content, events,
//! outcome, history, session file, `Debug`.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use yiem::openai::OpenAiModel;
use yiem::prelude::*;

use crate::server::{Answer, Reply, Server};

const CANARY: &str = "sk-canary-77ab";

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test(
        "keys::no_output_shows_one",
        no_output_shows_one,
    )]
}

/// Everything that is traced, whoever traces it.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Subscriber for Traced {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = self.0.lock().expect("the text");
        text.push_str(span.metadata().name());
        span.record(&mut Fields(&mut text));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().expect("the text")));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(&mut self.0.lock().expect("the text")));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn no_output_shows_one() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let traced = Traced::default();
    let mut shown = tracing::subscriber::with_default(traced.clone(), || {
        let outputs = async {
            let told = outputs(folder.path());
            tokio::time::timeout(Duration::from_secs(100), told).await?
        };
        runtime.block_on(outputs)
    })?;
    let traces = traced.0.lock().expect("the text").clone();
    if !traces.contains("gen_ai") {
        return Err(format!("nothing was traced: {traces:?}").into());
    }
    shown.push_str(&traces);
    for entry in std::fs::read_dir(folder.path())? {
        shown.push_str(&String::from_utf8_lossy(&std::fs::read(entry?.path())?));
    }
    match shown.find("canary") {
        None => Ok(()),
        Some(at) => Err(format!("the key is in …{:.200}", &shown[at.saturating_sub(100)..]).into()),
    }
}

/// Runs that succeed, are refused by a server that quotes the key, and break; all they give out.
async fn outputs(folder: &std::path::Path) -> Result<String, Failed> {
    let quoting = format!(
        "{{\"error\":{{\"message\":\"Incorrect API key provided: {CANARY}.\",\"code\":\"invalid_api_key\"}}}}"
    );
    let answers = [
        Answer::Whole(Reply::ok(&[
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n",
        ])),
        Answer::Whole(Reply::error(401, &quoting)),
        Answer::Whole(Reply::ok(&[&format!("event: error\ndata: {quoting}\n\n")])),
        Answer::Broken(Reply::ok(&["data: {\"choices\":[]}\n\n"])),
        Answer::Closed,
    ];
    let mut shown = String::new();
    for (n, answer) in answers.into_iter().enumerate() {
        let server = Server::start(vec![answer]).await;
        let model = OpenAiModel::builder()
            .base_url(format!(
                "http://user:{CANARY}@{}/v1?k={CANARY}",
                server.address
            ))
            .api_key(CANARY)
            .header("x-api-key", CANARY)
            .no_proxy()
            .build()?;
        let events = Arc::new(Mutex::new(String::new()));
        let agent = Agent::builder(model)
            .session_file(folder.join(format!("{n}.jsonl")))
            .configure(|config| {
                config.retry.retries = 0;
                config.trace_content = true;
            })
            .listener({
                let events = Arc::clone(&events);
                move |event| {
                    let text = format!("{event:?} {}", serde_json::json!(event));
                    events.lock().expect("events").push_str(&text);
                }
            })
            .build()?;
        let outcome = agent.prompt("Go").await?;
        shown.push_str(&format!("{outcome:?} {agent:?} {:?}", agent.config()));
        shown.push_str(&serde_json::to_string(&outcome.transcript)?);
        shown.push_str(&events.lock().expect("events"));
    }
    Ok(shown)
}
