//! Servers that do real work: files, memory, time, git.

use super::{call, client, folder, is_modern, names, program, text};
use serde_json::json;
use std::process::Command;

#[tokio::test]
async fn the_filesystem_server_writes_and_reads() {
    let Some(servers) = yiem_tests::live("server-filesystem") else {
        return;
    };
    let (_kept, path) = folder();
    let client = client(program(
        &servers,
        "mcp-npm/node_modules/.bin/mcp-server-filesystem",
        &[&path.display().to_string()],
    ));
    assert!(names(&client).await.len() >= 10);
    let file = path.join("a.txt").display().to_string();
    let written = call(
        &client,
        "write_file",
        json!({"path": file, "content": "line one\n"}),
    )
    .await;
    assert!(!written.is_error, "{written:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "line one\n");
    let read = call(&client, "read_text_file", json!({"path": file})).await;
    assert!(
        text(&read).contains("line one") && read.structured.is_some(),
        "{read:?}"
    );
    let outside = call(&client, "read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(outside.is_error, "{outside:?}");
}

#[tokio::test]
async fn the_memory_server_keeps_state_between_calls() {
    let Some(servers) = yiem_tests::live("server-memory") else {
        return;
    };
    let (_kept, path) = folder();
    let server = program(&servers, "mcp-npm/node_modules/.bin/mcp-server-memory", &[]).env(
        "MEMORY_FILE_PATH",
        path.join("memory.json").display().to_string(),
    );
    let client = client(server);
    let entity = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}]});
    assert!(!call(&client, "create_entities", entity).await.is_error);
    let found = call(&client, "search_nodes", json!({"query": "programs"})).await;
    assert!(text(&found).contains("Ada"), "{found:?}");
}

#[tokio::test]
async fn the_time_server_is_modern_and_converts() {
    let Some(servers) = yiem_tests::live("mcp-server-time") else {
        return;
    };
    let client = client(program(
        &servers,
        "mcp-python/bin/mcp-server-time",
        &["--local-timezone=UTC"],
    ));
    let arguments =
        json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let converted = call(&client, "convert_time", arguments).await;
    assert!(text(&converted).contains("21:00"), "{converted:?}");
    assert!(is_modern(&client));
}

#[tokio::test]
async fn the_git_server_reads_a_repository() {
    let Some(servers) = yiem_tests::live("mcp-server-git") else {
        return;
    };
    let (_kept, path) = folder();
    let git = |args: &[&str]| {
        let status = Command::new("git")
            .arg("-C")
            .arg(&path)
            .args(args)
            .output()
            .expect("git")
            .status;
        assert!(status.success(), "git {args:?}");
    };
    git(&["init", "-q"]);
    let commit = [
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@example.org",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "the first one",
    ];
    git(&commit);
    let repository = path.display().to_string();
    let client = client(program(
        &servers,
        "mcp-python/bin/mcp-server-git",
        &["--repository", &repository],
    ));
    assert!(names(&client).await.len() >= 10);
    let log = call(
        &client,
        "git_log",
        json!({"repo_path": repository, "max_count": 1}),
    )
    .await;
    assert!(text(&log).contains("the first one"), "{log:?}");
    assert!(is_modern(&client));
}

/// A whole agent with a real server: the model calls its `echo` in the first turn.
#[tokio::test]
async fn an_agent_calls_a_real_server() {
    use yiem_test::{Reply, ScriptedModel};
    let Some(servers) = yiem_tests::live("an agent with server-everything") else {
        return;
    };
    let server = program(
        &servers,
        "mcp-npm/node_modules/.bin/mcp-server-everything",
        &["stdio"],
    );
    let model = ScriptedModel::new([
        Reply::call("echo", json!({"message": "from an agent"})),
        Reply::say("done"),
    ]);
    let agent = yiem::Agent::builder(model.clone())
        .mcp(
            server
                .name("everything")
                .required(true)
                .connect_timeout(super::PATIENCE),
        )
        .discovery(yiem::tools::Discovery::Eager)
        .build()
        .unwrap();
    assert_eq!(agent.prompt("echo something").await.unwrap().text(), "done");
    let asked = format!("{:?}", model.requests()[1].messages);
    assert!(asked.contains("Echo: from an agent"), "{asked}");
    agent.stop().await;
}
