//! `yiem serve`: the gateway, spoken to by the command itself.

use crate::command::{Running, call, yiem};

/// Starts a gateway on HTTP; gives it and its address.
fn serve_http(more: &[&str]) -> (Running, String) {
    let args = ["serve", "--http", "127.0.0.1:0"];
    let running = Running::start(yiem(args.iter().chain(more)));
    let line = running.line_with("serving at");
    let address = line.rsplit(' ').next().unwrap().to_owned();
    (running, address)
}

#[test]
fn tools_are_served_over_http_until_a_signal() {
    for signal in ["TERM", "INT"] {
        let (running, address) = serve_http(&[]);
        let spec = format!("far={address}");
        let done = call(["call", "getWeather", r#"{"city":"Rome"}"#, "--mcp", &spec]).with_code(0);
        assert_eq!(done.out, "Weather in Rome: Sunny, 22°C\n");
        running.signal(signal);
        running.wait().with_code(0);
    }
}

#[test]
fn a_server_is_relayed_under_its_own_names() {
    let itself = env!("CARGO_BIN_EXE_yiem");
    let (_running, address) = serve_http(&["--", itself, "serve", "--stdio"]);
    let spec = format!("far={address}");
    let done = call(["call", "getTime", r#"{"city":"Rome"}"#, "--mcp", &spec]).with_code(0);
    assert!(done.out.starts_with("Time in Rome: "), "{}", done.out);
    let done = call(["call", "getTime", "{}", "--mcp", &spec]).with_code(1);
    assert!(
        done.only_line().contains("provide at least one of"),
        "{done:?}"
    );
}

#[test]
fn several_servers_are_served_as_one() {
    let itself = env!("CARGO_BIN_EXE_yiem");
    let one = format!("one=stdio:{itself} serve --stdio");
    let two = format!("two=stdio:{itself} serve --stdio");
    let (_running, address) = serve_http(&["--mcp", &one, "--mcp", &two]);
    let spec = format!("far={address}");
    let done = call(["tools", "--mcp", &spec]).with_code(0);
    assert!(done.out.contains("two__getWeather"), "{}", done.out);
    let done = call([
        "call",
        "two__getWeather",
        r#"{"city":"Rome"}"#,
        "--mcp",
        &spec,
    ])
    .with_code(0);
    assert_eq!(done.out, "Weather in Rome: Sunny, 22°C\n");
}

#[test]
fn a_server_that_cannot_be_reached_is_told_at_once() {
    let done = call(["serve", "--stdio", "--", "/nowhere/at/all"]).with_code(1);
    assert!(done.only_line().contains("/nowhere/at/all"), "{done:?}");
}

#[test]
fn wrong_use_is_told() {
    for (args, told) in [
        (&["serve"][..], "--stdio"),
        (
            &[
                "serve",
                "--stdio",
                "--mcp",
                "a=http://127.0.0.1:9/mcp",
                "--",
                "x",
            ],
            "not both",
        ),
        (&["serve", "--http", "nonsense"], "nonsense"),
        (&["serve", "--nats", "nats://127.0.0.1:9"], "--subject"),
    ] {
        let done = call(args).with_code(2);
        assert!(done.err.contains(told), "{done:?}");
    }
}
