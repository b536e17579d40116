//! Tracing: the spans of a run as a tree, with the attribute names of the OpenTelemetry GenAI
//! conventions. A real program hands them to an exporter.
//!
//! `cargo run -p yiem --example trace_tree`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use yiem::prelude::*;

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> Result<i64> {
    Ok(a + b)
}

#[derive(Default)]
struct SpanOf {
    parent: Option<u64>,
    name: &'static str,
    fields: String,
}

/// Keeps every span of this crate's, by its number.
#[derive(Clone, Default)]
struct Tree(Arc<Mutex<BTreeMap<u64, SpanOf>>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Tree {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<u64, SpanOf>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn print(&self, parent: Option<u64>, depth: usize) {
        let spans: Vec<(u64, String)> = self.with(|spans| {
            let children = spans.iter().filter(|(_, s)| s.parent == parent);
            children
                .map(|(id, s)| (*id, format!("{}{}", s.name, s.fields)))
                .collect()
        });
        for (id, line) in spans {
            println!("{}{line}", "  ".repeat(depth));
            self.print(Some(id), depth + 1);
        }
    }
}

impl Subscriber for Tree {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("yiem")
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = String::new();
        span.record(&mut Fields(&mut fields));
        self.with(|spans| {
            let id = spans.len() as u64 + 1;
            let parent = span.parent().map(Id::into_u64);
            spans.insert(
                id,
                SpanOf {
                    parent,
                    name: span.metadata().name(),
                    fields,
                },
            );
            Id::from_u64(id)
        })
    }
    fn record(&self, span: &Id, values: &Record<'_>) {
        self.with(|spans| {
            if let Some(span) = spans.get_mut(&span.into_u64()) {
                values.record(&mut Fields(&mut span.fields));
            }
        });
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::main]
async fn main() -> Result<()> {
    let tree = Tree::default();
    tracing::subscriber::set_global_default(tree.clone())?;
    let model = offline::calling(vec![
        ("add", json!({ "a": 1, "b": 2 })),
        ("add", json!({ "a": 3, "b": 4 })),
    ]);
    let agent = Agent::builder(model).name("adder").tool(add).build()?;
    println!("{}\n", agent.prompt("Add them up.").await?);
    tree.print(None, 0);
    Ok(())
}
