//! A folder of tools as a source.

use std::fs;

use crate::tools;

#[tokio::test]
async fn a_folder_keeps_to_what_sources_promise() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let source = format!(
            "export const tool = {{ name: '{name}' }};\nexport function execute() {{ return '{name}'; }}\n"
        );
        fs::write(dir.path().join(format!("{name}.js")), source).unwrap();
    }
    yiem_test::conformance::tool_source::run(&tools(dir.path())).await;
}
