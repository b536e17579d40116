//! Questions in, ends in, what is taken back out.

use super::*;
use crate::{McpClient, McpServer};
use serde_json::json;

fn client() -> McpClient {
    let server = McpServer::closure(|_, _| async { json!({"result": {}}) });
    McpClient::new(server, yiem_core::SystemEnv::shared()).unwrap()
}

type End = oneshot::Receiver<TakenBack>;

fn ask(client: &McpClient, session: u64, id: &str, calls: &[i64]) -> (OpenQuestion, End) {
    let calls = calls.iter().copied().collect();
    let id = match id.parse() {
        Ok(number) => RequestId::Number(number),
        Err(_) => RequestId::Text(id.into()),
    };
    OpenQuestion::new(client.shared(), session, id, || calls)
}

fn why(end: &mut End) -> Option<TakenBack> {
    end.try_recv().ok()
}

#[test]
fn a_question_is_open_until_the_last_request_that_it_may_belong_to_has_ended() {
    let client = client();
    let questions = &client.shared().questions;
    let (_one, mut one) = ask(&client, 1, "a", &[7]);
    let (_two, mut two) = ask(&client, 1, "b", &[7, 8]);
    let (_blue, mut blue) = ask(&client, 1, "c", &[]);
    questions.call_ended(6);
    assert_eq!(why(&mut one), None);
    questions.call_ended(7);
    assert_eq!(why(&mut one), Some(TakenBack::WithItsCall));
    assert_eq!(why(&mut two), None);
    questions.call_ended(8);
    assert_eq!(why(&mut two), Some(TakenBack::WithItsCall));
    assert_eq!(why(&mut blue), None, "it belongs to no call");
}

#[test]
fn a_server_takes_back_its_own_question_by_its_id_in_either_spelling() {
    let client = client();
    let questions = &client.shared().questions;
    let (_a, mut a) = ask(&client, 1, "7", &[]);
    let (_b, mut b) = ask(&client, 2, "7", &[]);
    questions.cancelled(1, &RequestId::Text("8".into()));
    questions.cancelled(1, &RequestId::Text("7".into()));
    assert_eq!(why(&mut a), Some(TakenBack::ByServer));
    assert_eq!(why(&mut b), None, "it came on another connection");
    questions.connection_gone(2);
    assert_eq!(why(&mut b), Some(TakenBack::WithTheConnection));
    // The exact one first, and only that.
    let (_text, mut text) = {
        let id = RequestId::Text("9".into());
        OpenQuestion::new(client.shared(), 1, id, BTreeSet::new)
    };
    let (_number, mut number) = ask(&client, 1, "9", &[]);
    questions.cancelled(1, &RequestId::Number(9));
    assert_eq!(why(&mut text), None);
    assert_eq!(why(&mut number), Some(TakenBack::ByServer));
}

#[tokio::test]
async fn the_end_of_a_call_waits_only_for_questions_that_were_taken_back() {
    let client = client();
    let questions = &client.shared().questions;
    questions.settled().await;
    let (_other, _) = ask(&client, 1, "a", &[1]);
    let (taken, _) = ask(&client, 1, "b", &[2]);
    questions.settled().await;
    questions.call_ended(2);
    let mut settled = std::pin::pin!(questions.settled());
    assert!(futures_util::poll!(&mut settled).is_pending());
    drop(taken);
    settled.await;
    assert!(questions.any());
}

#[tokio::test]
async fn questions_are_put_in_the_order_in_which_they_came_whoever_runs_first() {
    let questions = Questions::default();
    let put = Mutex::new(Vec::new());
    let ask = |number: u32| {
        let turn = questions.turn();
        let put = &put;
        async move {
            turn.put(async move {
                put.lock().unwrap().push(number);
                tokio::task::yield_now().await;
                number
            })
            .await
        }
    };
    let (first, second, third) = (ask(1), ask(2), ask(3));
    let mut third = Box::pin(third);
    assert!(futures_util::poll!(&mut third).is_pending());
    // One that is given up before its turn holds up nobody.
    drop(second);
    let (third, first) = tokio::join!(third, first);
    assert_eq!((first, third), (1, 3));
    assert_eq!(*put.lock().unwrap(), [1, 3]);
}
