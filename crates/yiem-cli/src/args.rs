//! The command line, as data.
//!
//! Knows: every command, flag and variable, and what stands in the help.
//! Does not know: what they do.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// What stands at the end of the help.
const EXAMPLES: &str = "\
Examples:
  yiem run \"What's the weather in Tokyo?\"
  yiem chat --base-url http://127.0.0.1:8080/v1 --model my-model --tools ./tools
  yiem tools --mcp 'files=stdio:npx -y @modelcontextprotocol/server-filesystem /tmp'
  yiem call getWeather '{\"city\": \"Tokyo\"}'
  yiem serve --http 127.0.0.1:8080 -- npx -y @modelcontextprotocol/server-everything";

/// Agents that use tools, locally and over MCP.
///
/// Without an endpoint (--base-url, or OPENAI_API_KEY or OPENAI_BASE_URL in the environment) a
/// built-in demonstration answers, which needs no network and is no language model.
#[derive(Debug, Parser)]
#[command(name = "yiem", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask once: the answer on standard output, progress on standard error
    Run(RunArgs),
    /// Talk in the terminal
    Chat,
    /// List the tools of the given servers and directories
    Tools(ToolsArgs),
    /// Call one tool, its arguments checked as in a run
    Call(CallArgs),
    /// Offer an MCP server, or the given tools, over NATS, HTTP or standard input and output
    Serve(ServeArgs),
    /// Read or write the OpenAI chat format: a case as JSON on standard input
    Wire {
        #[command(subcommand)]
        direction: Wire,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to ask; `-` takes the text from standard input
    #[arg(required = true, value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Print every event as a JSON line instead of the answer
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the tool calls on standard error, also when it is not a terminal
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print the answer alone: no tool calls, no spinner; warnings and errors are still told
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Print a JSON list instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Its arguments as a JSON object; `-` takes them from standard input, none means {}
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) arguments: Option<String>,
    /// Print the whole result as JSON instead of its text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve over NATS at this address (nats://HOST:PORT)
    #[arg(long, value_name = "URL", requires = "subject")]
    pub(crate) nats: Option<String>,
    /// The NATS subject that requests come on
    #[arg(long, value_name = "SUBJECT", requires = "nats")]
    pub(crate) subject: Option<String>,
    /// The NATS queue group: gateways of one group share the load
    #[arg(long, value_name = "GROUP", requires = "nats")]
    pub(crate) queue: Option<String>,
    /// How messages are packed on NATS
    #[arg(long, value_enum, value_name = "CODEC", requires = "nats")]
    pub(crate) codec: Option<Codec>,
    /// Serve over HTTP on this address (HOST:PORT; port 0 takes a free one)
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve on standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,
    /// The MCP server to offer: a command that is started
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OAuthChoice {
    /// A person agrees in a browser
    Browser,
    /// Nobody is asked: the client has an id (--oauth-client-id), and a secret (--oauth-secret-env)
    /// or a private key (--oauth-key-file)
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Codec {
    /// The JSON-RPC message as it is
    Plain,
    /// The msghandler envelope
    Envelope,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Wire {
    /// Read a server's answer; prints what was read as one JSON object
    Decode,
    /// Write a conversation; prints the body of the request
    Encode,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Shared options")]
pub(crate) struct Shared {
    /// The address of an OpenAI-compatible API, such as http://127.0.0.1:8080/v1
    #[arg(
        long,
        value_name = "URL",
        global = true,
        env = "OPENAI_BASE_URL",
        hide_env_values = true
    )]
    pub(crate) base_url: Option<String>,
    /// The model's id
    #[arg(
        long,
        value_name = "ID",
        global = true,
        env = "OPENAI_MODEL",
        hide_env_values = true
    )]
    pub(crate) model: Option<String>,
    /// The environment variable that holds the API key [default: OPENAI_API_KEY]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) api_key_env: Option<String>,
    /// The server's ways: openai, vllm, lmstudio, llamacpp, ollama, mistral, deepseek, gemini,
    /// openrouter, groq
    #[arg(long, value_name = "PRESET", global = true)]
    pub(crate) compat: Option<String>,
    /// The system prompt, or @FILE to read it from a file
    #[arg(
        long,
        value_name = "TEXT|@FILE",
        global = true,
        allow_hyphen_values = true
    )]
    pub(crate) system: Option<String>,
    /// An MCP server: NAME=stdio:COMMAND ARGS, NAME=http://…, or NAME=nats://HOST:PORT/SUBJECT;
    /// may be given again
    #[arg(long, value_name = "SPEC", global = true)]
    pub(crate) mcp: Vec<String>,
    /// A file with the `mcpServers` map that other MCP clients use; may be given again
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Authorize at --mcp servers over HTTP that want it: by a browser, whose address is printed, or as a
    /// client with an id and a secret or a private key of its own
    #[arg(long, value_enum, value_name = "HOW", global = true)]
    pub(crate) oauth: Option<OAuthChoice>,
    /// The client's id at the authorization server; without one, the client registers itself
    #[arg(long, value_name = "ID", global = true, requires = "oauth")]
    pub(crate) oauth_client_id: Option<String>,
    /// The variable that holds the client's secret
    #[arg(
        long,
        value_name = "VARIABLE",
        global = true,
        requires = "oauth_client_id"
    )]
    pub(crate) oauth_secret_env: Option<String>,
    /// The file with the client's private key in PEM, which signs who it is (private_key_jwt)
    #[arg(
        long,
        value_name = "FILE",
        global = true,
        requires = "oauth_client_id",
        conflicts_with = "oauth_secret_env"
    )]
    pub(crate) oauth_key_file: Option<PathBuf>,
    /// The id under which the authorization server knows that key
    #[arg(long, value_name = "ID", global = true, requires = "oauth_key_file")]
    pub(crate) oauth_key_id: Option<String>,
    /// A scope to ask for, instead of what the server says; again and again
    #[arg(
        long = "oauth-scope",
        value_name = "SCOPE",
        global = true,
        requires = "oauth"
    )]
    pub(crate) oauth_scopes: Vec<String>,
    /// A directory of tools written in JavaScript; may be given again
    #[arg(long = "tools", value_name = "DIR", global = true)]
    pub(crate) tool_dirs: Vec<PathBuf>,
    /// Let the model write tools of its own into the first --tools directory
    #[arg(long, global = true)]
    pub(crate) allow_write_tools: bool,
    /// Keep the conversation in this file, and go on from it
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) session: Option<PathBuf>,
    /// The most model replies per run; 0 is no limit [default: 50]
    #[arg(
        long,
        value_name = "N",
        global = true,
        allow_negative_numbers = true,
        value_parser = count
    )]
    pub(crate) max_turns: Option<u32>,
    /// Run the calls of one reply one after another
    #[arg(long, global = true)]
    pub(crate) sequential: bool,
    /// Which tools of servers the model is offered at first
    #[arg(
        long,
        value_enum,
        value_name = "POLICY",
        global = true,
        default_value = "auto"
    )]
    pub(crate) discovery: DiscoveryChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiscoveryChoice {
    /// Only `listTools`, which brings the others
    OnDemand,
    /// All
    Eager,
    /// All, up to 16 tools; else `listTools`
    Auto,
}

/// A number of 0 and above.
fn count(text: &str) -> Result<u32, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("write a whole number from 0 to {}", u32::MAX))
}

/// An address to listen on; a name such as `localhost` is looked up.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| "write HOST:PORT, such as 127.0.0.1:8080 or localhost:8080".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn read(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_stand_before_or_behind_the_command() {
        for line in [
            "yiem --model m --mcp a=stdio:b --mcp c=http://d run hello world",
            "yiem run hello --mcp a=stdio:b world --model m --mcp c=http://d",
        ] {
            let cli = read(line).unwrap();
            assert_eq!(cli.shared.model.as_deref(), Some("m"), "{line}");
            assert_eq!(cli.shared.mcp.len(), 2, "{line}");
            let Command::Run(run) = cli.command else {
                panic!("not run: {line}");
            };
            assert_eq!(run.prompt, ["hello", "world"]);
        }
    }

    #[test]
    fn wrong_use_is_refused() {
        for line in [
            "yiem",
            "yiem run",
            "yiem nonsense",
            "yiem run hi --max-turns many",
            "yiem run hi --discovery never",
            "yiem wire",
            "yiem call",
            "yiem run -v -q hi",
            "yiem serve --nats nats://x",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn an_address_to_listen_on_may_be_a_name() {
        for (given, port) in [("127.0.0.1:8080", 8080), ("localhost:0", 0), ("[::1]:9", 9)] {
            let cli = Cli::try_parse_from(["yiem", "serve", "--http", given]).unwrap();
            let Command::Serve(serve) = cli.command else {
                panic!("not serve");
            };
            let address = serve.http.unwrap();
            assert!(address.ip().is_loopback() && address.port() == port);
        }
        for given in ["8080", ":8080", "localhost", "127.0.0.1:99999"] {
            let error = Cli::try_parse_from(["yiem", "serve", "--http", given]).unwrap_err();
            assert!(error.to_string().contains("HOST:PORT"), "{given}: {error}");
        }
        for given in ["-1", "many", "1.5", "99999999999"] {
            let line = ["yiem", "run", "hi", "--max-turns", given];
            let error = Cli::try_parse_from(line).unwrap_err();
            assert!(
                error.to_string().contains("whole number"),
                "{given}: {error}"
            );
        }
    }

    #[test]
    fn what_serve_runs_stands_behind_two_dashes() {
        let cli = read("yiem serve --stdio -- npx -y server --flag").unwrap();
        let Command::Serve(serve) = cli.command else {
            panic!("not serve");
        };
        assert_eq!(serve.command, ["npx", "-y", "server", "--flag"]);
    }
}
