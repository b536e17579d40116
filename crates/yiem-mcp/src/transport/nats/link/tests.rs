//! What the connection's events mean, by a clock that stands still.

use super::*;
use std::sync::atomic::AtomicU64;
use yiem_core::{BoxFuture, IdKind, Timestamp};

#[derive(Debug, Default)]
struct Clock(AtomicU64);

impl Clock {
    fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Env for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0
            .fetch_add(duration.as_secs().max(1), Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
    fn new_id(&self, _: IdKind) -> String {
        "id".into()
    }
    fn random(&self) -> f64 {
        0.5
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn health() -> (Arc<Clock>, Health) {
    let clock = Arc::new(Clock::default());
    clock.forward(1_000);
    let health = Health::new(Arc::clone(&clock) as Arc<dyn Env>, "nats://h:1".into());
    health.connected();
    (clock, health)
}

fn trouble(health: &Health) -> Option<String> {
    health.trouble("mcp.w", "_INBOX.a", MINUTE)
}

#[test]
fn a_healthy_connection_explains_nothing() {
    let (_, health) = health();
    assert_eq!(trouble(&health), None);
}

#[test]
fn the_first_connection_counts_once_whoever_tells_of_it_first() {
    let (_, health) = health();
    health.event(&Event::Connected);
    assert_eq!(health.connects(), 1);
    assert!(!health.is_unsettled(1));
}

#[test]
fn a_lost_connection_is_told_with_its_own_error() {
    let (clock, health) = health();
    health.event(&Event::Disconnected);
    health.event(&Event::ClientError(ClientError::Other(
        "connection refused".into(),
    )));
    clock.forward(30);
    let text = trouble(&health).expect("known");
    assert!(
        text.contains("nats://h:1")
            && text.contains("not yet back")
            && text.contains("connection refused"),
        "{text}"
    );
    health.event(&Event::Connected);
    let text = trouble(&health).expect("known");
    assert!(
        text.contains("in the meantime") && text.contains("connection refused"),
        "{text}"
    );
    clock.forward(120);
    assert_eq!(trouble(&health), None, "what is long over explains nothing");
}

#[test]
fn a_refused_permission_explains_only_what_it_is_about() {
    let (clock, health) = health();
    health.event(&Event::ServerError(ServerError::Other(
        r#"Permissions Violation for Publish to "mcp.w""#.into(),
    )));
    clock.forward(300);
    assert!(
        trouble(&health)
            .expect("known")
            .contains("Permissions Violation for Publish")
    );
    assert_eq!(health.trouble("mcp.other", "_INBOX.a", MINUTE), None);
}

#[test]
fn refused_permissions_are_bounded() {
    let (_, health) = health();
    for number in 0..1_000 {
        let text = format!(r#"Permissions Violation for Publish to "mcp.{number}""#);
        health.event(&Event::ServerError(ServerError::Other(text)));
    }
    assert_eq!(health.lock().denied.len(), DENIED_KEPT);
    assert!(health.trouble("mcp.999", "_INBOX.a", MINUTE).is_some());
}

#[tokio::test]
async fn nobody_there_counts_only_once_the_connection_has_settled() {
    let (clock, health) = health();
    let before = health.connects();
    assert!(!health.is_unsettled(before));
    health.event(&Event::Disconnected);
    assert!(health.is_unsettled(before));
    health.event(&Event::Connected);
    assert!(health.is_unsettled(before) && health.is_unsettled(health.connects()));
    health.settled().await;
    clock.forward(3);
    assert!(!health.is_unsettled(health.connects()));
    assert!(health.is_unsettled(before), "it was lost since then");
}

#[test]
fn a_connection_that_is_given_up_is_told_once() {
    let (_, health) = health();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    health.on_end(move |error| heard.lock().unwrap().push(error.to_string()));
    health.event(&Event::Disconnected);
    health.event(&Event::ClientError(ClientError::Other(
        "connection refused".into(),
    )));
    health.event(&Event::ClientError(ClientError::MaxReconnects));
    health.event(&Event::Closed);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("every try") && told[0].contains("connection refused"),
        "{}",
        told[0]
    );
}

#[test]
fn pauses_grow_to_a_bound() {
    let pauses: Vec<u128> = (0..12).map(|tries| pause(tries).as_millis()).collect();
    assert_eq!(
        pauses,
        [0, 0, 50, 100, 200, 400, 800, 1600, 3200, 4000, 4000, 4000]
    );
    assert_eq!(pause(usize::MAX), RECONNECT_PAUSE);
}
