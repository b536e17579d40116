//! The facade: every promised path is there, and every name of core and agent stands at its root.

#![expect(
    unused_imports,
    reason = "that these paths can be named is what is tested"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

mod at_the_root {
    use yiem::{
        AfterToolCall, Agent, AgentBuilder, AgentConfig, AgentEvent, AgentHook, AgentState,
        ApprovalAnswer, AssistantContent, AssistantMessage, BeforeToolCall, CancelToken, ChatEvent,
        ChatModel, ChatModelExt, ChatRequest, ChatStream, Content, EndReason, Env, Error,
        EventKind, EventSink, FileJournal, History, IntoToolOutput, IntoToolSource, Journal,
        Limits, Memo, Message, MessageAssembler, ModelCost, ModelError, ModelInfo, Outcome, Result,
        Run, RunError, Step, StopReason, Tool, ToolCall, ToolCallId, ToolContext, ToolDefinition,
        ToolError, ToolExecution, ToolOutput, ToolResultMessage, ToolSource, TransformContext,
        Usage, UserMessage, ValidArgs, async_trait, event_sink, model_fn,
    };
}

mod in_modules {
    use yiem::mcp::{
        Dialect, Exchange, JsonRpcError, McpClient, McpConfig, McpError, McpServer, McpToolSource,
        ProtocolVersion, ToolServer, Transport,
    };
    use yiem::mcp::{HttpTransport, StdioTransport};
    use yiem::openai::{
        ChunkDecoder, Compat, JsonModel, OfferedTools, Preset, RequestEncoder, llm_call,
    };
    use yiem::tools::{
        ArgsValidator, Discovery, FunctionTool, InputSchema, ListTools, SearchTools, SourceId,
        ToolCatalog, ToolRegistry, ToolSnapshot, ValidationError,
    };
}

mod in_the_prelude {
    use yiem::prelude::{
        Agent, AgentHook, ChatModel, ChatModelExt, Content, FunctionTool, McpServer, Message,
        Outcome, Result, Tool, ToolContext, ToolError, ToolOutput, async_trait, model_fn,
    };
}

/// The names that a root file exports by `pub use`.
fn exported(crate_name: &str) -> BTreeSet<String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../crates/{crate_name}/src/lib.rs"));
    let text = fs::read_to_string(&path).expect("the crate's root file");
    let mut names = BTreeSet::new();
    for item in text.split("pub use ").skip(1) {
        let item = item.split(';').next().unwrap_or_default();
        let list = match item.split_once('{') {
            Some((_, list)) => list.trim_end_matches('}'),
            None => match item.rsplit_once("::") {
                Some((_, name)) => name,
                // A crate as a whole, for who names its types; the facade has these itself.
                None => continue,
            },
        };
        let plain = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names.extend(plain.map(str::to_owned));
    }
    names
}

#[test]
fn every_name_of_core_and_agent_is_at_the_root() {
    let facade = exported("yiem");
    for below in ["yiem-core", "yiem-agent"] {
        let names = exported(below);
        assert!(names.len() > 30, "{below}: {names:?}");
        let missing: Vec<&String> = names.difference(&facade).collect();
        assert_eq!(
            missing,
            Vec::<&String>::new(),
            "{below} has names that the facade lacks"
        );
    }
}

/// Handles, values, errors and streams may go to any thread, whatever is put into them.
#[test]
fn what_the_facade_gives_goes_to_any_thread() {
    fn any_thread<T: Send + Sync + 'static>() {}
    fn moves<T: Send + 'static>() {}
    any_thread::<yiem::Agent>();
    moves::<yiem::AgentBuilder>();
    any_thread::<yiem::AgentEvent>();
    any_thread::<yiem::Outcome>();
    any_thread::<yiem::Subscription>();
    any_thread::<yiem::History>();
    any_thread::<yiem::ToolContext>();
    any_thread::<yiem::mcp::McpClient>();
    any_thread::<yiem::mcp::McpServer>();
    any_thread::<yiem::openai::OpenAiModel>();
    any_thread::<yiem::tools::ToolCatalog>();
    any_thread::<yiem::Error>();
    any_thread::<yiem::BuildError>();
    any_thread::<yiem::ModelError>();
    any_thread::<yiem::RunError>();
    any_thread::<yiem::ToolError>();
    any_thread::<yiem::mcp::McpError>();
    any_thread::<yiem::openai::BrokenReply>();
    moves::<yiem::ChatStream>();
    moves::<yiem::PromptFuture>();
    moves::<yiem::PromptStream>();
}
