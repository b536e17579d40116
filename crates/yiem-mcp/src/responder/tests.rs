use super::*;
use yiem_core::SystemEnv;

fn server() -> ToolServer {
    ToolServer::new("s", SystemEnv::shared())
}

async fn ask(method: &str, params: Value) -> Result<Value, JsonRpcError> {
    let Value::Object(params) = params else {
        panic!("parameters are an object")
    };
    server()
        .respond(method, params, Caller::new(CancelToken::new(), |_| {}))
        .await
}

fn meta(version: &str) -> Value {
    json!({"_meta": {meta_key::PROTOCOL_VERSION: version, meta_key::CLIENT_CAPABILITIES: {}}})
}

#[tokio::test]
async fn the_handshake_takes_the_version_asked_for_or_offers_its_own() {
    let version = |asked: &'static str| async move {
        ask("initialize", json!({"protocolVersion": asked}))
            .await
            .unwrap()["protocolVersion"]
            .clone()
    };
    assert_eq!(version("2025-06-18").await, "2025-06-18");
    assert_eq!(version("2026-07-28").await, "2025-11-25");
    assert_eq!(version("1999-01-01").await, "2025-11-25");
}

#[tokio::test]
async fn a_server_tells_its_own_name_and_version() {
    let server = server().version("4.2.0");
    let params = JsonObject::from_iter([("protocolVersion".to_owned(), "2025-06-18".into())]);
    let caller = Caller::new(CancelToken::new(), |_| {});
    let answer = server.respond("initialize", params, caller).await.unwrap();
    assert_eq!(
        answer["serverInfo"],
        json!({"name": "s", "version": "4.2.0"})
    );
}

#[tokio::test]
async fn a_modern_request_is_held_to_its_metadata() {
    let result = ask("tools/list", meta("2026-07-28")).await.unwrap();
    assert_eq!(result["resultType"], "complete");
    assert_eq!(
        ask("tools/list", meta("2025-11-25"))
            .await
            .unwrap_err()
            .code,
        code::UNSUPPORTED_VERSION
    );
    let lacking = json!({"_meta": {meta_key::PROTOCOL_VERSION: "2026-07-28"}});
    assert_eq!(
        ask("tools/list", lacking).await.unwrap_err().code,
        INVALID_PARAMS
    );
    assert_eq!(
        ask("server/discover", json!({})).await.unwrap_err().code,
        METHOD_NOT_FOUND
    );
}

#[tokio::test]
async fn a_cursor_that_was_never_given_is_refused() {
    for cursor in ["after-9", "x", "after-"] {
        assert_eq!(
            ask("tools/list", json!({"cursor": cursor}))
                .await
                .unwrap_err()
                .code,
            INVALID_PARAMS
        );
    }
    assert_eq!(
        ask("tools/list", json!({"cursor": ""})).await.unwrap()["tools"],
        json!([])
    );
}
