//! What a catalog has to tell: sources that answered or failed, tools that changed.
//!
//! Knows: the facts. Does not know: who listens.

use std::fmt;
use std::sync::Arc;

use yiem_core::SourceError;

use crate::registry::{ChangedDefinition, QuarantinedTool, SourceChange};

/// Something that happened to an agent's tools, for listeners and logs. `Display` is one line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CatalogNotice {
    /// A source's list is known, or known anew.
    SourceLoaded {
        /// The source's key.
        source: Arc<str>,
        /// How many tools it has now, quarantined ones left out.
        tools: usize,
        /// Its own names of tools that are new.
        added: Vec<String>,
        /// Its own names of tools that are gone.
        removed: Vec<String>,
    },
    /// A source could not be loaded; tools that it gave before stay (M-7).
    SourceFailed {
        /// The source's key.
        source: Arc<str>,
        /// Why.
        error: Arc<SourceError>,
    },
    /// A tool is listed by its source and not offered (T-4).
    Quarantined(QuarantinedTool),
    /// A source says something else of a known tool than before (M-8).
    DefinitionChanged {
        /// What it said, and what it says.
        change: ChangedDefinition,
        /// Whether the tool is held back until it is approved.
        held: bool,
    },
    /// Something odd that is no error.
    Warning {
        /// The source's key.
        source: Arc<str>,
        /// What is odd; names the tool if it is about one.
        text: String,
    },
    /// Notices that nobody took in time and that are gone.
    Lost {
        /// How many.
        count: usize,
    },
}

impl CatalogNotice {
    /// Whether it tells of something that does not work.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::SourceFailed { .. } | Self::Quarantined(_) | Self::Warning { .. }
        )
    }
}

impl fmt::Display for CatalogNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceLoaded {
                source,
                tools,
                added,
                removed,
            } => {
                write!(f, "{source}: {tools} tools")?;
                if !added.is_empty() {
                    write!(f, "; new: {}", added.join(", "))?;
                }
                if !removed.is_empty() {
                    write!(f, "; gone: {}", removed.join(", "))?;
                }
                Ok(())
            }
            // The error names its source itself.
            Self::SourceFailed { error, .. } => write!(f, "{error}"),
            Self::Quarantined(tool) => write!(f, "not offered: {tool}"),
            Self::DefinitionChanged { change, held } => {
                write!(
                    f,
                    "{}: the definition of {} has changed",
                    change.source, change.after.name
                )?;
                if *held {
                    f.write_str("; it is held back until it is approved")?;
                }
                Ok(())
            }
            Self::Warning { source, text } => write!(f, "{source}: {text}"),
            Self::Lost { count } => write!(f, "{count} earlier notices were not taken in time"),
        }
    }
}

/// The notices of a new list.
pub(super) fn of_change(
    source: &Arc<str>,
    change: SourceChange,
    changes: Vec<ChangedDefinition>,
    held: bool,
    warnings: Vec<String>,
    tools: usize,
) -> Vec<CatalogNotice> {
    let SourceChange {
        added,
        removed,
        quarantined,
        warnings: odd,
        ..
    } = change;
    let loaded = CatalogNotice::SourceLoaded {
        source: Arc::clone(source),
        tools,
        added,
        removed,
    };
    let changes = changes.into_iter();
    std::iter::once(loaded)
        .chain(changes.map(|change| CatalogNotice::DefinitionChanged { change, held }))
        .chain(quarantined.into_iter().map(CatalogNotice::Quarantined))
        .chain(
            warnings
                .into_iter()
                .chain(odd)
                .map(|text| CatalogNotice::Warning {
                    source: Arc::clone(source),
                    text,
                }),
        )
        .collect()
}
