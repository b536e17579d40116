//! Every case of the corpus is a test of its own name: `cargo nextest run -E 'binary(cases)'`.
//!
//! A stream case is read as it was cut, as one piece, and cut at every byte.

mod expect;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use yiem_core::{Env, SystemEnv};
use yiem_openai::Asked;
use yiem_openai::case::Reply;

fn main() -> std::process::ExitCode {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for path in case_files() {
        let text = std::fs::read_to_string(&path).expect("a readable case");
        let case: Value = serde_json::from_str(&text).expect("a case is JSON");
        let id = case["id"].as_str().expect("a case has an id").to_owned();
        assert_eq!(
            Some(id.as_str()),
            path.file_stem().and_then(|stem| stem.to_str())
        );
        match case["direction"].as_str() {
            Some("request") => trials.push(Trial::test(id, move || build(&text, &case))),
            _ => trials.push(Trial::test(id, move || read(&text, &case))),
        }
    }
    libtest_mimic::run(&args, trials).exit_code()
}

/// The corpus, and cases of our own beside it: neighbours of its kinds.
fn case_files() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut files: Vec<PathBuf> = ["cases", "neighbours"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(fixtures.join(folder)).expect("a folder of cases"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    files
}

fn build(text: &str, case: &Value) -> Result<(), Failed> {
    let body = yiem_openai::case::encode(text)?;
    if yiem_openai::case::encode(text)? != body {
        return Err("built twice it differs".into());
    }
    expect::building(&body, &case["expect"])
        .map_err(|problem| format!("{problem}\nbuilt: {body}"))?;
    Ok(())
}

fn read(text: &str, case: &Value) -> Result<(), Failed> {
    let env: Arc<dyn Env> = SystemEnv::shared();
    let reply = Reply::from_case(text)?;
    let check = |pieces: Vec<Vec<u8>>, how: &str| {
        let mut reply = reply.clone();
        reply.pieces = pieces;
        let decoded = serde_json::to_string(&reply.decode(&env)).map_err(|e| e.to_string())?;
        let decoded: Value = serde_json::from_str(&decoded).map_err(|e| e.to_string())?;
        expect::reading(&decoded, &case["expect"])
            .map_err(|problem| format!("{how}: {problem}\nread: {decoded:#}"))
    };
    check(reply.pieces.clone(), "as it came")?;
    let whole = reply.pieces.concat();
    check(vec![whole.clone()], "as one piece")?;
    check(
        whole.iter().map(|byte| vec![*byte]).collect(),
        "byte by byte",
    )?;
    let cuts = if reply.asked == Asked::Stream {
        1..whole.len()
    } else {
        0..0
    };
    for at in cuts {
        let (head, tail) = whole.split_at(at);
        check(
            vec![head.to_vec(), tail.to_vec()],
            &format!("cut at byte {at}"),
        )?;
    }
    Ok(())
}
