//! Several processes that write tools into one folder at once (T-7).

use std::fs;

use serde_json::json;

use crate::command::{Done, Running, call, yiem};

/// Starts them all before it waits for any.
fn at_once(calls: Vec<Vec<String>>) -> Vec<Done> {
    let running: Vec<Running> = (calls.into_iter())
        .map(|args| Running::start(yiem(args)))
        .collect();
    running.into_iter().map(Running::wait).collect()
}

fn writing(folder: &str, name: &str, says: usize, overwrite: bool) -> Vec<String> {
    // Long enough that a file that is not written whole would show; an argument has 128 KiB at most.
    let code = format!("return '{says}';\n{}", "// so\n".repeat(10_000));
    let tool = json!({
        "name": name, "label": "Says", "description": "Says a number.",
        "inputSchema": { "type": "object" }, "executeCode": code, "overwrite": overwrite,
    });
    [
        "call",
        "writeTool",
        &tool.to_string(),
        "--tools",
        folder,
        "--allow-write-tools",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn names(folder: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn of_processes_that_write_one_tool_one_wins_and_the_others_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let done = at_once((0..4).map(|i| writing(folder, "says", i, false)).collect());
    let winners: Vec<usize> = (0..4).filter(|i| done[*i].code == Some(0)).collect();
    assert_eq!(winners.len(), 1, "{done:#?}");
    for (_, loser) in (done.iter().enumerate()).filter(|(i, _)| *i != winners[0]) {
        let told = format!("{}{}", loser.out, loser.err);
        assert!(
            told.contains("there is a tool file says.js already"),
            "{told}"
        );
    }
    assert_eq!(names(folder), ["says.js"]);
    let said = call(["call", "says", "--tools", folder]).with_code(0);
    assert_eq!(said.out, format!("{}\n", winners[0]));
}

#[test]
fn processes_that_replace_a_tool_leave_a_whole_one_and_lose_none_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let mut calls: Vec<_> = (0..3).map(|i| writing(folder, "says", i, true)).collect();
    calls.extend((0..3).map(|i| writing(folder, &format!("other{i}"), i, false)));
    for done in at_once(calls) {
        done.with_code(0);
    }
    assert_eq!(
        names(folder),
        ["other0.js", "other1.js", "other2.js", "says.js"]
    );
    let said = call(["call", "says", "--tools", folder]).with_code(0);
    assert!(
        ["0\n", "1\n", "2\n"].contains(&said.out.as_str()),
        "{said:#?}"
    );
    for i in 0..3 {
        let said = call(["call", &format!("other{i}"), "--tools", folder]).with_code(0);
        assert_eq!(said.out, format!("{i}\n"));
    }
}
