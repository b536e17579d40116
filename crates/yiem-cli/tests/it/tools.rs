//! `yiem tools` and `yiem call`.

use std::fs;

use serde_json::{Value, json};

use crate::command::{call, call_with_input};

fn yiem_itself(name: &str) -> String {
    format!("{name}=stdio:{} serve --stdio", env!("CARGO_BIN_EXE_yiem"))
}

#[test]
fn tools_are_a_table_or_a_list() {
    let table = call(["tools", "--mcp", &yiem_itself("one")]).with_code(0);
    let lines: Vec<&str> = table.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", table.out);
    assert!(
        lines[1].starts_with("getTime ") && lines[1].contains("one"),
        "{}",
        table.out
    );
    let list = call(["tools", "--json", "--mcp", &yiem_itself("one")]).with_code(0);
    let list: Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!(list[1]["name"], "getWeather");
    assert_eq!(list[1]["label"], "Weather Lookup");
    assert_eq!(list[1]["source"], "one");
    assert_eq!(list[1]["inputSchema"]["required"], json!(["city"]));
}

#[test]
fn tools_of_one_name_are_told_apart_by_their_server() {
    let done = call([
        "tools",
        "--mcp",
        &yiem_itself("one"),
        "--mcp",
        &yiem_itself("two"),
    ])
    .with_code(0);
    for name in ["getTime ", "two__getTime ", "two__getWeather "] {
        assert!(
            done.out.lines().any(|line| line.starts_with(name)),
            "{name}: {}",
            done.out
        );
    }
}

#[test]
fn a_server_that_fails_is_named_while_the_others_work() {
    let done = call([
        "tools",
        "--mcp",
        "broken=stdio:/nowhere/at/all",
        "--mcp",
        &yiem_itself("one"),
    ])
    .with_code(0);
    assert!(done.out.contains("getWeather"), "{}", done.out);
    assert!(done.only_line().contains("broken"), "{done:?}");
    let done = call(["tools", "--mcp", "broken=stdio:/nowhere/at/all"]).with_code(1);
    assert!(done.only_line().contains("broken"), "{done:?}");
    let done = call([
        "tools",
        "--mcp",
        "broken=stdio:sh -c 'echo last words >&2; exit 3'",
    ])
    .with_code(1);
    assert!(done.only_line().contains("broken"), "{done:?}");
}

#[test]
fn servers_come_from_a_file_of_other_clients() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    let config = json!({"mcpServers": {
        "one": {"command": env!("CARGO_BIN_EXE_yiem"), "args": ["serve", "--stdio"]},
        "odd": {"what": "is this"},
    }});
    fs::write(&file, config.to_string()).unwrap();
    let done = call(["tools", "--mcp-config", file.to_str().unwrap()]).with_code(0);
    assert!(done.out.contains("getWeather"), "{}", done.out);
    assert!(done.only_line().contains("odd"), "{done:?}");
}

#[test]
fn a_file_without_a_server_that_can_be_used_is_told_and_brings_no_demonstration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    let path = file.to_str().unwrap();
    for (config, told) in [
        (json!({"mcpServers": {"odd": {"comand": "x"}}}), "`comand`"),
        (json!({"mcpServers": {}}), "no server that is switched on"),
        (
            json!({"mcpServers": {"a": {"command": "x", "disabled": true}}}),
            "no server that is switched on",
        ),
    ] {
        fs::write(&file, config.to_string()).unwrap();
        let done = call(["tools", "--mcp-config", path]).with_code(1);
        assert_eq!(done.out, "no tools\n");
        assert!(done.only_line().contains(told), "{done:?}");
        let done = call(["call", "getWeather", "--mcp-config", path]).with_code(1);
        assert!(done.err.contains("there is no tool getWeather"), "{done:?}");
        let done = call(["serve", "--stdio", "--mcp-config", path]).with_code(1);
        assert_eq!(done.err.matches(told).count(), 1, "{done:?}");
        assert!(done.err.contains("nothing can be offered"), "{done:?}");
    }
}

#[test]
fn the_help_ends_with_commands_that_can_be_typed() {
    let help = call(["--help"]).with_code(0).out;
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    assert!(examples.lines().count() >= 5, "{examples}");
    for example in examples.lines() {
        assert!(example.starts_with("  yiem "), "{example}");
    }
    let done = call(["run", "What's the weather in Tokyo?"]).with_code(0);
    assert!(examples.contains("run \"What's the weather in Tokyo?\""));
    assert_eq!(done.out, "The weather in Tokyo is sunny, 22°C.\n");
}

#[test]
fn a_call_prints_its_result() {
    for place in [vec![], vec!["--mcp".to_owned(), yiem_itself("one")]] {
        let args = |more: &[&str]| {
            let words = ["call"].iter().chain(more).map(|word| (*word).to_owned());
            words.chain(place.clone()).collect::<Vec<_>>()
        };
        let done = call(args(&["getWeather", r#"{"city":"Tokyo"}"#])).with_code(0);
        assert_eq!(done.out, "Weather in Tokyo: Sunny, 22°C\n");
        assert_eq!(done.err, "");
        let done = call(args(&["getWeather", r#"{"city":"Tokyo"}"#, "--json"])).with_code(0);
        let result: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(
            result["content"][0]["text"],
            "Weather in Tokyo: Sunny, 22°C"
        );
        assert_eq!(result["isError"], false);
        let done = call(args(&["getWeather"])).with_code(1);
        assert!(
            done.only_line()
                .contains("Missing required arguments: city"),
            "{done:?}"
        );
        let done = call(args(&["getWeather", r#"{"city":"Rome","units":"kelvin"}"#])).with_code(1);
        assert!(done.only_line().contains("kelvin"), "{done:?}");
        let done = call(args(&["getTime", "{}"])).with_code(1);
        assert!(
            done.only_line()
                .contains("provide at least one of 'timezone' or 'city'"),
            "{done:?}"
        );
        let done = call(args(&["getWether", "{}"])).with_code(1);
        assert!(done.only_line().contains("getWeather"), "{done:?}");
        let done = call(args(&["getWeather", "city=Tokyo"])).with_code(2);
        assert!(done.only_line().contains("city=Tokyo"), "{done:?}");
    }
    let done = call_with_input(["call", "getWeather", "-"], r#"{"city":"Oslo"}"#).with_code(0);
    assert_eq!(done.out, "Weather in Oslo: Sunny, 22°C\n");
}

#[test]
fn tools_come_from_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        export const tool = {
            name: "shout", label: "Shout", description: "Says it louder.",
            inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
        };
        export async function execute(args, host) { return args.text.toUpperCase() + "!"; }
    "#;
    fs::write(folder.path().join("shout.js"), script).unwrap();
    fs::write(folder.path().join("bad.js"), "export const tool = {").unwrap();
    let folder = folder.path().to_str().unwrap();
    let done = call(["tools", "--tools", folder]).with_code(0);
    assert!(done.out.contains("shout"), "{}", done.out);
    assert!(done.err.contains("bad.js"), "{}", done.err);
    let done = call(["call", "shout", r#"{"text":"hello"}"#, "--tools", folder]).with_code(0);
    assert_eq!(done.out, "HELLO!\n");
    assert!(!call(["tools", "--tools", folder]).out.contains("writeTool"));
    assert!(
        call(["tools", "--tools", folder, "--allow-write-tools"])
            .out
            .contains("writeTool")
    );
}

#[test]
fn oauth_as_a_client_needs_who_the_client_is() {
    let spec = "far=http://127.0.0.1:9/mcp";
    for (more, told) in [
        (&["--oauth", "client"][..], "--oauth-client-id"),
        (
            &["--oauth", "client", "--oauth-client-id", "x"],
            "--oauth-secret-env VARIABLE or --oauth-key-file FILE",
        ),
        (
            &[
                "--oauth",
                "client",
                "--oauth-client-id",
                "x",
                "--oauth-key-file",
                "no/such/file.pem",
            ],
            "--oauth-key-file no/such/file.pem: ",
        ),
        (
            &[
                "--oauth",
                "client",
                "--oauth-client-id",
                "x",
                "--oauth-key-file",
                env!("CARGO_MANIFEST_PATH"),
            ],
            "no private key in PEM",
        ),
        (
            &[
                "--oauth",
                "client",
                "--oauth-client-id",
                "x",
                "--oauth-key-id",
                "k",
            ],
            "--oauth-key-file",
        ),
        (
            &[
                "--oauth",
                "client",
                "--oauth-client-id",
                "x",
                "--oauth-secret-env",
                "YIEM_NO_SUCH_VARIABLE",
            ],
            "YIEM_NO_SUCH_VARIABLE",
        ),
        (&["--oauth", "magic"], "magic"),
        (&["--oauth-client-id", "x"], "--oauth"),
    ] {
        let done = call(["tools", "--mcp", spec].iter().chain(more)).with_code(2);
        assert!(done.err.contains(told), "{done:?}");
    }
}

#[test]
fn a_call_that_is_refused_is_an_error_object_as_well() {
    let refused = |words: &[&str], code: i32| {
        let done = call(["call", "--json"].iter().chain(words)).with_code(code);
        let object: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(object["isError"], true, "{object}");
        let text = object["content"][0]["text"].as_str().unwrap().to_owned();
        let line = done.only_line().to_owned();
        assert!(line.ends_with(&text), "{line}: {text}");
        assert_eq!(object["error"]["message"], text.as_str());
        object["error"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(&["getWeather"], 1), "invalidArguments");
    assert_eq!(refused(&["getWeather", "{"], 2), "invalidArguments");
    assert_eq!(refused(&["getWether", "{}"], 1), "unknownTool");
    // What a tool itself says is its result, with no refusal beside.
    let args = r#"{"timezone":"Nowhere/Land"}"#;
    let done = call(["call", "--json", "getTime", args]).with_code(1);
    let object: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(object["isError"], true);
    assert!(object.get("error").is_none(), "{object}");
    assert!(done.only_line().contains("getTime"), "{done:?}");
}

#[test]
fn who_is_waited_for_is_told_early() {
    // It answers nothing, and ends when it is told to: well after the wait was told of.
    let hung = "hung=stdio:sh -c 'sleep 3; exit 7'";
    for command in [vec!["tools"], vec!["call", "getTime", "{}"]] {
        let words = [command, vec!["--mcp", hung]].concat();
        let done = call(words).with_code(1);
        let told = done.err.find("waiting for hung").unwrap_or(usize::MAX);
        let failed = done.err.find("exit status 7").unwrap();
        assert!(told < failed, "{done:?}");
    }
    let done = call(["tools", "--mcp", &yiem_itself("quick")]).with_code(0);
    assert_eq!(done.err, "");
}
