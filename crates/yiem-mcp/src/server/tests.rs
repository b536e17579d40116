use super::spec::{split_words, without_secrets};
use super::*;

#[test]
fn specs_are_read_with_and_without_a_name() {
    for (text, key) in [
        ("files=stdio:mcp-server-filesystem /tmp", "files"),
        (
            "stdio:npx -y @modelcontextprotocol/server-everything@1.2 stdio",
            "server-everything",
        ),
        ("stdio:/usr/bin/my-server --a=b", "my-server"),
        (
            "stdio:uvx mcp-server-time --local-timezone=UTC",
            "mcp-server-time",
        ),
        ("my-server=stdio:node server.js", "my-server"),
    ] {
        assert_eq!(&*McpServer::from_spec(text).unwrap().key(), key, "{text}");
    }
}

#[test]
fn specs_that_make_no_sense_say_what_would() {
    for text in [
        "",
        "x",
        "x=ftp://a",
        "stdio:",
        "a=stdio:cmd 'open",
        "name=",
        "=stdio:x",
    ] {
        let error = McpServer::from_spec(text).unwrap_err().to_string();
        assert!(
            error.contains("stdio:") || error.contains("quote") || error.contains("`stdio:`"),
            "{text}: {error}"
        );
    }
}

#[test]
fn words_are_parted_as_a_shell_does() {
    let words = split_words(r#"a 'b c' "d \"e\" \n" f\ g "" h'i'j  "#).unwrap();
    assert_eq!(words, ["a", "b c", r#"d "e" \n"#, "f g", "", "hij"]);
}

#[test]
fn addresses_are_shown_without_secrets() {
    assert_eq!(without_secrets("nats://user:pw@h:1/s"), "nats://***@h:1/s");
    assert_eq!(without_secrets("https://h/p?a=@b"), "https://h/p?a=@b");
}

#[test]
fn a_map_of_other_clients_is_read_in_its_order_and_bad_entries_cost_only_themselves() {
    let config = McpConfig::from_json(
        r#"{"mcpServers": {
            "zeta": {"command": "a", "args": ["x", 5], "env": {"K": "v", "N": 1}, "cwd": "/"},
            "off": {"command": "a", "disabled": true},
            "bad": {"args": []},
            "worse": 7,
            "unset": {"command": "${YIEM_TEST_SURELY_UNSET}"},
            "alpha": {"type": "stdio", "command": "b", "required": true}
        }}"#,
    )
    .unwrap();
    let keys: Vec<_> = config
        .servers
        .iter()
        .map(|server| server.key().to_string())
        .collect();
    assert_eq!(keys, ["zeta", "alpha"]);
    assert!(config.servers[1].is_required());
    let problems: Vec<_> = config
        .problems
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(problems, ["bad", "worse", "unset"]);
    assert!(
        config.problems[2]
            .1
            .to_string()
            .contains("YIEM_TEST_SURELY_UNSET")
    );
}

#[test]
fn the_maps_of_other_clients_have_other_names() {
    for text in [
        r#"{"servers": {"a": {"command": "x"}}}"#,
        r#"{"a": {"command": "x"}}"#,
        "\u{feff}{\"inputs\": [], \"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
    ] {
        assert_eq!(
            McpConfig::from_json(text).unwrap().servers.len(),
            1,
            "{text}"
        );
    }
    for text in ["", "[]", "{}", r#"{"mcpServers": []}"#, r#"{"other": 1}"#] {
        assert!(McpConfig::from_json(text).is_err(), "{text}");
    }
}

#[test]
fn variables_are_put_in() {
    let expand = |text: &str| {
        config::expand_with(text, &|name| (name == "A").then(|| "1".to_owned()))
            .map_err(|error| error.to_string())
    };
    assert_eq!(expand("x${A}y${env:A}z").unwrap(), "x1y1z");
    assert_eq!(expand("${B:-default}").unwrap(), "default");
    assert_eq!(expand("$A ${a-b} ${").unwrap(), "$A ${a-b} ${");
    assert!(expand("${B}").unwrap_err().contains("no variable B"));
}

#[test]
fn settings_of_another_kind_of_server_are_told_when_it_is_used() {
    let server = McpServer::closure(|_, _| async { serde_json::Value::Null }).env("A", "b");
    let error = crate::McpClient::new(server, yiem_core::SystemEnv::shared())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`env` is for servers that are processes"),
        "{error}"
    );
}

#[test]
fn an_entry_without_a_way_to_its_server_names_the_keys_that_it_has() {
    let problem = |entry: &str| {
        let text = format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
        let config = McpConfig::from_json(&text).unwrap();
        config.problems[0].1.to_string()
    };
    let told = problem(r#"{"comand": "x", "args": []}"#);
    assert!(
        told.ends_with("none of `command`, `url` and `nats`, but `comand`, `args`"),
        "{told}"
    );
    let told = problem("{}");
    assert!(
        told.contains("is empty") && told.contains("`command`"),
        "{told}"
    );
}

#[cfg(feature = "http")]
#[test]
fn an_address_that_is_none_says_how_one_is_written() {
    for text in [
        "127.0.0.1:1/mcp",
        "localhost:1/mcp",
        "http://",
        "",
        "nats://h/s",
    ] {
        let server = McpServer::http(text);
        let error = crate::McpClient::new(server, yiem_core::SystemEnv::shared()).unwrap_err();
        let told = error.to_string();
        assert!(
            told.contains("write http://HOST:PORT/PATH"),
            "{text}: {told}"
        );
    }
}
