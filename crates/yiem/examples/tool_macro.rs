//! `#[tool]`: async functions as tools, with documented parameters, defaults, the call's context
//! and values of the application.
//!
//! `cargo run -p yiem --example tool_macro`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use yiem::prelude::*;

#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Units {
    #[default]
    Celsius,
    Fahrenheit,
}

/// What the application hands in.
struct Station {
    name: String,
}

/// Current weather of a city.
#[tool(timeout = "20s", replay = safe)]
async fn get_weather(
    /// Name of the city, in English.
    city: String,
    /// How many days ahead.
    #[arg(default = 1)]
    days: u8,
    #[arg(default)] units: Units,
    context: ToolContext,
) -> Result<String, ToolError> {
    let station = context.dep::<Station>()?;
    context
        .progress(json!({ "status": format!("asking {}", station.name) }))
        .await;
    Ok(format!(
        "Weather in {city} in {days} days: sunny, 22° ({units:?})"
    ))
}

/// A forecast, as JSON that is held against its schema.
#[derive(Serialize, JsonSchema)]
struct Forecast {
    city: String,
    degrees: Vec<f64>,
}

/// The next three days of a city.
#[tool(output_schema)]
async fn forecast(city: String) -> Result<Forecast> {
    Ok(Forecast {
        city,
        degrees: vec![21.0, 22.5, 19.0],
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let model = offline::calling(vec![
        (
            "get_weather",
            json!({ "city": "Tokyo", "days": "2", "units": "celsius" }),
        ),
        ("get_weather", json!({ "town": "Tokyo" })),
        ("get_weather", json!({ "city": "Oslo", "units": "kelvin" })),
        ("forecast", json!({ "city": "Oslo" })),
    ]);
    let agent = Agent::builder(model)
        .tool(get_weather)
        .tool(forecast)
        .dep(Station {
            name: "the weather station".to_owned(),
        })
        .build()?;
    println!("{}", agent.prompt("What's the weather?").await?.ok()?);
    // It is still the function that it was.
    println!("{}", forecast("Rome".to_owned()).await?.degrees.len());
    Ok(())
}
