use super::*;

fn shown(wishes: &[Wish]) -> String {
    let one = |wish: &Wish| match wish {
        Wish::Call { name, arguments } => match arguments.object() {
            Some(args) => format!("{name}{}", Value::Object(args.clone())),
            None => format!("{name}(unreadable)"),
        },
        other => format!("{other:?}"),
    };
    wishes.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn heard(text: &str) -> String {
    shown(&Talk::default().hear(text, &["echo", "getTime", "getWeather"]))
}

#[test]
fn questions_become_calls() {
    for (question, calls) in [
        (
            "What's the weather in Tokyo?",
            r#"getWeather{"city":"Tokyo"}"#,
        ),
        (
            "what is the weather like in new york right now",
            r#"getWeather{"city":"New York"}"#,
        ),
        ("Weather Tokyo", r#"getWeather{"city":"Tokyo"}"#),
        ("tokyo weather", r#"getWeather{"city":"Tokyo"}"#),
        (
            "Is it raining in St. Petersburg today?",
            r#"getWeather{"city":"St. Petersburg"}"#,
        ),
        (
            "How hot is it in Paris, France?",
            r#"getWeather{"city":"Paris"}"#,
        ),
        (
            "weather in Springfield, IL",
            r#"getWeather{"city":"Springfield"}"#,
        ),
        (
            "Weather in Xyzzy Falls please",
            r#"getWeather{"city":"Xyzzy Falls"}"#,
        ),
        (
            "what's the weather in xyzzy?",
            r#"getWeather{"city":"Xyzzy"}"#,
        ),
        (
            "Do I need an umbrella in Bergen?",
            r#"getWeather{"city":"Bergen"}"#,
        ),
        (
            "What's the forecast for São Paulo?",
            r#"getWeather{"city":"São Paulo"}"#,
        ),
        ("weather in 東京?", r#"getWeather{"city":"東京"}"#),
        (
            "What time is it in Bangkok?",
            r#"getTime{"city":"Bangkok"}"#,
        ),
        ("time in nyc", r#"getTime{"city":"New York"}"#),
        (
            "What time is it in Asia/Tokyo?",
            r#"getTime{"timezone":"Asia/Tokyo"}"#,
        ),
        (
            "What's the time in UTC?",
            r#"getTime{"timezone":"Etc/UTC"}"#,
        ),
        (
            "What time is it in PST",
            r#"getTime{"timezone":"America/Los_Angeles"}"#,
        ),
        (
            "What time is it in the timezone Foo?",
            r#"getTime{"timezone":"Foo"}"#,
        ),
        ("time in time zone mars", r#"getTime{"timezone":"mars"}"#),
        ("What time is it in Nice?", r#"getTime{"city":"Nice"}"#),
        (
            "What is the local time in The Hague?",
            r#"getTime{"city":"The Hague"}"#,
        ),
        (
            "Current time for the Netherlands",
            r#"getTime{"city":"Netherlands"}"#,
        ),
        (
            "weather in Rome in fahrenheit",
            r#"getWeather{"city":"Rome","units":"fahrenheit"}"#,
        ),
        (
            "weather in Rome in kelvin",
            r#"getWeather{"city":"Rome","units":"kelvin"}"#,
        ),
    ] {
        assert_eq!(heard(question), calls, "{question}");
    }
}

#[test]
fn a_question_may_hold_several() {
    for (question, calls) in [
        (
            "Weather in Tokyo and Paris?",
            r#"getWeather{"city":"Tokyo"} getWeather{"city":"Paris"}"#,
        ),
        (
            "What's the weather in Tokyo, Paris, and san francisco?",
            r#"getWeather{"city":"Tokyo"} getWeather{"city":"Paris"} getWeather{"city":"San Francisco"}"#,
        ),
        (
            "What's the weather in Tokyo and what time is it in Paris?",
            r#"getWeather{"city":"Tokyo"} getTime{"city":"Paris"}"#,
        ),
        (
            "Weather and time in Oslo",
            r#"getWeather{"city":"Oslo"} getTime{"city":"Oslo"}"#,
        ),
        (
            "Tokyo weather and Paris time",
            r#"getWeather{"city":"Tokyo"} getTime{"city":"Paris"}"#,
        ),
        (
            "What's the weather in Tokyo, and the time?",
            r#"getWeather{"city":"Tokyo"} getTime{"city":"Tokyo"}"#,
        ),
        (
            "How is the weather in Rome? And what time is it there?",
            r#"getWeather{"city":"Rome"} getTime{"city":"Rome"}"#,
        ),
        (
            "weather in Tokyo and Tokyo",
            r#"getWeather{"city":"Tokyo"}"#,
        ),
        (
            "Compare the weather in Foo and Bar.",
            r#"getWeather{"city":"Foo"} getWeather{"city":"Bar"}"#,
        ),
    ] {
        assert_eq!(heard(question), calls, "{question}");
    }
}

#[test]
fn what_is_missing_is_left_to_the_tool_to_tell() {
    assert_eq!(heard("What's the weather?"), "getWeather{}");
    assert_eq!(heard("What time is it?"), "getTime{}");
    assert_eq!(heard("what time is it now please"), "getTime{}");
}

#[test]
fn a_follow_up_takes_what_it_leaves_out_from_before() {
    let mut talk = Talk::default();
    let mut say = |text: &str| shown(&talk.hear(text, &[]));
    assert_eq!(
        say("What's the weather in Tokyo?"),
        r#"getWeather{"city":"Tokyo"}"#
    );
    assert_eq!(say("And in Osaka?"), r#"getWeather{"city":"Osaka"}"#);
    assert_eq!(
        say("What about Xyzzy and Rome?"),
        r#"getWeather{"city":"Xyzzy"} getWeather{"city":"Rome"}"#
    );
    assert_eq!(
        say("and what time is it there?"),
        r#"getTime{"city":"Xyzzy"} getTime{"city":"Rome"}"#
    );
    assert_eq!(say("Paris?"), r#"getTime{"city":"Paris"}"#);
    assert_eq!(say("and there again?"), r#"getTime{"city":"Paris"}"#);
    assert_eq!(say("Thanks!"), "Thanks");
}

#[test]
fn a_call_can_be_asked_for_as_it_is() {
    for (question, calls) in [
        (r#"call echo {"message":"hi"}"#, r#"echo{"message":"hi"}"#),
        (
            r#"Use the tool echo with {"message": "hi"}"#,
            r#"echo{"message":"hi"}"#,
        ),
        ("call getTime", "getTime{}"),
        (r#"call no_such {"a":1}"#, r#"no_such{"a":1}"#),
        ("call getWeather {city: Tokyo}", "getWeather(unreadable)"),
        ("call getWeather [1]", "getWeather(unreadable)"),
    ] {
        assert_eq!(heard(question), calls, "{question}");
    }
}

#[test]
fn what_is_not_understood_is_nothing() {
    for text in [
        "Write me a poem.",
        "",
        "   ",
        "42",
        "?!?",
        "I like cheese",
        "call me maybe",
        "run away",
        "\u{1f600}",
    ] {
        assert_eq!(heard(text), "", "{text}");
    }
    assert_eq!(heard("What tools do you have?"), "Tools");
    assert_eq!(heard("Hello there"), "Greeting");
}
