use super::*;
use crate::sandbox::Task;

fn job(body: &str) -> Job {
    Job {
        file: "t.js".into(),
        source: format!("export async function execute(args, host) {{ {body} }}").into(),
        task: Task::Call {
            function: "execute",
            args: "{}".to_owned(),
            changes: false,
        },
        seed: 1,
    }
}

fn last(mut running: Running) -> Result<String, ScriptError> {
    loop {
        match running.told.blocking_recv() {
            Some(Told::Done(result)) => return result,
            Some(_) => {}
            None => panic!("the thread ended without a word"),
        }
    }
}

#[test]
fn a_thread_is_used_again_and_ends_with_its_owner() {
    let workers = Workers::new(Arc::new(ScriptLimits::default()));
    for _ in 0..5 {
        assert_eq!(last(workers.begin(job("return 1")).unwrap()).unwrap(), "1");
        while workers.idle() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(workers.idle(), 1);
    }
    let idle = Arc::downgrade(&workers.idle);
    drop(workers);
    assert!(idle.upgrade().is_none());
}

#[test]
fn scripts_that_were_given_up_on_are_counted_until_they_end() {
    let workers = Workers::new(Arc::new(ScriptLimits::default()));
    let running = workers.begin(job("for (;;);")).unwrap();
    drop(running);
    while workers.stuck() > 0 {
        std::thread::yield_now();
    }
    let mut running = workers.begin(job("host.log('here'); for (;;);")).unwrap();
    assert!(matches!(
        running.told.blocking_recv(),
        Some(Told::Asked(HostRequest::Log(_)))
    ));
    drop(running);
    while workers.stuck() > 0 {
        std::thread::yield_now();
    }
    assert!(!workers.are_stuck());
}

#[test]
fn log_lines_have_an_end_and_requests_too() {
    let limits = ScriptLimits {
        log_lines: 3,
        open_requests: 2,
        ..ScriptLimits::default()
    };
    let workers = Workers::new(Arc::new(limits));
    let body = "for (let i = 0; i < 10; i++) host.log(i);
        host.callTool('a').catch(() => {}); host.callTool('b').catch(() => {});
        await host.callTool('c').catch(e => host.progress(e.message)); return 1";
    let mut running = workers.begin(job(body)).unwrap();
    let mut logs = 0;
    let mut reports = Vec::new();
    loop {
        match running.told.blocking_recv() {
            Some(Told::Asked(HostRequest::Log(_))) => logs += 1,
            Some(Told::Asked(HostRequest::Progress(json))) => reports.push(json),
            Some(Told::Done(result)) => {
                assert_eq!(result.unwrap(), "1");
                break;
            }
            Some(_) => {}
            None => panic!("the thread ended without a word"),
        }
    }
    assert_eq!(logs, 3);
    assert_eq!(reports, ["\"at most 2 requests may be open at once\""]);
}
