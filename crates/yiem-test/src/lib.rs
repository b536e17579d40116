//! Test kit: a scripted model, cassettes of real replies, clocks, tools that misbehave, transcripts,
//! scenarios, fake servers, conformance suites.
//!
//! Only ever a dev-dependency.

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
