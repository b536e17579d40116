//! Test kit: a scripted model, cassettes of real replies, clocks, tools that misbehave, transcripts,
//! scenarios, fake servers, conformance suites.
//!
//! Only ever a dev-dependency. [`ScriptedModel`] stands in for the model of an agent of one's own, and fails a test
//! whose request a strict server would refuse; [`Scenario`] is a whole conversation as a text, played on a paused
//! clock (`#[tokio::test(start_paused = true)]`):
//!
//! ```
//! use yiem_test::Scenario;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario: Scenario = r#"
//! tool getWeather slow 2s "Sunny"
//! model: call getWeather {}
//! model: say "It is sunny."
//! user: How is it?
//! "#
//! .parse()?;
//! let played = scenario.play().await?;
//! assert!(played.transcript().contains("toolExecutionEnd call_1 ok \"Sunny\""));
//! assert_eq!(played.letters(), "u a t a");
//! # Ok(())
//! # }
//! ```

pub mod cassette;
pub mod clock;
pub mod conformance;
pub mod model;
pub mod scenario;
pub mod server;
pub mod tool;
pub mod transcript;

pub use cassette::{RecordingModel, ReplayModel};
pub use clock::{ManualEnv, PausedEnv};
pub use model::{Reply, ScriptedModel, check_request};
pub use scenario::{Played, Scenario};
pub use tool::TestTool;
pub use transcript::Events;
