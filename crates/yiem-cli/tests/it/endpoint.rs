//! Which model is asked, by flags and environment.

use crate::command::{finish, yiem};
use crate::model_server::{ModelServer, text};

#[test]
fn the_environment_chooses_the_endpoint_and_flags_win() {
    let server = ModelServer::start([text("hello")]);
    let mut command = yiem(["run", "hi"]);
    command
        .env("OPENAI_BASE_URL", &server.base_url)
        .env("OPENAI_MODEL", "from-env");
    finish(command).with_code(0);
    assert_eq!(server.asked().body["model"], "from-env");
    let mut command = yiem([
        "run",
        "--base-url",
        &server.base_url,
        "--model",
        "from-flag",
        "hi",
    ]);
    command
        .env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .env("OPENAI_MODEL", "from-env");
    finish(command).with_code(0);
    assert_eq!(server.asked().body["model"], "from-flag");
}

#[test]
fn a_preset_changes_what_is_sent() {
    let server = ModelServer::start([text("hello")]);
    let run = |more: &[&str]| {
        let args = [
            "run",
            "--base-url",
            &server.base_url,
            "--model",
            "m",
            "--system",
            "Be brief.",
        ];
        finish(yiem(args.iter().chain(more))).with_code(0);
        server.asked()
    };
    let plain = run(&["hi"]);
    let openai = run(&["--compat", "openai", "hi"]);
    assert_eq!(plain.body["messages"][0]["role"], "system");
    assert_eq!(openai.body["messages"][0]["role"], "developer");
}
