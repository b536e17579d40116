//! Every case of the corpus is a test of its own name: `cargo nextest run -E 'binary(cases)'`.
//!
//! A stream case is read as it was cut, as one piece, byte by byte, and in two pieces: those of
//! the corpus cut at every byte, the neighbours at a number of places.

mod expect;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use yiem_core::{Env, SystemEnv};
use yiem_openai::Asked;
use yiem_openai::RecordedReply;

/// In so many places a neighbour is cut in two.
const PLACES: usize = 100;

fn main() -> std::process::ExitCode {
    let args = Arguments::from_args();
    // A case is read in its own test: each test is a process that lists them all.
    let trials = case_files()
        .into_iter()
        .map(|path| {
            let id = path.file_stem().expect("a name").to_string_lossy();
            Trial::test(id.into_owned(), move || check(&path))
        })
        .collect();
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

fn check(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let case: Value = serde_json::from_str(&text)?;
    let id = case["id"].as_str();
    if id != path.file_stem().and_then(|stem| stem.to_str()) {
        return Err(format!("its id is {id:?}").into());
    }
    match case["direction"].as_str() {
        Some("request") => build(&text, &case),
        _ => read(&text, &case),
    }
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
    let reply = RecordedReply::from_case(text)?;
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
    let end = match reply.asked {
        Asked::Stream => whole.len(),
        Asked::Whole => 0,
    };
    let step = match case["kind"].as_str() {
        Some("neighbour") => (whole.len() / PLACES).max(1),
        _ => 1,
    };
    for at in (1..end).step_by(step) {
        let (head, tail) = whole.split_at(at);
        check(
            vec![head.to_vec(), tail.to_vec()],
            &format!("cut at byte {at}"),
        )?;
    }
    Ok(())
}
