//! `yiem serve`: a server, or tools, offered to others.
//!
//! Knows: what is offered and where, as the flags say. Does not know: how; the gateway does.

use std::sync::Arc;

use yiem::mcp::{ArgsGate, Gateway, GatewayBuilder, GatewayHttpConfig, McpServer, NatsConfig};
use yiem::tools::{RegisteredTool, ToolCatalog, ToolSnapshot};
use yiem::{
    ArgsCheck, CancelToken, JsonObject, SystemEnv, Tool, ToolContext, ToolDefinition, ToolError,
    ToolOutput, ValidArgs, async_trait,
};

use crate::args::{Codec, ServeArgs, Shared};
use crate::command::tools;
use crate::failure::Failure;
use crate::sources;

pub(crate) async fn run(args: &ServeArgs, shared: &Shared) -> Result<(), Failure> {
    if args.nats.is_none() && args.http.is_none() && !args.stdio {
        return Err(Failure::usage(
            "say where to serve: --stdio, --http ADDR, or --nats URL --subject SUBJECT",
        ));
    }
    let gateway = Gateway::builder(SystemEnv::shared());
    // The catalog lives as long as the gateway: its sources hold servers and folders.
    let (gateway, _catalog) = match offered(args, shared)? {
        Offer::Server(server) => (gateway.server(*server), None),
        Offer::Tools(servers) => {
            let catalog = tools::catalog(servers, shared)?;
            (with_tools(gateway, &catalog, shared).await?, Some(catalog))
        }
    };
    let gateway = places(gateway, args)?.start().await.map_err(Failure::new)?;
    for address in gateway.http_addresses() {
        sources::warn(&format!("serving at http://{address}/mcp"));
    }
    if let (Some(url), Some(subject)) = (&args.nats, &args.subject) {
        let host = url.rsplit_once('@').map_or(url.as_str(), |(_, host)| host);
        sources::warn(&format!(
            "serving on {subject} at {}",
            host.trim_start_matches("nats://")
        ));
    }
    let drained = gateway.run_until_signal().await.map_err(Failure::new)?;
    if drained.cut > 0 {
        return Err(Failure::new(format!(
            "{} call(s) were cut off at the end",
            drained.cut
        )));
    }
    Ok(())
}

/// What is offered.
enum Offer {
    /// One server as it is: the command behind `--`, or a single `--mcp`.
    Server(Box<McpServer>),
    /// The tools of these servers, of directories, of the demonstration.
    Tools(Vec<McpServer>),
}

fn offered(args: &ServeArgs, shared: &Shared) -> Result<Offer, Failure> {
    let mut servers = sources::servers(shared)?;
    let others = !servers.is_empty() || !shared.tool_dirs.is_empty();
    if let Some((command, rest)) = args.command.split_first() {
        if others {
            return Err(Failure::usage(
                "offer either a command (behind --), or --mcp and --tools, not both",
            ));
        }
        let server = McpServer::stdio(command, rest.iter().cloned());
        return Ok(Offer::Server(Box::new(server)));
    }
    Ok(match servers.pop() {
        Some(server) if servers.is_empty() && shared.tool_dirs.is_empty() => {
            Offer::Server(Box::new(server))
        }
        last => Offer::Tools(servers.into_iter().chain(last).collect()),
    })
}

/// Offers the tools of several servers and directories, under the names that an agent would see.
async fn with_tools(
    gateway: GatewayBuilder,
    catalog: &ToolCatalog,
    shared: &Shared,
) -> Result<GatewayBuilder, Failure> {
    catalog.load_all(&CancelToken::new()).await;
    let failed = sources::tell_failures(catalog);
    if sources::are_given(shared) && failed == catalog.sources().len() {
        return Err(Failure::new("nothing can be offered"));
    }
    let tools = tools::callable(catalog);
    let offered = tools
        .into_iter()
        .map(|tool| Arc::new(Offered(tool)) as Arc<dyn Tool>);
    Ok(gateway.tools(offered).gate(Arc::new(Gate(catalog.all()))))
}

fn places(mut gateway: GatewayBuilder, args: &ServeArgs) -> Result<GatewayBuilder, Failure> {
    if let (Some(url), Some(subject)) = (&args.nats, &args.subject) {
        let url = nats_url(url, subject, args.codec);
        let config = NatsConfig::from_url(&url)
            .map_err(|error| Failure::usage(format!("--nats: {error}")))?;
        gateway = gateway.nats(config, args.queue.clone());
    }
    if let Some(address) = args.http {
        gateway = gateway.http(GatewayHttpConfig::new(address));
    }
    if args.stdio {
        gateway = gateway.stdio();
    }
    Ok(gateway)
}

/// `nats://HOST:PORT/SUBJECT?OPTIONS`, options of the address first.
fn nats_url(url: &str, subject: &str, codec: Option<Codec>) -> String {
    let (address, options) = url.split_once('?').unwrap_or((url, ""));
    let mut options: Vec<&str> = options
        .split('&')
        .filter(|option| !option.is_empty())
        .collect();
    match codec {
        None => {}
        Some(Codec::Plain) => options.push("codec=plain"),
        Some(Codec::Envelope) => options.push("codec=envelope"),
    }
    let scheme = if address.contains("://") {
        ""
    } else {
        "nats://"
    };
    let mut whole = format!("{scheme}{}/{subject}", address.trim_end_matches('/'));
    if !options.is_empty() {
        whole.push('?');
        whole.push_str(&options.join("&"));
    }
    whole
}

/// A tool under the name that it is registered by.
struct Offered(Arc<RegisteredTool>);

#[async_trait]
impl Tool for Offered {
    fn definition(&self) -> &Arc<ToolDefinition> {
        self.0.definition()
    }

    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        self.0.tool().prepare_arguments(args).await
    }

    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        self.0.tool().validate_required_args(args).await
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.tool().call(args, context).await
    }
}

/// Arguments are accepted as in a run (T-4).
struct Gate(ToolSnapshot);

#[async_trait]
impl ArgsGate for Gate {
    async fn accept(&self, tool: &Arc<dyn Tool>, args: JsonObject) -> Result<ValidArgs, String> {
        match self.0.get(&tool.definition().name) {
            Some(registered) => registered
                .accept(args)
                .await
                .map_err(|error| error.to_string()),
            None => Err(format!("there is no tool {}", tool.definition().name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_and_codec_go_into_the_address() {
        for (url, codec, whole) in [
            ("nats://h:1", None, "nats://h:1/a.b"),
            ("h:1/", Some(Codec::Plain), "nats://h:1/a.b?codec=plain"),
            (
                "tls://h:1?ca=x",
                Some(Codec::Envelope),
                "tls://h:1/a.b?ca=x&codec=envelope",
            ),
        ] {
            assert_eq!(nats_url(url, "a.b", codec), whole);
        }
    }
}
