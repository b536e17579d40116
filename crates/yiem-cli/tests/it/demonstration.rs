//! The first command of the README: no endpoint, no network.

use serde_json::Value;

use crate::command::{call, call_with_input};

#[test]
fn the_first_command_shows_the_call_and_the_answer() {
    let done = call(["run", "What's the weather in Tokyo?"]).with_code(0);
    assert_eq!(done.out, "The weather in Tokyo is sunny, 22°C.\n");
    assert!(done.err.contains("no LLM"), "{}", done.err);
    assert!(
        done.err.contains("✓ getWeather {\"city\":\"Tokyo\""),
        "{}",
        done.err
    );
    assert!(
        done.err.contains("Weather in Tokyo: Sunny, 22°C"),
        "{}",
        done.err
    );
    assert!(
        !(done.out + &done.err).contains('\x1b'),
        "styles without a terminal"
    );
}

#[test]
fn several_questions_are_answered_at_once() {
    let done = call([
        "run",
        "weather in Oslo and Xyzzy, and what time is it in New York?",
    ])
    .with_code(0);
    for part in [
        "Oslo is sunny",
        "Xyzzy is sunny",
        "The time in New York is",
        "America/New_York",
    ] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    assert_eq!(done.err.matches('✓').count(), 3, "{}", done.err);
}

/// The texts of all results that the model was given.
fn results(question: &str) -> Vec<(String, bool)> {
    let done = call(["run", "--json", question]).with_code(0);
    let events: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    events
        .iter()
        .filter(|event| event["type"] == "messageEnd" && event["message"]["role"] == "toolResult")
        .map(|event| {
            let message = &event["message"];
            (
                message["content"][0]["text"].as_str().unwrap().to_owned(),
                message["isError"] == true,
            )
        })
        .collect()
}

#[test]
fn the_two_texts_of_get_time_reach_the_model() {
    assert_eq!(
        results("What time is it?"),
        [(
            "Missing required argument: provide at least one of 'timezone' or 'city'".to_owned(),
            true
        )]
    );
    assert_eq!(
        results("What time is it in the timezone Nowhere?"),
        [(
            "Invalid timezone format: 'Nowhere'. Use IANA format, e.g. 'America/New_York'"
                .to_owned(),
            true
        )]
    );
}

#[test]
fn a_missing_argument_and_an_unknown_tool_are_results_and_the_run_goes_on() {
    assert_eq!(
        results("How is the weather?"),
        [("Missing required arguments: city".to_owned(), true)]
    );
    let [(unknown, true)] = &results("call no_such_tool {}")[..] else {
        panic!("no error result");
    };
    assert!(unknown.contains("no_such_tool"), "{unknown}");
    let [(unreadable, true)] = &results("call getWeather {city: Tokyo}")[..] else {
        panic!("no error result");
    };
    assert!(unreadable.contains("{city: Tokyo}"), "{unreadable}");
}

#[test]
fn servers_tools_are_found_only_when_they_are_asked_for() {
    let done = call(["run", "--discovery", "on-demand", "weather in Oslo"]).with_code(0);
    assert_eq!(done.out, "The weather in Oslo is sunny, 22°C.\n");
    assert!(done.err.contains("✓ listTools"), "{}", done.err);
}

#[test]
fn what_it_can_do_is_said_when_it_does_not_understand() {
    let done = call(["run", "Write me a poem."]).with_code(0);
    assert!(done.out.contains("not a language model"), "{}", done.out);
}

#[test]
fn the_prompt_may_come_on_standard_input() {
    let done = call_with_input(["run", "-q", "-"], "weather in Rome\n").with_code(0);
    assert_eq!(done.out, "The weather in Rome is sunny, 22°C.\n");
    let done = call_with_input(["run", "-q", "weather", "in", "-"], "Rome\n").with_code(0);
    assert_eq!(done.out, "The weather in Rome is sunny, 22°C.\n");
    call_with_input(["run", "-"], " \n").with_code(2);
}
