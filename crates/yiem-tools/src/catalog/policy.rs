//! What a model is offered of the tools of sources, as settings (T-5, M-8).
//!
//! Knows: the choices. Does not know: what comes of them; the catalog does.

/// When a model is offered the tools of sources (T-5). One's own tools are always offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Discovery {
    /// First only `listTools` is offered; when the model calls it, the sources are asked, and
    /// their tools are offered from then on (R "Tool Discovery"). Until then the source tasks
    /// only connect them ([`ToolSource::connect`](yiem_core::ToolSource::connect)), unless they are required.
    #[default]
    OnDemand,
    /// All of them, as soon as their source has answered; `listTools` as well until all have.
    Eager,
    /// Eager up to this many tools in all, one's own included; on demand beyond.
    Auto {
        /// The most tools that are offered without being asked for.
        up_to: usize,
    },
}

impl Discovery {
    /// Eager up to 16 tools in all, else on demand.
    pub const AUTO: Self = Self::Auto { up_to: 16 };
}

/// Which tools for finding tools a model is offered, while there are tools to be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finder {
    /// `listTools`: all of them at once.
    #[default]
    List,
    /// `searchTools` in place of the list: those that fit some words.
    Search,
    /// Both.
    Both,
}

/// What happens when a source says something else of a tool than before (M-8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangedDefinitions {
    /// The new definition is used, and a notice tells of it.
    #[default]
    Accept,
    /// The tool is held back until [`ToolCatalog::approve`](super::ToolCatalog::approve) is called for it, and a notice
    /// tells of it.
    Hold,
}
