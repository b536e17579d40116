//! Questions of servers, on their way to whoever sits at the terminal.

use tokio::sync::{mpsc, oneshot};
use yiem::async_trait;
use yiem::mcp::{Elicit, Elicitation, ElicitationAnswer};

/// How many questions may wait for a person; more are declined.
const WAITING: usize = 16;

/// A question, and the way back.
pub(super) struct Asked {
    pub(super) question: Elicitation,
    pub(super) answer: oneshot::Sender<ElicitationAnswer>,
}

/// Hands questions to the conversation.
pub(super) struct ToPerson(mpsc::Sender<Asked>);

impl ToPerson {
    pub(super) fn new() -> (Self, mpsc::Receiver<Asked>) {
        let (send, asked) = mpsc::channel(WAITING);
        (Self(send), asked)
    }
}

#[async_trait]
impl Elicit for ToPerson {
    async fn elicit(&self, question: Elicitation) -> ElicitationAnswer {
        let (send, answer) = oneshot::channel();
        let asked = Asked {
            question,
            answer: send,
        };
        if self.0.try_send(asked).is_err() {
            return ElicitationAnswer::Decline;
        }
        // Dropped unanswered: the run was stopped, or the person left.
        answer.await.unwrap_or(ElicitationAnswer::Cancel)
    }
}
