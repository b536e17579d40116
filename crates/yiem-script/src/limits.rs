//! How much a script may use, and what it may reach.
//!
//! Knows: numbers, names and their defaults. Does not know: who keeps to them.

use std::time::Duration;

#[cfg(feature = "fetch")]
use crate::fetch::FetchGrant;

/// What one call of a script may use (T-7). A limit ends that call with an error that the model
/// reads, and nothing else.
///
/// Start from `ScriptLimits::default()` and change what should differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptLimits {
    /// The most bytes of memory that the engine may hold for the call; 32 MiB. At least 1 MiB
    /// is always given.
    pub memory: usize,
    /// The most bytes of stack; 256 KiB. Held between 64 KiB and 4 MiB.
    pub stack: usize,
    /// The longest that its code may run; 5 s. Waiting for the host (a fetch, another tool, a
    /// listener that is behind) does not count.
    pub running: Duration,
    /// The longest that the whole call may take, waiting included; 120 s.
    pub total: Duration,
    /// The most characters of JSON of its result, and of each progress report or request; 1 MiB.
    pub output: usize,
    /// The most bytes of a tool file; 256 KiB.
    pub source: usize,
    /// The most log lines of one call; 1,000. Further ones are dropped.
    pub log_lines: usize,
    /// The most requests to the host (fetch, other tools) that may be open at once; 16.
    pub open_requests: usize,
    /// The most scripts of one engine that are alive at once; 64. Others wait for their turn,
    /// within their `total`.
    pub scripts: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            memory: 32 << 20,
            stack: 256 << 10,
            running: Duration::from_secs(5),
            total: Duration::from_secs(120),
            output: 1 << 20,
            source: 256 << 10,
            log_lines: 1_000,
            open_requests: 16,
            scripts: 64,
        }
    }
}

impl ScriptLimits {
    /// The stack as the engine is told it.
    pub(crate) fn stack_bytes(&self) -> usize {
        self.stack.clamp(64 << 10, 4 << 20)
    }

    /// The memory as the engine is told it.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.max(1 << 20)
    }
}

/// What a script may reach beyond its own values: each is a function of `host` (T-7).
///
/// Start from `ScriptGrants::default()`: `log`, `progress` and `call_tool` are granted, `fetch`
/// is not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScriptGrants {
    /// `host.log(…)` and `console.log(…)`: lines to `tracing`, with the tool's name.
    pub log: bool,
    /// `host.progress(value)`: the call's progress, as `toolExecutionUpdate`.
    pub progress: bool,
    /// `await host.callTool(name, args)`: another tool of the same agent, through its whole
    /// pipeline: validation, hooks, approval, limits.
    pub call_tool: bool,
    /// `await host.fetch(url, options)`: HTTP to the hosts of a list.
    #[cfg(feature = "fetch")]
    pub fetch: Option<FetchGrant>,
}

impl Default for ScriptGrants {
    fn default() -> Self {
        Self {
            log: true,
            progress: true,
            call_tool: true,
            #[cfg(feature = "fetch")]
            fetch: None,
        }
    }
}
