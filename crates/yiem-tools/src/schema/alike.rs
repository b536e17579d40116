//! Schemas that are written alike are compiled once.
//!
//! Knows: which compiled schemas somebody still holds. Does not know: how one is compiled.
//!
//! A compiled schema costs some KiB and some hundred microseconds, and thousands of agents in one
//! process have the same tools. Nothing is kept alive: when the last holder lets go, a schema is
//! compiled anew.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use serde_json::Value;

use super::{Inner, SchemaLimits};

/// What makes two schemas one: the text, what it is for, the limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Likeness {
    text: String,
    arguments: bool,
    limits: SchemaLimits,
}

impl Likeness {
    /// Of a schema whose size was checked before.
    pub(super) fn of(schema: &Value, arguments: bool, limits: &SchemaLimits) -> Self {
        Self {
            text: schema.to_string(),
            arguments,
            limits: limits.clone(),
        }
    }
}

/// The compiled schemas that may still be held.
#[derive(Default)]
struct Held {
    schemas: HashMap<Likeness, Weak<Inner>>,
    /// How many there may be before those that nobody holds are swept out.
    sweep_at: usize,
}

static HELD: LazyLock<Mutex<Held>> = LazyLock::new(Mutex::default);

/// A schema that was compiled before and is still held.
pub(super) fn held(likeness: &Likeness) -> Option<Arc<Inner>> {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.schemas.get(likeness)?.upgrade()
}

/// Remembers what was compiled, for as long as somebody holds it.
pub(super) fn remember(likeness: Likeness, schema: &Arc<Inner>) {
    const AT_LEAST: usize = 64;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.schemas.len() >= held.sweep_at {
        held.schemas.retain(|_, schema| schema.strong_count() > 0);
        held.sweep_at = (held.schemas.len() * 2).max(AT_LEAST);
    }
    held.schemas.insert(likeness, Arc::downgrade(schema));
}

#[cfg(test)]
mod tests;
