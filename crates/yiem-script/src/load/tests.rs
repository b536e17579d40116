use std::fs;

use yiem_core::{SystemEnv, Tool};

use super::*;

fn good(name: &str) -> String {
    format!(
        "export const tool = {{ name: '{name}' }};\nexport function execute() {{ return '{name}'; }}\n"
    )
}

#[tokio::test]
async fn a_bad_file_is_reported_with_its_line_and_the_others_load() {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("b.js", good("second")),
        ("a.js", good("first")),
        (
            "broken.js",
            "export const tool = { name: 'x' };\n\nexport function execute( {}".to_owned(),
        ),
        ("c.js", good("first")),
        ("empty.js", String::new()),
        ("half.js", good("half")[..70].to_owned()),
        ("imports.js", format!("import fs from 'fs';\n{}", good("x"))),
        (
            "throws.js",
            format!("{}\nthrow new Error('at load');", good("y")),
        ),
        ("z.mjs", good("last")),
    ] {
        fs::write(dir.path().join(file), text).unwrap();
    }
    let engine = ScriptEngine::new(SystemEnv::shared());
    let loaded = load_tools(dir.path(), &engine).await.unwrap();
    let names: Vec<&str> = loaded
        .tools
        .iter()
        .map(|t| t.definition().name.as_str())
        .collect();
    assert_eq!(names, ["first", "second", "last"]);
    let problems: Vec<String> = loaded
        .problems
        .iter()
        .map(|p| {
            p.to_string()
                .replace(&format!("{}/", dir.path().display()), "")
        })
        .collect();
    for (problem, expected) in problems.iter().zip([
        "broken.js:3:",
        "c.js: its tool is named \"first\", as the tool of a.js is",
        "empty.js: the file has no `export const tool",
        "half.js:2:",
        "imports.js: ReferenceError: could not load module 'fs'",
        "throws.js:4:",
    ]) {
        assert!(problem.starts_with(expected), "{problem}");
    }
    assert_eq!(problems.len(), 6);
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let engine = ScriptEngine::new(SystemEnv::shared());
    let error = load_tools(dir.path().join("not/there"), &engine)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("not/there"), "{error}");
    assert_eq!(error.source.kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn only_what_has_changed_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.js"), good("a")).unwrap();
    fs::write(dir.path().join("b.js"), good("b")).unwrap();
    let engine = ScriptEngine::new(SystemEnv::shared());
    let mut known = Known::new();
    let first = load(dir.path(), &engine, &mut known).await.unwrap();
    fs::write(dir.path().join("b.js"), good("other")).unwrap();
    let second = load(dir.path(), &engine, &mut known).await.unwrap();
    assert!(Arc::ptr_eq(&first.tools[0], &second.tools[0]));
    assert_eq!(second.tools[1].definition().name, "other");
    fs::remove_file(dir.path().join("a.js")).unwrap();
    let third = load(dir.path(), &engine, &mut known).await.unwrap();
    assert_eq!((third.tools.len(), known.len()), (1, 1));
}

#[tokio::test]
async fn files_as_editors_and_copies_leave_them() {
    let dir = tempfile::tempdir().unwrap();
    let write = |file: &str, bytes: &[u8]| fs::write(dir.path().join(file), bytes).unwrap();
    write("bom.js", format!("\u{feff}{}", good("bom")).as_bytes());
    write("crlf.js", good("crlf").replace('\n', "\r\n").as_bytes());
    write("cr.js", good("cr").replace('\n', "\r").as_bytes());
    write(
        "hashbang.js",
        format!("#!/usr/bin/env node\n{}", good("hashbang")).as_bytes(),
    );
    write("no_end.js", good("no_end").trim_end().as_bytes());
    let wide: Vec<u8> = good("wide")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    write("wide.js", &[&[0xff, 0xfe], wide.as_slice()].concat());
    write(
        "latin.js",
        b"// caf\xe9\nexport const tool = { name: 'latin' };",
    );
    write("binary.js", &[0, 159, 146, 150, 0]);
    // A file of 100 MB, of which no more is read than a tool may have.
    let huge = fs::File::create(dir.path().join("huge.js")).unwrap();
    huge.set_len(100 << 20).unwrap();
    let crlf_error = good("x").replace('\n', "\r\n") + "\r\n\r\nlet a = ;";
    write("late.js", crlf_error.as_bytes());

    let engine = ScriptEngine::new(SystemEnv::shared());
    let loaded = load_tools(dir.path(), &engine).await.unwrap();
    let names: Vec<&str> = loaded
        .tools
        .iter()
        .map(|t| t.definition().name.as_str())
        .collect();
    assert_eq!(names, ["bom", "cr", "crlf", "hashbang", "no_end"]);
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    for (problem, expected) in problems.iter().zip([
        "binary.js: it is not UTF-8 in line 1",
        "huge.js: it has more than the 262144 bytes",
        "late.js:5:9: unexpected token",
        "latin.js: it is not UTF-8 in line 1",
        "wide.js: it is not UTF-8 in line 1",
    ]) {
        assert!(problem.contains(expected), "{problem} is not {expected}");
    }
    assert_eq!(problems.len(), 5, "{problems:?}");
}

#[tokio::test]
async fn a_folder_of_many_files_is_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..10_000 {
        fs::write(dir.path().join(format!("note{i}.txt")), "no tool").unwrap();
    }
    for i in 0..200 {
        let name = format!("tool{i:03}");
        fs::write(dir.path().join(format!("{name}.js")), good(&name)).unwrap();
    }
    let engine = ScriptEngine::new(SystemEnv::shared());
    let loaded = load_tools(dir.path(), &engine).await.unwrap();
    assert_eq!((loaded.tools.len(), loaded.problems.len()), (200, 0));
    assert!(
        loaded
            .tools
            .is_sorted_by_key(|t| t.definition().name.clone())
    );
}
