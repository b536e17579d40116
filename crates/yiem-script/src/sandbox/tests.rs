mod bounds;
mod odd;
mod results;
mod walls;

use std::cell::RefCell;
use std::collections::VecDeque;

use serde_json::{Value as Json, json};

use super::*;

/// A host that stops the script when it logs `"stop"`, and answers `callTool` with its payload.
struct TestPort {
    stop: Arc<AtomicBool>,
    requests: RefCell<Vec<HostRequest>>,
    replies: RefCell<VecDeque<HostReply>>,
}

impl HostPort for TestPort {
    fn send(&self, request: HostRequest) -> Result<(), String> {
        match &request {
            HostRequest::Log(line) if line == "\"stop\"" => {
                self.stop.store(true, Ordering::Relaxed)
            }
            HostRequest::CallTool { id, payload } => {
                self.replies.borrow_mut().push_back(HostReply {
                    id: *id,
                    result: Ok(payload.clone()),
                })
            }
            HostRequest::Fetch { .. } => return Err("no hosts are granted".to_owned()),
            _ => {}
        }
        self.requests.borrow_mut().push(request);
        Ok(())
    }
    fn open(&self) -> usize {
        self.replies.borrow().len()
    }
    fn receive(&self) -> Option<HostReply> {
        self.replies.borrow_mut().pop_front()
    }
}

fn run_module(
    source: &str,
    task: Task,
    limits: &ScriptLimits,
) -> (Result<Json, ScriptError>, Vec<HostRequest>) {
    let job = Job {
        file: "t.js".into(),
        source: source.into(),
        task,
        seed: 7,
    };
    let limits = limits.clone();
    // A thread like the workers': the stack that the engine may use, and room for the rest.
    std::thread::Builder::new()
        .stack_size(limits.stack_bytes() + (1 << 20))
        .spawn(move || {
            let stop = Arc::new(AtomicBool::new(false));
            let port = Rc::new(TestPort {
                stop: Arc::clone(&stop),
                requests: RefCell::default(),
                replies: RefCell::default(),
            });
            let mut sandbox = Sandbox::new(&limits).unwrap();
            let result = sandbox.run(&job, &limits, &stop, Rc::clone(&port) as Rc<dyn HostPort>);
            let requests = port.requests.borrow().clone();
            (
                result.map(|text| crate::json::read(&text).unwrap()),
                requests,
            )
        })
        .unwrap()
        .join()
        .unwrap()
}

fn call(function: &'static str, args: Json) -> Task {
    Task::Call {
        function,
        args: args.to_string(),
        changes: false,
    }
}

/// Runs the body of `execute`.
fn execute(body: &str) -> Result<Json, ScriptError> {
    let source = format!("export async function execute(args, host) {{\n{body}\n}}");
    run_module(
        &source,
        call("execute", json!({})),
        &ScriptLimits::default(),
    )
    .0
}

fn kind_of(body: &str) -> ScriptErrorKind {
    match execute(body) {
        Ok(value) => panic!("{body} gave {value}"),
        Err(error) => error.kind,
    }
}
