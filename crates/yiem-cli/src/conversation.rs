//! An agent as the command sets it up, and how it is listened to.
//!
//! Knows: which flag is which setting. Does not know: what is drawn.

use std::fs;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use yiem::mcp::Elicit;
use yiem::tools::{Discovery, SourceState};
use yiem::{
    Agent, AgentEvent, EndReason, Failure as RunFailure, FileJournal, ModelErrorKind, Outcome,
    SystemEnv, event_sink,
};

use crate::args::{DiscoveryChoice, Shared};
use crate::demo::DemoModel;
use crate::endpoint::{self, Endpoint};
use crate::failure::Failure;
use crate::sources;

/// How many events may wait to be drawn; a run waits beyond that.
const WAITING_EVENTS: usize = 256;

/// How long servers are waited for before the first turn (T-5).
const SERVERS: Duration = Duration::from_secs(10);

/// An agent and what it tells.
pub(crate) struct Conversation {
    pub(crate) agent: Agent,
    pub(crate) events: mpsc::Receiver<Arc<AgentEvent>>,
    pub(crate) endpoint: Endpoint,
}

impl Conversation {
    /// The agent of the flags. Says on standard error when it is the demonstration.
    /// `person` is who answers when a server asks one; without, such questions are declined.
    pub(crate) fn begin(shared: &Shared, person: Option<Arc<dyn Elicit>>) -> Result<Self, Failure> {
        let endpoint = Endpoint::of(shared)?;
        let (tell, events) = mpsc::channel(WAITING_EVENTS);
        let mut builder = match endpoint.model(shared)? {
            Some(model) => Agent::builder(model),
            None => {
                let (tool, server) = sources::demonstration();
                Agent::builder(DemoModel::new()).tool(tool).mcp(server)
            }
        };
        for source in sources::sources(sources::servers(shared)?, shared, person)? {
            builder = builder.source(source);
        }
        if let Some(path) = &shared.session {
            let (journal, session) = FileJournal::open(path, &*SystemEnv::shared())
                .map_err(|error| Failure::usage(format!("--session: {error}")))?;
            builder = builder.journal(journal).resume(session);
        }
        if let Some(system) = system_prompt(shared)? {
            builder = builder.system(system);
        }
        builder = builder.discovery(match shared.discovery {
            DiscoveryChoice::OnDemand => Discovery::OnDemand,
            DiscoveryChoice::Eager => Discovery::Eager,
            DiscoveryChoice::Auto => Discovery::AUTO,
        });
        if let Some(turns) = shared.max_turns {
            builder = builder.max_turns(turns);
        }
        if shared.sequential {
            builder = builder.sequential();
        }
        let sink = event_sink(move |event| {
            let tell = tell.clone();
            async move {
                // Nobody draws any more: the run is about to end.
                let _ = tell.send(event).await;
            }
        });
        let agent = builder
            .configure(|config| config.grace = Duration::from_secs(2))
            .sink(sink)
            .build()
            .map_err(Failure::usage)?;
        if endpoint == Endpoint::Demonstration {
            say_that_it_is_a_demonstration(shared);
        }
        Ok(Self {
            agent,
            events,
            endpoint,
        })
    }

    /// Gives the servers a moment to answer, and tells of those that did not (T-5).
    pub(crate) async fn await_servers(&self) {
        let catalog = self.agent.tools();
        let waited = timeout(SERVERS, self.agent.ready()).await;
        sources::tell_before_a_run(catalog);
        if waited.is_err() {
            let late: Vec<String> = catalog
                .sources()
                .iter()
                .filter(|status| matches!(status.state, SourceState::Waiting))
                .map(|status| status.name.to_string())
                .collect();
            sources::warn(&format!(
                "no answer from {} within {} s; going on, its tools are there once it answers",
                late.join(", "),
                SERVERS.as_secs()
            ));
        }
    }
}

fn say_that_it_is_a_demonstration(shared: &Shared) {
    let unused = endpoint::unused_by_the_demonstration(shared);
    let unused = match unused.as_slice() {
        [] => String::new(),
        [one] => format!("; until then {one} is not used"),
        several => format!("; until then {} are not used", several.join(" and ")),
    };
    let note = format!(
        "yiem: no endpoint was given, so a built-in demonstration answers; it is no LLM \
         (set OPENAI_API_KEY, or give --base-url and --model, for a real one{unused})\n"
    );
    // Whoever closed standard error does not want to know.
    let _ = io::stderr().write_all(note.as_bytes());
}

/// `--system TEXT`, or `--system @FILE`.
fn system_prompt(shared: &Shared) -> Result<Option<String>, Failure> {
    let Some(given) = &shared.system else {
        return Ok(None);
    };
    let Some(path) = given.strip_prefix('@') else {
        return Ok(Some(given.clone()));
    };
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(Failure::usage(format!(
            "--system: {path} could not be read: {error}"
        ))),
    }
}

/// What a run came to, as the command ends: nothing, or one line that says what to do.
pub(crate) fn verdict(
    outcome: &Outcome,
    endpoint: &Endpoint,
    shared: &Shared,
) -> Result<(), Failure> {
    match &outcome.end {
        EndReason::Completed | EndReason::Terminated | EndReason::Stopped => Ok(()),
        EndReason::Aborted => Err(Failure::interrupted()),
        EndReason::Limit(limit) => {
            let advice = match limit {
                yiem::Limit::Turns { .. } => "; raise it with --max-turns",
                _ => "",
            };
            Err(Failure::new(format!(
                "the run was ended by a limit: {limit}{advice}"
            )))
        }
        EndReason::Failed(RunFailure::Model(error)) => {
            let advice = advice(error.kind, endpoint, shared);
            Err(Failure::new(format!("the model failed: {error}{advice}")))
        }
        EndReason::Failed(failure) => Err(Failure::new(failure)),
        other => Err(Failure::new(format!("the run ended: {:?}", other.kind()))),
    }
}

/// What the flags can do about a model that failed. The error has said already what to check.
fn advice(kind: ModelErrorKind, endpoint: &Endpoint, shared: &Shared) -> String {
    let Endpoint::Server {
        base_url,
        key_from,
        model,
    } = endpoint
    else {
        return String::new();
    };
    let base_url = base_url.as_deref().unwrap_or("OpenAI's address");
    let model = model.as_deref().unwrap_or("the default");
    match kind {
        ModelErrorKind::Connection => {
            " (--base-url or OPENAI_BASE_URL names another address)".to_owned()
        }
        ModelErrorKind::Timeout => {
            format!(
                "; is a server running at {base_url}? --base-url or OPENAI_BASE_URL names another address"
            )
        }
        ModelErrorKind::Auth => match key_from {
            Some(name) => {
                format!(" (it was taken from {name}; --api-key-env names another variable)")
            }
            None => " (none was sent: set OPENAI_API_KEY, or name the variable that holds it with \
                     --api-key-env)"
                .to_owned(),
        },
        ModelErrorKind::NotFound => {
            format!(" (the model is {model}, --model; the base URL {base_url}, --base-url)")
        }
        ModelErrorKind::ContextLength => "; ask for less, or begin a new session".to_owned(),
        ModelErrorKind::InvalidRequest if shared.compat.is_none() => {
            "; if the server is not OpenAI's, its preset may help (--compat)".to_owned()
        }
        _ => String::new(),
    }
}
