use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::json;
use yiem_core::{CancelToken, LoadedTools, SourceError};

use super::*;
use crate::FunctionTool;

#[derive(Debug)]
struct Files;

#[async_trait]
impl ToolSource for Files {
    fn name(&self) -> &str {
        "files"
    }
    fn generation(&self) -> u64 {
        7
    }
    fn required(&self) -> bool {
        true
    }
    async fn load(&self, _: &CancelToken) -> Result<LoadedTools, SourceError> {
        let tool = |name: &str| -> Arc<dyn yiem_core::Tool> {
            Arc::new(
                FunctionTool::builder(name).json(json!({}), |args, _| async move {
                    serde_json::Value::Object(args.into_object())
                }),
            )
        };
        Ok(LoadedTools {
            generation: 7,
            tools: ["read", "write", "delete"].map(tool).to_vec(),
            ..LoadedTools::default()
        })
    }
}

fn names(source: impl ToolSource) -> Vec<String> {
    assert_eq!(
        (source.name(), source.generation(), source.required()),
        ("files", 7, true)
    );
    let loaded = source
        .load(&CancelToken::new())
        .now_or_never()
        .expect("at once")
        .expect("it loads");
    loaded
        .tools
        .iter()
        .map(|t| t.definition().name.clone())
        .collect()
}

#[test]
fn a_filter_leaves_only_what_is_wanted() {
    assert_eq!(
        names(Files.filtered(|t| t.name != "delete")),
        ["read", "write"]
    );
    assert_eq!(names(Files.only(["read", "none"])), ["read"]);
    assert_eq!(names(Files.without(["read"])), ["write", "delete"]);
}

#[test]
fn names_are_prefixed_and_exchanged() {
    assert_eq!(
        names(Files.prefixed("fs_")),
        ["fs_read", "fs_write", "fs_delete"]
    );
    assert_eq!(
        names(Files.renamed([("read", "open")])),
        ["open", "write", "delete"]
    );
    assert_eq!(
        names(
            Files
                .only(["read"])
                .renamed([("read", "open")])
                .prefixed("fs_")
        ),
        ["fs_open"]
    );
}
