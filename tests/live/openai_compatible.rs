//! Real OpenAI-compatible servers of others, on loopback: one that breaks on demand and grades its
//! client, one that plays a script, and a real model.

mod faults;
mod script;
mod small_model;

use yiem::prelude::*;

/// A model behind that port.
fn model(port: u16) -> OpenAiModel {
    config(port).build().expect("a model")
}

fn config(port: u16) -> yiem::openai::OpenAiConfig {
    OpenAiModel::builder()
        .base_url(format!("http://127.0.0.1:{port}/v1"))
        .model("gpt-4o")
        .no_proxy()
}

/// Looks up the weather of a city.
#[yiem::tool]
async fn get_weather(city: String) -> Result<String> {
    Ok(format!("Weather in {city}: Sunny, 22°C"))
}
