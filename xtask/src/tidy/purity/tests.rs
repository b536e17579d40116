use super::*;

#[test]
fn decisions_over_values_are_pure() {
    assert_eq!(
        impurities("//! No async, no tokio.\nfn step(now: Timestamp) -> Step { Step::Done }\n"),
        [""; 0]
    );
}

#[test]
fn async_clocks_ids_and_tasks_are_refused() {
    for code in [
        "async fn f() {}",
        "x.await",
        "use tokio::sync::mpsc;",
        "Instant::now()",
        "Uuid::now_v7()",
        "std::fs::read(x)",
        "env.now()",
    ] {
        assert!(!impurities(code).is_empty(), "{code}");
    }
}

#[test]
fn a_module_is_its_file_and_its_folder_without_tests() {
    let package = Path::new("/c");
    assert!(belongs(package, Path::new("/c/src/run.rs"), "run"));
    assert!(belongs(package, Path::new("/c/src/run/step.rs"), "run"));
    assert!(!belongs(package, Path::new("/c/src/run/tests.rs"), "run"));
    assert!(!belongs(package, Path::new("/c/src/runtime.rs"), "run"));
}
