//! `yiem tools`: what there is to call.
//!
//! Knows: the table and the list. Does not know: how tools are called.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use serde_json::{Value, json};
use yiem::SystemEnv;
use yiem::mcp::{McpServer, McpToolSource};
use yiem::tools::{RegisteredTool, ToolCatalog};

use crate::args::{Shared, ToolsArgs};
use crate::failure::Failure;
use crate::patience;
use crate::screen::{Style, on_one_line, terminal_width};
use crate::sources;

pub(crate) async fn run(args: &ToolsArgs, shared: &Shared) -> Result<(), Failure> {
    let catalog = catalog(sources::servers(shared)?, shared)?;
    patience::load_all(&catalog).await;
    let failed = sources::tell_failures(&catalog);
    let tools = callable(&catalog);
    let out = io::stdout();
    let text = if args.json {
        let list: Vec<Value> = tools.iter().map(|tool| as_json(tool)).collect();
        format!("{:#}\n", Value::from(list))
    } else {
        let width = out.is_terminal().then(terminal_width);
        table(&tools, Style::of(&out), width)
    };
    catalog.close().await;
    write_out(&text)?;
    if sources::are_given(shared) && failed == catalog.sources().len() {
        return Err(Failure::told());
    }
    Ok(())
}

/// The tools of these servers and the given directories; of the demonstration where nothing was
/// given.
pub(crate) fn catalog(servers: Vec<McpServer>, shared: &Shared) -> Result<ToolCatalog, Failure> {
    let given = sources::sources(servers, shared, None)?;
    let mut builder = ToolCatalog::builder();
    if !sources::are_given(shared) {
        let (tool, server) = sources::demonstration();
        let source = McpToolSource::new(server, SystemEnv::shared()).map_err(Failure::new)?;
        builder = builder.tool(tool).source(source);
    }
    for source in given {
        builder = builder.shared_source(source);
    }
    builder.build().map_err(Failure::usage)
}

/// All tools but those that only find others.
pub(crate) fn callable(catalog: &ToolCatalog) -> Vec<Arc<RegisteredTool>> {
    let builtin = yiem::tools::SourceId::Builtin;
    catalog
        .all()
        .iter()
        .filter(|tool| *tool.source() != builtin)
        .cloned()
        .collect()
}

fn as_json(tool: &RegisteredTool) -> Value {
    let definition = tool.definition();
    let mut object = json!({
        "name": definition.name,
        "label": definition.label,
        "description": definition.description,
        "source": tool.source().key(),
        "inputSchema": definition.input_schema,
    });
    if let Some(schema) = &definition.output_schema {
        object["outputSchema"] = schema.clone();
    }
    if let Some(annotations) = &definition.annotations {
        object["annotations"] = annotations.clone();
    }
    object
}

/// Name, source and description in columns; cut to the width of a terminal, if it is one.
pub(crate) fn table(tools: &[Arc<RegisteredTool>], style: Style, width: Option<usize>) -> String {
    if tools.is_empty() {
        return "no tools\n".into();
    }
    let rows: Vec<[String; 3]> = tools
        .iter()
        .map(|tool| {
            let definition = tool.definition();
            let label = Some(&definition.label)
                .filter(|label| !label.is_empty() && **label != definition.name);
            let about = match label {
                Some(label) => format!("{label} — {}", definition.description),
                None => definition.description.clone(),
            };
            let source = tool.source().key().unwrap_or("-");
            [
                definition.name.clone(),
                on_one_line(source, 64),
                on_one_line(&about, 10_000),
            ]
        })
        .collect();
    let widest = |column: usize, title: &str| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(title.len())
    };
    let (names, sources) = (widest(0, "TOOL"), widest(1, "FROM"));
    let left = width.map(|width| width.saturating_sub(names + sources + 5).max(20));
    let mut text = style.bold(&format!("{:names$}  {:sources$}  ABOUT", "TOOL", "FROM"));
    text.push('\n');
    for [name, source, about] in rows {
        let about = left.map_or(about.clone(), |left| on_one_line(&about, left));
        let source = style.dim(&format!("{source:sources$}"));
        text.push_str(format!("{name:names$}  {source}  {about}").trim_end());
        text.push('\n');
    }
    text
}

/// Writes to standard output; a reader that has gone is no failure.
pub(crate) fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    Failure::unless_written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[tokio::test]
    async fn tools_stand_in_columns() {
        let (tool, _) = sources::demonstration();
        let catalog = ToolCatalog::builder().tool(tool).build().unwrap();
        expect![[r#"
            TOOL     FROM  ABOUT
            getTime  -     Time Lookup — Get current local time for a timezone or city.
        "#]]
        .assert_eq(&table(&callable(&catalog), Style::PLAIN, None));
        expect![[r#"
            TOOL     FROM  ABOUT
            getTime  -     Time Lookup — Get c…
        "#]]
        .assert_eq(&table(&callable(&catalog), Style::PLAIN, Some(36)));
        assert_eq!(table(&[], Style::PLAIN, None), "no tools\n");
    }
}
