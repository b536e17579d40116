use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn config() -> ShowConfig {
    ShowConfig {
        streams: true,
        reasoning: true,
        out: Style::PLAIN,
        err: Style::PLAIN,
        progress: Progress::Lines,
        width: 100,
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What stands on both streams after that.
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better where it is called"
)]
fn check(
    config: ShowConfig,
    run: impl FnOnce(&mut Show<&mut Vec<u8>, &mut Vec<u8>>),
    shown: Expect,
) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    run(&mut Show::new(&mut out, &mut err, config));
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec())
            .unwrap()
            .replace('\x1b', "ESC")
            .replace('\r', "CR")
    };
    shown.assert_eq(&format!("{}--\n{}", text(&out), text(&err)));
}

fn weather(show: &mut Show<&mut Vec<u8>, &mut Vec<u8>>) {
    show.model_asked(ms(0));
    show.message_ended();
    show.call_started("call_1", "getWeather", &json!({"city": "Tokyo"}), ms(10));
    show.call_updated("call_1", &json!({"status": "Fetching data..."}), ms(11));
    show.call_ended("call_1", "Weather in Tokyo: Sunny, 22°C", false, ms(22));
    show.model_asked(ms(23));
    show.text("The weather in Tokyo ");
    show.text("is **sunny**, 22°C.");
    show.message_ended();
    show.finished("The weather in Tokyo is **sunny**, 22°C.");
}

#[test]
fn a_run_is_told_in_lines() {
    check(
        config(),
        weather,
        expect![[r#"
        The weather in Tokyo is **sunny**, 22°C.
        --
        ✓ getWeather {"city":"Tokyo"} → Weather in Tokyo: Sunny, 22°C (12 ms)
    "#]],
    );
}

#[test]
fn a_pipe_gets_the_answer_alone_and_as_it_is() {
    let config = ShowConfig {
        streams: false,
        progress: Progress::Quiet,
        ..config()
    };
    check(
        config,
        weather,
        expect![[r#"
        The weather in Tokyo is **sunny**, 22°C.
        --
    "#]],
    );
}

#[test]
fn a_terminal_gets_styles_and_a_line_that_moves() {
    let config = ShowConfig {
        out: Style::FULL,
        err: Style::FULL,
        progress: Progress::Live,
        ..config()
    };
    check(
        config,
        weather,
        expect![[r#"
        The weather in Tokyo is ESC[1msunnyESC[0m, 22°C.
        --
        CRESC[KESC[36m⠋ESC[0m ESC[2mthinking…ESC[0mCRESC[KESC[36m⠋ESC[0m ESC[2mgetWeatherESC[0mCRESC[KESC[36m⠋ESC[0m ESC[2mgetWeather: Fetching data...ESC[0mCRESC[KESC[32m✓ESC[0m ESC[1mgetWeatherESC[0m {"city":"Tokyo"}ESC[2m → ESC[0mWeather in Tokyo: Sunny, 22°C ESC[2m(12 ms)ESC[0m
        CRESC[KESC[36m⠋ESC[0m ESC[2mthinking…ESC[0mCRESC[K"#]],
    );
}

#[test]
fn failures_and_refusals_are_marked() {
    check(
        config(),
        |show| {
            show.call_started("a", "fail", &json!({}), ms(0));
            show.call_ended("a", "no\nluck \x1b[31m", true, ms(61_500));
            show.call_rejected("nothing", "there is no tool nothing");
            show.call_ended("never started", "", false, ms(0));
        },
        expect![[r#"
            --
            ✗ fail → no luck [31m (1 min 01 s)
            ✗ nothing → there is no tool nothing (not run)
        "#]],
    );
}

#[test]
fn long_arguments_and_results_keep_to_the_line() {
    check(
        ShowConfig {
            width: 60,
            ..config()
        },
        |show| {
            show.call_started("a", "write", &json!({"text": "x".repeat(500)}), ms(0));
            show.call_ended("a", &"y".repeat(500), false, ms(5));
        },
        expect![[r#"
            --
            ✓ write {"text":"xxxxxxxxxx… → yyyyyyyyyyyyyyyyyyyy… (5 ms)
        "#]],
    );
}

#[test]
fn an_answer_that_was_not_streamed_is_shown_at_the_end() {
    check(
        config(),
        |show| {
            show.text("Let me see.");
            show.message_ended();
            show.model_asked(ms(1));
            show.finished("what the tool said");
        },
        expect![[r#"
            Let me see.
            what the tool said
            --
        "#]],
    );
}

#[test]
fn progress_is_read_from_whatever_a_tool_says() {
    for (partial, status) in [
        (json!({"status": "Step 1"}), "Step 1"),
        (
            json!({"progress": 1, "total": 4, "message": "copying"}),
            "copying (25 %)",
        ),
        (json!({"progress": 7}), "7"),
        (
            json!({"progress": 1, "message": "{\"status\":\"Fetching\"}"}),
            "Fetching",
        ),
        (json!("text"), "text"),
        (json!(null), ""),
        (json!({"a": [1]}), r#"{"a":[1]}"#),
    ] {
        assert_eq!(status_of(&partial), status, "{partial}");
    }
}

#[test]
fn durations_are_read_by_people() {
    assert_eq!(duration(ms(0)), "0 ms");
    assert_eq!(duration(ms(999)), "999 ms");
    assert_eq!(duration(ms(1000)), "1.0 s");
    assert_eq!(duration(ms(59_999)), "59.9 s");
    assert_eq!(duration(ms(125_000)), "2 min 05 s");
}

#[test]
fn a_reply_that_begins_anew_is_told_where_it_was_seen() {
    let anew = |show: &mut Show<&mut Vec<u8>, &mut Vec<u8>>| {
        show.text("An alternative");
        show.reply_begins_anew();
        show.text("The reply.");
        show.message_ended();
        show.finished("The reply.");
    };
    check(
        config(),
        anew,
        expect![[r#"
        An alternative
        The reply.
        --
        the reply begins anew: what stands above does not count
    "#]],
    );
    let pipe = ShowConfig {
        streams: false,
        ..config()
    };
    check(
        pipe,
        anew,
        expect![[r#"
        The reply.
        --
    "#]],
    );
}
