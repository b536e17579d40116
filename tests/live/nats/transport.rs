//! The NATS transport runs the suite of every transport, against a real broker and a gateway.

use super::broker::Broker;
use std::process::Command;
use yiem_core::SystemEnv;
use yiem_mcp::{NatsConfig, NatsTransport};
use yiem_test::conformance::transport;
use yiem_tests::RunningServer;

#[tokio::test]
async fn the_suite_passes_in_both_codecs_and_both_styles_of_subjects() {
    let Some(servers) = yiem_tests::live("NATS: the suite of every transport") else {
        return;
    };
    let broker = Broker::start(&servers);
    for rest in [
        "mcp.suite",
        "mcp.suite?codec=envelope",
        "acme.suite?subjects=method",
        "acme.suite?subjects=method&codec=envelope",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-gateway"));
        let gateway = RunningServer::start(command.args(["--nats", &broker.url(rest), "g"]));
        super::until("the gateway is ready", || {
            gateway.last_lines().contains("ready")
        })
        .await;
        let config = NatsConfig::from_url(&broker.url(rest)).expect("a good address");
        let nats = NatsTransport::new(config, SystemEnv::shared());
        transport::run(&nats).await;
    }
}
