//! What ends with the stream on which a client listens.

use super::*;
use crate::client::HandOn as _;
use crate::gateway::callers::Callers;
use crate::responder::ToolServer;
use yiem_core::SystemEnv;

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_the_stream_on_which_it_was_asked() {
    let env = SystemEnv::shared();
    let core = Arc::new(Core::new(
        Arc::new(ToolServer::new("t", Arc::clone(&env))),
        Arc::new(Callers::new(Arc::clone(&env))),
        env,
        1,
        Duration::from_secs(60),
    ));
    let (send, mut asked) = mpsc::channel(4);
    let (_events, events) = mpsc::channel(4);
    let stream = Own::stream(
        Arc::clone(&core),
        "s".into(),
        Map::new(),
        Arc::new(move |message| send.try_send(message).is_ok()),
        events,
    );
    let asks = core.callers.whom().expect("it can be asked");
    let began = tokio::time::Instant::now();
    let asking = asks.ask("roots/list", &Value::Null);
    let leaving = async {
        asked.recv().await.expect("the question");
        drop(stream);
    };
    let (answer, ()) = tokio::join!(asking, leaving);
    assert_eq!(answer, None);
    assert_eq!(began.elapsed(), Duration::ZERO, "nobody waited");
    assert!(core.callers.whom().is_none());
}
