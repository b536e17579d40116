use std::fs;

use yiem_core::SystemEnv;

use super::*;

fn tools(dir: &Path) -> ScriptTools {
    ScriptTools::new(dir, ScriptEngine::new(SystemEnv::shared()))
}

fn names(loaded: &LoadedTools) -> Vec<&str> {
    loaded
        .tools
        .iter()
        .map(|t| t.definition().name.as_str())
        .collect()
}

const A: &str = "export const tool = { name: 'a' }; export function execute() {}";

#[tokio::test]
async fn writing_is_off_unless_it_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.js"), A).unwrap();
    fs::write(dir.path().join("b.js"), "not a tool").unwrap();
    let cancel = CancelToken::new();
    let loaded = tools(dir.path()).load(&cancel).await.unwrap();
    assert_eq!(names(&loaded), ["a"]);
    assert_eq!(loaded.rejected[0].name, "b.js");
    assert!(
        loaded.rejected[0].reason.contains("b.js:1:"),
        "{:?}",
        loaded.rejected
    );
    let loaded = tools(dir.path())
        .allow_writing()
        .load(&cancel)
        .await
        .unwrap();
    assert_eq!(names(&loaded), ["writeTool", "a"]);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_empty_where_writing_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("tools");
    let cancel = CancelToken::new();
    let error = tools(&missing).load(&cancel).await.unwrap_err();
    assert!(
        error.to_string().starts_with("scripts: the tools folder"),
        "{error}"
    );
    let loaded = tools(&missing)
        .named("mine")
        .allow_writing()
        .load(&cancel)
        .await
        .unwrap();
    assert_eq!(names(&loaded), ["writeTool"]);
    assert!(!missing.exists());
}

#[tokio::test]
async fn a_change_is_a_new_generation() {
    let dir = tempfile::tempdir().unwrap();
    let source = tools(dir.path());
    let seen = source.generation();
    let changed = source.changed(seen);
    source.refresh();
    changed.await;
    assert_ne!(source.generation(), seen);
    let cancelled = CancelToken::new();
    cancelled.cancel();
    assert!(source.load(&cancelled).await.is_err());
}
