use super::*;

#[test]
fn a_missing_server_is_told_with_the_command_that_fetches_it() {
    let servers = Servers(PathBuf::from("/nowhere"));
    let message = std::panic::catch_unwind(|| servers.file("nats/bin/nats-server")).unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(message.contains("cargo xtask setup"), "{message}");
}

#[test]
fn a_dropped_server_is_ended() {
    let server = RunningServer::start(Command::new("sleep").arg("600"));
    let own = PathBuf::from(format!("/proc/{}", server.id()));
    let was_there = own.exists() || cfg!(not(target_os = "linux"));
    drop(server);
    assert!(was_there && !own.exists());
}
