use serde_json::json;
use std::time::Duration;
use yiem_core::SystemEnv;
use yiem_mcp::{CallOptions, DialectChoice, McpClient, McpErrorKind, McpServer, Reached};

/// A server of a few lines of shell: legacy, with one tool that answers with its own process id.
const SERVER: &str = r#"
echo "hello on stderr" >&2
echo "Server is starting, a line that is no message"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"pid","inputSchema":{"type":"object"}}]}}' ;;
    *'"die"'*) echo "I am dying" >&2; exit 3 ;;
    *'"mute"'*) ;;
    *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$$'"}]}}' ;;
    *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"Method not found"}}' ;;
  esac
done
"#;

fn client(script: &str) -> McpClient {
    let server = McpServer::stdio("sh", ["-c", script])
        .name("shell")
        .call_timeout(Duration::from_secs(100));
    McpClient::new(server, SystemEnv::shared()).unwrap()
}

async fn text(client: &McpClient, tool: &str) -> Result<String, yiem_mcp::McpError> {
    let outcome = client.call(tool, json!({}), CallOptions::default()).await?;
    Ok(outcome.content[0].as_text().unwrap().to_owned())
}

#[tokio::test]
async fn a_process_is_listed_and_called() {
    let client = client(SERVER);
    assert_eq!(client.tools().await.unwrap().tools[0].name, "pid");
    assert_eq!(client.dialect().unwrap().to_string(), "2025-06-18");
    assert!(text(&client, "pid").await.unwrap().parse::<u32>().is_ok());
    client.close().await;
}

#[tokio::test]
async fn a_process_that_dies_fails_its_call_with_status_and_last_words_and_is_started_again() {
    let client = client(SERVER);
    let first = text(&client, "pid").await.unwrap();
    let error = text(&client, "die").await.unwrap_err();
    assert!(matches!(error.kind(), McpErrorKind::Lost(_)), "{error:?}");
    assert_eq!(error.reached(), Reached::MaybeSent);
    let told = error.to_string();
    assert!(
        told.contains("`shell`") && told.contains("exit status 3") && told.contains("I am dying"),
        "{told}"
    );
    assert_ne!(text(&client, "pid").await.unwrap(), first);
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named_with_the_path() {
    let client = McpClient::new(
        McpServer::stdio("no-such-command-at-all", ["x"]),
        SystemEnv::shared(),
    )
    .unwrap();
    let error = client.tools().await.unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("`no-such-command-at-all`") && told.contains("PATH is /"),
        "{told}"
    );
    // A model has no use for the list of folders.
    let brief = error.in_brief();
    assert!(
        brief.contains("`no-such-command-at-all`") && !brief.contains("PATH"),
        "{brief}"
    );
    let source = yiem_mcp::McpToolSource::of_client(client);
    let loading = yiem_core::CancelToken::new();
    let failed = yiem_core::ToolSource::load(&source, &loading).await;
    let failed = failed.unwrap_err();
    assert_eq!(failed.message, brief);
    let cause = failed.cause.unwrap().to_string();
    assert!(cause.contains("PATH is /"), "{cause}");
}

#[tokio::test]
async fn a_command_with_a_path_and_a_folder_that_is_not_there_are_named_alone() {
    let error = |server: McpServer| async {
        let client = McpClient::new(server, SystemEnv::shared()).unwrap();
        client.tools().await.unwrap_err().to_string()
    };
    let told = error(McpServer::stdio("/no/such/command", ["x"])).await;
    assert!(
        told.contains("`/no/such/command`: no such command") && !told.contains("PATH"),
        "{told}"
    );
    // The system's word for it is the same as for a command that is not there.
    let told = error(McpServer::stdio("sh", ["-c", SERVER]).cwd("/no/such/folder")).await;
    assert!(
        told.contains("/no/such/folder does not exist") && !told.contains("no such command"),
        "{told}"
    );
}

#[tokio::test]
async fn a_command_that_only_sends_back_what_it_is_sent_is_told_as_such() {
    for (server, what) in [
        (McpServer::stdio("cat", [""; 0]), "`server/discover`"),
        (
            McpServer::stdio("sh", ["-c", "echo hello; exec cat"]),
            "`server/discover`",
        ),
        (
            McpServer::stdio("cat", [""; 0]).dialect(DialectChoice::Legacy),
            "`initialize`",
        ),
        (
            McpServer::stdio("cat", [""; 0]).dialect(DialectChoice::Bare),
            "`tools/list`",
        ),
    ] {
        let client = McpClient::new(server.name("echo"), SystemEnv::shared()).unwrap();
        let listed = tokio::time::timeout(Duration::from_secs(60), client.tools());
        let error = listed.await.expect("it is known at once").unwrap_err();
        assert!(
            matches!(error.kind(), McpErrorKind::Protocol(_)),
            "{error:?}"
        );
        let told = error.to_string();
        assert!(
            told.contains(&format!("sends back our own {what} request"))
                && !told.contains("refused"),
            "{told}"
        );
    }
    // Requests of a server's own have the same numbers as ours.
    let asks = SERVER.replace(
        r#"*'"die"'*)"#,
        r#"*'"ask"'*) echo '{"jsonrpc":"2.0","id":'$id',"method":"own/question"}'; read -r answer; echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"asked"}]}}' ;;
    *'"die"'*)"#,
    );
    assert_eq!(text(&client(&asks), "ask").await.unwrap(), "asked");
}

#[tokio::test]
async fn dropping_the_client_leaves_no_process_of_the_group() {
    // A server that ignores TERM and has a child of its own.
    let script = format!("trap '' TERM HUP; sleep 1000 & {SERVER}");
    let client = client(&script);
    let pid: i32 = text(&client, "pid").await.unwrap().parse().unwrap();
    let group: i32 = stat_field(pid, 2).expect("the group of a running process");
    assert!(
        group_members(group) >= 3,
        "the server, its child, and the watcher"
    );
    drop(client);
    let gone = async {
        while group_members(group) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(100), gone)
        .await
        .expect("the group is gone");
}

/// A field of a process's stat, counted from its state.
fn stat_field(pid: i32, at: usize) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')')
        .next()?
        .split_whitespace()
        .nth(at)?
        .parse()
        .ok()
}

/// How many processes of a group are alive.
fn group_members(group: i32) -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    processes
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let after: Vec<&str> = stat
                .rsplit(')')
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .collect();
            after.get(2).and_then(|text| text.parse().ok()) == Some(group)
                && after.first() != Some(&"Z")
        })
        .count()
}

#[tokio::test]
async fn the_environment_is_minimal_and_overridden() {
    let script = r#"read -r line; echo '{"id":1,"result":{}}' ; while read -r line; do case "$line" in *tools/call*) echo '{"id":3,"result":{"content":"'"$(env | cut -d= -f1 | sort | tr '\n' ' ')$MINE"'"}}';; *initialize*) echo '{"id":2,"result":{"protocolVersion":"2024-11-05"}}';; esac; done"#;
    let server = McpServer::stdio("sh", ["-c", script]).env("MINE", "yes");
    let client = McpClient::new(server, SystemEnv::shared()).unwrap();
    let told = text(&client, "env").await.unwrap();
    assert!(told.contains("PATH") && told.ends_with("yes"), "{told}");
    assert!(!told.contains("CARGO"), "{told}");
}

#[tokio::test]
async fn a_process_that_ends_at_once_is_told_with_status_and_last_words() {
    for _ in 0..5 {
        let told = client("echo no licence >&2; exit 3")
            .tools()
            .await
            .unwrap_err()
            .to_string();
        assert!(
            told.contains("exit status 3") && told.contains("no licence"),
            "{told}"
        );
    }
}
