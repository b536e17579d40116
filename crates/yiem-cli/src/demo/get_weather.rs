//! T's `getWeather`: the same sunny day everywhere, served over MCP.
//!
//! Knows: its schema and its one line of text. Does not know: any weather.

use std::sync::Arc;

use serde_json::{Value, json};
use yiem::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs, async_trait};

/// The tool `getWeather` (T "Tool Anatomy").
#[derive(Debug)]
pub(crate) struct GetWeather(Arc<ToolDefinition>);

impl GetWeather {
    pub(crate) fn new() -> Self {
        Self(Arc::new(ToolDefinition {
            name: "getWeather".into(),
            label: "Weather Lookup".into(),
            description: "Fetch current weather and forecast for a given city.".into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "city": { "type": "string", "description": "City name" },
                    "units": {
                        "type": "string",
                        "enum": ["celsius", "fahrenheit"],
                        "default": "celsius"
                    }
                },
                "required": ["city"]
            }),
            replay: yiem::Replay::Safe,
            ..ToolDefinition::default()
        }))
    }
}

#[async_trait]
impl Tool for GetWeather {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        context
            .progress(json!({"status": "Fetching data..."}))
            .await;
        let text = |key: &str| args.get(key).and_then(Value::as_str).unwrap_or_default();
        Ok(ToolOutput::text(tell(text("city"), text("units"))))
    }
}

fn tell(city: &str, units: &str) -> String {
    let degrees = if units == "fahrenheit" {
        "72°F"
    } else {
        "22°C"
    };
    format!("Weather in {city}: Sunny, {degrees}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weather_is_that_of_t() {
        assert_eq!(tell("Tokyo", ""), "Weather in Tokyo: Sunny, 22°C");
        assert_eq!(tell("Tokyo", "celsius"), "Weather in Tokyo: Sunny, 22°C");
        assert_eq!(tell("Oslo", "fahrenheit"), "Weather in Oslo: Sunny, 72°F");
    }
}
