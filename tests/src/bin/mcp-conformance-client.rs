//! The client that the official MCP conformance suite drives (`cargo xtask conformance`, M-11).
//!
//! The last argument is the server's address; `MCP_CONFORMANCE_SCENARIO` names what is tried, and
//! `MCP_CONFORMANCE_CONTEXT` may hold the calls to make. Beyond these it is what any program would be:
//! it connects, lists what there is, and uses each of it.

#![expect(clippy::print_stderr, reason = "the suite shows what a client says")]

use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use yiem_core::SystemEnv;
use yiem_mcp::{
    CallOptions, ClientKey, Consent, Elicit, Elicitation, ElicitationAnswer, McpClient, McpError,
    McpErrorKind, McpServer, OAuthConfig, OAuthTokens, Root,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = std::env::args()
        .next_back()
        .filter(|url| url.starts_with("http"))
    else {
        eprintln!("the last argument must be the server's address");
        return ExitCode::from(2);
    };
    match run(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Says yes to everything and leaves the values to the schema's defaults.
struct YesMan;

#[yiem_core::async_trait]
impl Elicit for YesMan {
    async fn elicit(&self, _: Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Accept(Map::new())
    }
}

/// A person who consents at once: the authorization server of the suite answers with the redirect itself.
struct Browser(reqwest::Client);

impl Browser {
    fn new() -> Self {
        yiem_tls::install_default_provider();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build();
        Self(client.expect("a client can be made once there is a provider of cryptography"))
    }
}

#[yiem_core::async_trait]
impl Consent for Browser {
    fn redirect_uri(&self) -> String {
        "http://localhost:3000/callback".into()
    }

    async fn ask(&self, url: &str) -> Result<String, McpError> {
        let failed = |what: String| McpError::new(McpErrorKind::Unauthorized(what));
        let response = self
            .0
            .get(url)
            .send()
            .await
            .map_err(|error| failed(error.to_string()))?;
        let location = response
            .headers()
            .get("location")
            .and_then(|value| value.to_str().ok());
        location.map(str::to_owned).ok_or_else(|| {
            failed(format!(
                "the authorization server answered {} and no redirect",
                response.status()
            ))
        })
    }
}

/// Who we are to the suite's authorization server, as its context says.
fn identity(context: &Value) -> Result<OAuthConfig, McpError> {
    let text = |key: &str| context.get(key).and_then(Value::as_str);
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    if scenario.contains("client-credentials")
        && let Some(id) = text("client_id")
    {
        if let Some(pem) = text("private_key_pem") {
            let key = ClientKey::from_pem(pem)?;
            return Ok(OAuthConfig::client_credentials_with_key(id, key));
        }
        if let Some(secret) = text("client_secret") {
            return Ok(OAuthConfig::client_credentials(id, secret));
        }
    }
    let mut config = OAuthConfig::new(Arc::new(Browser::new()))
        .client_name("Yiem's conformance client")
        .client_metadata_url("https://conformance-test.local/client-metadata.json");
    if let Some(id) = text("client_id") {
        config = config.client_id(id);
    }
    if let Some(secret) = text("client_secret") {
        config = config.client_secret(secret);
    }
    Ok(config)
}

async fn run(url: &str) -> Result<(), McpError> {
    let context: Value = std::env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or(Value::Null);
    let server = McpServer::http(url)
        .name("suite")
        .token_source(Arc::new(OAuthTokens::new(url, identity(&context)?)))
        .elicit(Arc::new(YesMan))
        .roots([Root {
            uri: "file:///tmp".into(),
            name: None,
        }])
        .connect_timeout(Duration::from_secs(20))
        .call_timeout(Duration::from_secs(20));
    let client = McpClient::new(server, SystemEnv::shared())?;
    let listing = client.tools().await?;
    let calls: Vec<(String, Value)> = match context.get("toolCalls").and_then(Value::as_array) {
        Some(calls) => calls
            .iter()
            .map(|call| {
                let name = call["name"].as_str().unwrap_or_default().to_owned();
                (name, call.get("arguments").cloned().unwrap_or(Value::Null))
            })
            .collect(),
        None => listing
            .tools
            .iter()
            .map(|tool| {
                let mut arguments = sample(&tool.input_schema, 0);
                // A tool that is to be given a schema is given the one that the server listed.
                let other = listing.tools.iter().find(|other| other.name != tool.name);
                if let (Some(given), Some(other)) = (arguments.get_mut("schema"), other) {
                    given.clone_from(&other.input_schema);
                }
                (tool.name.clone(), arguments)
            })
            .collect(),
    };
    for (name, arguments) in calls {
        survive(client.call(&name, arguments, CallOptions::default()).await)?;
    }
    for prompt in client.prompts().await? {
        let name = prompt["name"].as_str().unwrap_or_default().to_owned();
        survive(
            client
                .prompt(&name, Map::new(), CallOptions::default())
                .await,
        )?;
    }
    for resource in client.resources().await? {
        let uri = resource["uri"].as_str().unwrap_or_default().to_owned();
        survive(client.read_resource(&uri, CallOptions::default()).await)?;
    }
    client.close().await;
    Ok(())
}

/// A refusal is an answer like another; anything else is a failure.
fn survive<T>(outcome: Result<T, McpError>) -> Result<(), McpError> {
    match outcome {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), McpErrorKind::Refused(_)) => {
            eprintln!("{error}");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Some value that suits a schema.
fn sample(schema: &Value, depth: usize) -> Value {
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "text".into(),
        Some("integer") => 5.into(),
        Some("number") => json!(2.5),
        Some("boolean") => true.into(),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ if depth > 8 => json!({}),
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array);
            let wanted =
                |key: &str| required.is_none_or(|keys| keys.iter().any(|wanted| wanted == key));
            Value::Object(
                properties
                    .into_iter()
                    .flatten()
                    .filter(|(key, _)| depth == 0 || wanted(key))
                    .map(|(key, schema)| (key.clone(), sample(schema, depth + 1)))
                    .collect(),
            )
        }
    }
}
