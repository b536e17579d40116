use std::fs;
use std::path::Path;

use serde_json::json;
use yiem_core::{CancelToken, SystemEnv, ToolSource};

use super::*;
use crate::{ScriptEngine, ScriptTools};

fn tools(dir: &Path) -> ScriptTools {
    ScriptTools::new(dir, ScriptEngine::new(SystemEnv::shared())).allow_writing()
}

fn context() -> ToolContext {
    ToolContext::new("1", "writeTool", SystemEnv::shared())
}

fn args() -> Value {
    json!({
        "name": "searchWine",
        "label": "Wine Search",
        "description": "Search a wine database",
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        "executeCode": "return `Found wines for ${args.query}`;",
    })
}

fn with(key: &str, value: Value) -> Value {
    let mut args = args();
    args[key] = value;
    args
}

async fn write(source: &ScriptTools, args: Value) -> Result<ToolOutput, ToolError> {
    let Value::Object(args) = args else {
        panic!("{args} is no object")
    };
    let tool = source.write_tool();
    let args = tool.prepare_arguments(args).await.unwrap();
    tool.call(ValidArgs::accepted(args), context()).await
}

fn files(dir: &Path) -> Vec<String> {
    let mut files: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_tool_is_written_and_there_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let source = tools(dir.path());
    let before = source.generation();
    let full = with(
        "validateCode",
        json!("return args.query ? null : 'no query';"),
    );
    let output = write(&source, full).await.unwrap();
    assert_eq!(output.added_tool_names, ["searchWine"]);
    assert!(output.plain_text().contains("from the next turn on"));
    assert_eq!(files(dir.path()), ["searchWine.js"]);
    let text = fs::read_to_string(dir.path().join("searchWine.js")).unwrap();
    assert!(text.starts_with("// Made by writeTool on 20"), "{text}");
    assert!(
        text.contains("\n    return `Found wines for ${args.query}`;\n"),
        "{text}"
    );

    assert_ne!(source.generation(), before);
    // By the same source, and by another process that finds the file.
    for source in [source, tools(dir.path())] {
        let loaded = source.load(&CancelToken::new()).await.unwrap();
        let tool = loaded
            .tools
            .iter()
            .find(|t| t.definition().name == "searchWine")
            .unwrap();
        let mut query = JsonObject::new();
        query.insert("query".to_owned(), "cabernet".into());
        let output = tool
            .call(ValidArgs::accepted(query), context())
            .await
            .unwrap();
        assert_eq!(output.plain_text(), "Found wines for cabernet");
        assert_eq!(tool.definition().parallel, None);
    }
}

#[tokio::test]
async fn what_is_given_comes_out_again() {
    let dir = tempfile::tempdir().unwrap();
    let source = tools(dir.path());
    let schema: Value = serde_json::from_str(
        r##"{"type":"object","properties":{"__proto__":{"type":"string"},"a-b":{"enum":[1,null,"\u2028*/`${}"]},"constructor":{"const":[]}},"$defs":{"x":{}},"required":[]}"##,
    )
    .unwrap();
    let odd = "quotes \" ' ` ${x} \\ */ // \u{2028} \0 ü 😀\n";
    let mut given = args();
    given["inputSchema"] = schema.clone();
    given["label"] = odd.into();
    given["description"] = odd.into();
    given["parallel"] = json!(false);
    given["executeCode"] = json!(
        "const text = `one\n  two\nthree`;\n/* ` */ const re = /`/;\nreturn { content: text, details: String(re) };"
    );
    given["prepareCode"] = json!("args.extra = 1;");
    write(&source, given).await.unwrap();
    let loaded = source.load_scripts().await.unwrap();
    assert_eq!(loaded.problems, []);
    let tool = &loaded.tools[0];
    let definition = tool.definition();
    assert_eq!(
        (
            &definition.input_schema,
            definition.label.as_str(),
            definition.description.as_str()
        ),
        (&schema, odd, odd)
    );
    assert_eq!(definition.parallel, Some(false));
    let prepared = tool.prepare_arguments(JsonObject::new()).await.unwrap();
    assert_eq!(Value::Object(prepared), json!({"extra": 1}));
    let output = tool
        .call(ValidArgs::accepted(JsonObject::new()), context())
        .await
        .unwrap();
    assert_eq!(output.plain_text(), "one\n  two\nthree");
    assert_eq!(output.details, json!("/`/"));
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_and_nothing_is_written() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("tools");
    fs::create_dir(&dir).unwrap();
    let source = tools(&dir);
    let before = source.generation();
    for (key, value, expected) in [
        ("name", json!("../escape"), "cannot be a tool's name"),
        ("name", json!("/etc/passwd"), "cannot be a tool's name"),
        ("name", json!("a\0b"), "cannot be a tool's name"),
        ("name", json!("con"), "device on Windows"),
        ("name", json!("COM1"), "device on Windows"),
        ("name", json!(""), "cannot be a tool's name"),
        ("name", json!("x".repeat(65)), "cannot be a tool's name"),
        ("name", json!("writeTool"), "a built-in tool has it"),
        ("name", json!("LISTTOOLS"), "a built-in tool has it"),
        ("name", json!(5), "name must be a text"),
        (
            "inputSchema",
            json!({"type": "string"}),
            "inputSchema cannot be used",
        ),
        (
            "inputSchema",
            json!({"properties": {"a": {"type": "nonsense"}}}),
            "inputSchema cannot be used",
        ),
        (
            "inputSchema",
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "inputSchema cannot be used",
        ),
        ("inputSchema", json!([]), "inputSchema cannot be used"),
        ("inputSchema", json!("text"), "inputSchema cannot be used"),
        ("parallel", json!("no"), "parallel must be true or false"),
        (
            "executeCode",
            json!("return 1 +;"),
            "executeCode does not parse: unexpected token in expression: ';' (line 1, column 11 of executeCode); nothing was written",
        ),
        (
            "executeCode",
            json!("const a = 1;\n  const b = ;\n"),
            "(line 2, column 13 of executeCode)",
        ),
        (
            "executeCode",
            json!("if (x) {"),
            "executeCode does not parse",
        ),
        (
            "executeCode",
            json!("return 'half"),
            "executeCode does not parse",
        ),
        (
            "executeCode",
            json!("/* half"),
            "executeCode does not parse",
        ),
        (
            "executeCode",
            json!("import fs from 'fs';"),
            "executeCode does not parse",
        ),
        (
            "executeCode",
            json!("} function g() {"),
            "it closes the function",
        ),
        (
            "executeCode",
            json!("}\nexport const more = 1;\nfunction g() {"),
            "executeCode does not parse",
        ),
        (
            "executeCode",
            json!("}, g() {"),
            "executeCode does not parse",
        ),
        (
            "executeCode",
            json!("} }); ({ g() { {"),
            "executeCode does not parse",
        ),
        ("executeCode", json!("a\0b"), "a NUL character"),
        (
            "executeCode",
            json!("with (args) { }"),
            "executeCode does not parse",
        ),
        (
            "validateCode",
            json!("return null;\nreturn ]"),
            "(line 2, column 8 of validateCode)",
        ),
        (
            "prepareCode",
            json!("return await args;"),
            "prepareCode does not parse",
        ),
        (
            "executeCode",
            json!(format!("// {}", "x".repeat(300_000))),
            "at most 262144",
        ),
    ] {
        let error = write(&source, with(key, value.clone())).await.unwrap_err();
        assert!(error.message().contains(expected), "{key} {value}: {error}");
        assert_eq!(files(&dir), Vec::<String>::new(), "{key} {value}");
    }
    assert_eq!(files(outer.path()), ["tools"]);
    assert_eq!(source.generation(), before);
    let mut missing = args();
    missing.as_object_mut().unwrap().remove("executeCode");
    assert_eq!(
        write(&source, missing).await.unwrap_err().message(),
        "executeCode is missing"
    );
}

#[tokio::test]
async fn a_tool_is_replaced_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let source = tools(dir.path());
    write(&source, args()).await.unwrap();
    let changed = with("executeCode", json!("return 'new';"));
    let error = write(&source, changed.clone()).await.unwrap_err();
    assert!(
        error
            .message()
            .contains("there is a tool file searchWine.js already"),
        "{error}"
    );
    let error = write(&source, with("name", json!("SearchWine")))
        .await
        .unwrap_err();
    assert!(
        error
            .message()
            .contains("there is a tool file searchWine.js already"),
        "{error}"
    );
    let mut replaced = changed;
    replaced["overwrite"] = json!(true);
    write(&source, replaced).await.unwrap();
    let loaded = source.load_scripts().await.unwrap();
    assert!(loaded.tools[0].source().contains("return 'new';"));
}

#[tokio::test]
async fn of_two_writers_at_once_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (tools(dir.path()), tools(dir.path()));
    let (a, b) = tokio::join!(
        write(&one, args()),
        write(&two, with("executeCode", json!("return 2;")))
    );
    assert!(a.is_ok() != b.is_ok());
    assert_eq!(files(dir.path()), ["searchWine.js"]);
    assert_eq!(
        tools(dir.path()).load_scripts().await.unwrap().tools.len(),
        1
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_in_the_folder_is_not_written_through() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target.js");
    fs::write(&target, "mine").unwrap();
    std::os::unix::fs::symlink(&target, dir.path().join("searchWine.js")).unwrap();
    let mut args = args();
    for overwrite in [false, true] {
        args["overwrite"] = json!(overwrite);
        let error = write(&tools(dir.path()), args.clone()).await.unwrap_err();
        assert!(error.message().contains("symbolic link"), "{error}");
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
}

#[tokio::test]
async fn a_cancelled_call_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let context = context();
    context.cancel.cancel();
    let Value::Object(args) = args() else {
        panic!()
    };
    let error = tools(dir.path())
        .write_tool()
        .call(ValidArgs::accepted(args), context)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), yiem_core::ToolErrorKind::Aborted);
    assert!(files(dir.path()).is_empty());
}

#[tokio::test]
async fn its_schema_is_one_that_models_can_use() {
    let dir = tempfile::tempdir().unwrap();
    let tool = tools(dir.path()).write_tool();
    let validator = yiem_tools::ArgsValidator::new(&tool.definition().input_schema).unwrap();
    let Value::Object(args) = args() else {
        panic!()
    };
    validator.validate(args.clone()).unwrap();
    // A schema that came as a text is read.
    let mut as_text = args;
    let schema = as_text["inputSchema"].to_string();
    as_text.insert("inputSchema".to_owned(), schema.into());
    assert!(validator.validate(as_text).unwrap()["inputSchema"].is_object());
}

/// The disk is full for real: the test runs itself again in a process whose files may have a
/// kibibyte at most, the writing of which fails in the middle.
#[cfg(unix)]
#[tokio::test]
async fn a_disk_that_is_truly_full_is_told_and_nothing_stays() {
    const INSIDE: &str = "YIEM_TEST_FULL_DISK";
    const OWN_NAME: &str = "write::tests::a_disk_that_is_truly_full_is_told_and_nothing_stays";
    let Some(dir) = std::env::var_os(INSIDE) else {
        let dir = tempfile::tempdir().unwrap();
        let source = tools(dir.path());
        write(&source, args()).await.unwrap();
        let before = fs::read_to_string(dir.path().join("searchWine.js")).unwrap();
        let inside = std::process::Command::new("sh")
            // Without the signal a process is told by its write, as of a disk that is full.
            .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", OWN_NAME, "--nocapture"])
            .env(INSIDE, dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&inside.stdout).into_owned()
            + &String::from_utf8_lossy(&inside.stderr);
        assert!(
            inside.status.success() && said.contains("told twice"),
            "{said}"
        );
        assert_eq!(files(dir.path()), ["searchWine.js"]);
        let after = fs::read_to_string(dir.path().join("searchWine.js")).unwrap();
        assert_eq!(after, before);
        return;
    };
    let source = tools(Path::new(&dir));
    let long = format!("return `{}`;", "x".repeat(100_000));
    for (name, overwrite) in [("searchWine", true), ("another", false)] {
        let mut full = with("executeCode", json!(long));
        full["name"] = json!(name);
        full["overwrite"] = json!(overwrite);
        let error = write(&source, full).await.unwrap_err();
        let text = error.message();
        assert!(
            text.contains("could not be written, and nothing was: "),
            "{text}"
        );
    }
    // The tool that was there is the one that it was, and a small one still has room.
    let loaded = source.load_scripts().await.unwrap();
    assert_eq!((loaded.tools.len(), loaded.problems.len()), (1, 0));
    let mut small = with("executeCode", json!("return 1;"));
    small["name"] = json!("searchWine");
    small["overwrite"] = json!(true);
    small["inputSchema"] = json!({ "type": "object" });
    let kept = fs::read(Path::new(&dir).join("searchWine.js")).unwrap();
    write(&source, small).await.unwrap();
    fs::write(Path::new(&dir).join("searchWine.js"), kept).unwrap();
    std::io::Write::write_all(&mut std::io::stdout(), b"told twice\n").unwrap();
}
