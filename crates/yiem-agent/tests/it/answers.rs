//! How a run ends that was asked for a value, and which of its answers counts.

use serde_json::json;
use yiem_agent::{
    AfterToolCall, Agent, AgentBuilder, EndKind, EndReason, Failure, Outcome, OutputMode,
    StopAfterTurn, TerminatePolicy,
};
use yiem_core::Content;
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::within;

/// A prompt for a number, to an agent that answers with these replies.
async fn number(
    replies: impl IntoIterator<Item = Reply>,
    build: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> Outcome {
    let model = ScriptedModel::new(replies.into_iter().collect::<Vec<_>>());
    let builder = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::echo());
    let agent = build(builder).build().unwrap();
    let schema = json!({"type": "integer"});
    let prompt = agent
        .prompt("how many?")
        .output_schema(schema, OutputMode::Tool);
    within(prompt).await.unwrap()
}

fn answer(value: serde_json::Value) -> Reply {
    Reply::call("final_answer", json!({"answer": value}))
}

fn echo() -> Reply {
    Reply::call("echo", json!({"value": "x"}))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_given_is_kept_however_the_run_ends() {
    let stop = |b: AgentBuilder| b.should_stop_after_turn(|_| async { Ok(StopAfterTurn::Stop) });
    let outcome = number([answer(json!(5))], stop).await;
    assert_eq!(
        (outcome.end.kind(), outcome.output),
        (EndKind::Stopped, Some(json!(5)))
    );
    let outcome = number([Reply::say("5")], stop).await;
    assert_eq!(
        (outcome.end.kind(), outcome.output),
        (EndKind::Stopped, Some(json!(5)))
    );
    let outcome = number([Reply::say("many")], stop).await;
    assert_eq!(
        (outcome.end.kind(), outcome.output),
        (EndKind::Stopped, None)
    );
    // A limit of calls that another call of the reply ran into.
    let both = || answer(json!(5)).and_call("echo", json!({"value": "x"}));
    let outcome = number([both()], |b| b.configure(|c| c.limits.tool_calls = Some(0))).await;
    assert_eq!(
        (outcome.end.kind(), outcome.output),
        (EndKind::Limit, Some(json!(5)))
    );
    // A limit that lets no further turn begin, and one would.
    for limit in [
        (|b| b.max_turns(1)) as fn(AgentBuilder) -> AgentBuilder,
        |b| b.configure(|c| c.limits.tokens = Some(2)),
    ] {
        let outcome = number([both().usage(1, 1)], |b| {
            limit(b.configure(|c| c.terminate = TerminatePolicy::All))
        })
        .await;
        assert_eq!(
            (outcome.end.kind(), outcome.output),
            (EndKind::Limit, Some(json!(5)))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_that_allows_null_is_no_answer_where_none_was_given() {
    let agent = Agent::builder(ScriptedModel::new([Reply::say("hm"), Reply::say("hm")]))
        .env(PausedEnv::shared())
        .should_stop_after_turn(|_| async { Ok(StopAfterTurn::Stop) })
        .build()
        .unwrap();
    let error = within(agent.prompt("?").output::<Option<i32>>())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("stopped before it had an answer"),
        "{error}"
    );
    assert!(
        within(agent.prompt("?").output::<serde_json::Value>())
            .await
            .is_err()
    );
    let agent = Agent::builder(ScriptedModel::new([answer(json!(null))]))
        .env(PausedEnv::shared())
        .build()
        .unwrap();
    let given = within(agent.prompt("?").output::<Option<i32>>())
        .await
        .unwrap();
    assert_eq!(given.value, None);
}

#[tokio::test(start_paused = true)]
async fn wrong_answers_of_one_reply_are_one_repair_and_a_right_one_beside_them_counts() {
    let wrong = || {
        answer(json!("a"))
            .and_call("final_answer", json!({"answer": "b"}))
            .and_call("final_answer", json!({}))
    };
    let one = |b: AgentBuilder| b.configure(|c| c.output_repairs = 1);
    let outcome = number([wrong(), answer(json!(5))], one).await;
    assert_eq!(outcome.output, Some(json!(5)));
    let outcome = number([wrong(), wrong(), answer(json!(5))], one).await;
    assert!(
        matches!(outcome.end, EndReason::Failed(Failure::Output(_))),
        "{:?}",
        outcome.end
    );
    assert_eq!(outcome.turns, 2);
    let last = wrong().and_call("final_answer", json!({"answer": 7}));
    let outcome = number([wrong(), last], one).await;
    assert_eq!(outcome.output, Some(json!(7)));
    let first = answer(json!(7)).and_call("final_answer", json!({"answer": "b"}));
    let outcome = number([first], |b| b.configure(|c| c.output_repairs = 0)).await;
    assert_eq!(outcome.output, Some(json!(7)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_a_hook_refuses_is_none() {
    let veto = |b: AgentBuilder| {
        b.after_tool_call(|view| async move {
            let small = view.args.get("answer").and_then(|n| n.as_i64()) < Some(10);
            Ok(match small {
                true => AfterToolCall::keep()
                    .content(vec![Content::text("too small")])
                    .is_error(true)
                    .terminate(false),
                false => AfterToolCall::keep(),
            })
        })
    };
    let outcome = number([answer(json!(5)), answer(json!(50))], veto).await;
    assert_eq!(outcome.output, Some(json!(50)));
    let outcome = number(
        [answer(json!(5)), Reply::say("well"), answer(json!(50))],
        veto,
    )
    .await;
    assert_eq!((outcome.output, outcome.turns), (Some(json!(50)), 3));
    // It counts as one that goes back to the model.
    let none = |b: AgentBuilder| veto(b).configure(|c| c.output_repairs = 0);
    let outcome = number([answer(json!(5))], none).await;
    assert!(
        matches!(outcome.end, EndReason::Failed(Failure::Output(_))),
        "{:?}",
        outcome.end
    );
    assert_eq!(outcome.output, None);
}

#[tokio::test(start_paused = true)]
async fn after_more_was_said_the_later_answer_counts_and_the_earlier_where_there_is_none() {
    for (later, expected) in [
        (answer(json!(6)), 6),
        (Reply::say("6"), 6),
        (Reply::say("as I said"), 5),
    ] {
        let model = ScriptedModel::new([answer(json!(5)), later]);
        let agent = Agent::builder(model)
            .env(PausedEnv::shared())
            .build()
            .unwrap();
        agent.follow_up("one more").unwrap();
        let schema = json!({"type": "integer"});
        let prompt = agent
            .prompt("how many?")
            .output_schema(schema, OutputMode::Tool);
        let outcome = within(prompt).await.unwrap();
        assert_eq!((outcome.output, outcome.turns), (Some(json!(expected)), 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_final_answer_is_let_through_a_limit_of_calls() {
    let limit = |b: AgentBuilder| b.configure(|c| c.limits.tool_calls = Some(1));
    let outcome = number([echo(), answer(json!(5))], limit).await;
    assert_eq!(
        (outcome.end.kind(), outcome.output),
        (EndKind::Terminated, Some(json!(5)))
    );
    let outcome = number([answer(json!("x")), echo(), answer(json!(5))], limit).await;
    assert_eq!(outcome.output, Some(json!(5)));
    let outcome = number([echo(), echo(), answer(json!(5))], limit).await;
    assert_eq!((outcome.end.kind(), outcome.turns), (EndKind::Limit, 2));
}
