//! What somebody is told who uses the command for the first time, and wrongly.

use std::fs;
use std::net::TcpListener;

use crate::command::{call, call_with_input, finish, yiem};

/// A server in shell that lists one good tool and two that cannot be offered.
const LAME: &str = r#"
while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"lame","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"good","inputSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":1},"k":{"enum":["a","b"]}}}},{"name":"bad","inputSchema":{"type":"nonsense"}},{"name":"worse","inputSchema":{"type":"object","properties":{"a":{"contains":1}}}}]}}\n' "$id" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"well"}]}}\n' "$id" ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    esac
done
"#;

#[test]
fn a_mistyped_flag_or_command_is_led_to_the_nearest() {
    for (args, meant) in [
        (&["run", "hi", "--mpc", "a=stdio:b"][..], "'--mcp'"),
        (&["rnu", "hi"], "'run'"),
    ] {
        let done = call(args).with_code(2);
        assert!(done.err.contains(meant), "{done:#?}");
        assert!(!done.err.contains("--compat"), "{done:#?}");
    }
}

#[test]
fn what_the_demonstration_has_no_use_for_is_checked_and_named() {
    let done = call(["run", "hi", "--compat", "nonsense"]).with_code(2);
    assert!(done.only_line().contains("vllm"), "{done:#?}");
    let done = call(["run", "hi", "--compat", "vllm", "--model", "mine"]).with_code(0);
    assert!(
        done.only_line()
            .contains("the model mine and the preset vllm are not used"),
        "{done:#?}"
    );
    let mut command = yiem(["run", "hi"]);
    command.env("OPENAI_MODEL", "mine");
    let done = finish(command).with_code(0);
    assert!(
        done.only_line().contains("the model mine is not used"),
        "{done:#?}"
    );
}

#[test]
fn wrong_use_is_one_line_that_names_the_flag() {
    for (args, told) in [
        (&["--tools", "/nowhere/at/all"][..], "--tools"),
        (&["--tools", "/dev/null"], "--tools: /dev/null is no folder"),
        (&["--mcp", "nonsense"], "--mcp: `nonsense`"),
        (&["--mcp-config", "/nowhere"], "--mcp-config"),
        (&["--system", "@/nowhere"], "--system"),
        (&["--session", "/nowhere/at/all"], "--session"),
        (&["--allow-write-tools"], "--tools DIR"),
    ] {
        let done = call(["run", "hi"].iter().chain(args)).with_code(2);
        assert!(done.only_line().contains(told), "{done:#?}");
    }
}

#[test]
fn advice_is_given_once() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let done = call(["run", "hi", "--base-url", &url]).with_code(1);
    let line = done.only_line();
    assert_eq!(line.matches(&url).count(), 1, "{line}");
    assert_eq!(line.matches("check").count(), 1, "{line}");
    assert!(line.contains("--base-url"), "{line}");
}

#[test]
fn tools_that_cannot_be_offered_are_explained_by_tools_and_counted_by_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lame.sh");
    fs::write(&file, LAME).unwrap();
    let server = format!("lame=stdio:sh {}", file.display());
    let done = call(["tools", "--mcp", &server]).with_code(0);
    assert!(done.out.contains("good"), "{done:#?}");
    assert_eq!(done.err.lines().count(), 2, "{done:#?}");
    assert!(done.err.contains("bad of lame") && done.err.contains("worse of lame"));
    let done = call(["run", "call good {}", "--mcp", &server]).with_code(0);
    let about: Vec<&str> = done.err.lines().filter(|l| l.contains("lame")).collect();
    assert_eq!(
        about,
        ["yiem: 2 tools of lame cannot be offered; `yiem tools` with the same options says why"]
    );
    // A single call has nothing to do with the others.
    let done = call(["call", "good", "{}", "--mcp", &server]).with_code(0);
    assert_eq!((done.out.as_str(), done.err.as_str()), ("well\n", ""));
    let done = call(["call", "bad", "{}", "--mcp", &server]).with_code(1);
    assert!(done.only_line().contains("nonsense"), "{done:#?}");
}

#[test]
fn every_problem_of_the_arguments_stands_on_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lame.sh");
    fs::write(&file, LAME).unwrap();
    let server = format!("lame=stdio:sh {}", file.display());
    let done = call(["call", "good", r#"{"n":0,"k":"z"}"#, "--mcp", &server]).with_code(1);
    assert_eq!(
        done.only_line(),
        "yiem: good: Invalid arguments, 2 problems: (1) n: got 0; expected at least 1 \
         (2) k: got \"z\"; expected one of \"a\", \"b\""
    );
}

#[test]
fn a_bad_file_of_ones_own_is_told_before_a_run_and_a_call() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.js"), "export const tool = {").unwrap();
    let dir = folder.path().to_str().unwrap();
    for args in [&["run", "hi"][..], &["call", "getTime", "{}"], &["tools"]] {
        let done = call(args.iter().chain(&["--tools", dir]));
        let told = done.err.lines().filter(|l| l.contains("bad.js:1:")).count();
        assert_eq!(told, 1, "{done:#?}");
    }
}

#[test]
fn a_call_that_needs_approval_is_told_in_a_run_and_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let script = "export const tool = { name: 'wipe', needsApproval: true };\n\
                  export function execute() { return 'wiped'; }\n";
    fs::write(folder.path().join("wipe.js"), script).unwrap();
    let dir = folder.path().to_str().unwrap();
    let done = call(["run", "--quiet", "call wipe {}", "--tools", dir]).with_code(0);
    assert!(!done.out.contains("wiped"), "{done:#?}");
    let told = "yiem: wipe needs approval, which nobody can give in `yiem run`; `yiem chat` asks";
    assert_eq!(
        done.err.lines().filter(|l| *l == told).count(),
        1,
        "{done:#?}"
    );
}

#[test]
fn a_case_that_is_none_says_what_a_case_is() {
    let body = r#"{"choices":[{"message":{"content":"hi"}}]}"#;
    for input in ["", " \n", "[]", "nonsense", "42", "{}", "{", body] {
        for direction in ["decode", "encode"] {
            let done = call_with_input(["wire", direction], input).with_code(2);
            assert!(
                done.only_line().contains("direction and input"),
                "{input:?}: {done:#?}"
            );
        }
    }
}
