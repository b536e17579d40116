//! Which model answers: a server's, or the demonstration.
//!
//! Knows: how flags and the environment choose. Does not know: the network.

use std::env;

use yiem::openai::{OpenAiModel, Preset};

use crate::args::Shared;
use crate::failure::Failure;

/// The variable that holds the key, unless another one is named.
const KEY: &str = "OPENAI_API_KEY";

/// Where answers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The demonstration: neither an address nor a key was given.
    Demonstration,
    /// An OpenAI-compatible server.
    Server {
        /// Its address; OpenAI's own without one.
        base_url: Option<String>,
        /// The variable that holds the key; none is sent without one.
        key_from: Option<String>,
        /// The model's id; the server's default without one.
        model: Option<String>,
    },
}

impl Endpoint {
    /// What the flags and the environment say.
    ///
    /// With a key alone the address is OpenAI's; with an address alone no key is sent.
    pub(crate) fn of(shared: &Shared) -> Result<Self, Failure> {
        Self::choose(shared, |name| env::var(name).ok())
    }

    fn choose(shared: &Shared, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let given = |value: &Option<String>| value.clone().filter(|text| !text.trim().is_empty());
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
        let key_from = match &shared.api_key_env {
            Some(name) if !is_set(name) => {
                return Err(Failure::usage(format!(
                    "--api-key-env: the environment has no variable {name}, or it is empty; set it to the key"
                )));
            }
            Some(name) => Some(name.clone()),
            None => is_set(KEY).then(|| KEY.to_owned()),
        };
        if let Some(name) = &shared.compat {
            preset(name)?;
        }
        let base_url = given(&shared.base_url);
        if base_url.is_none() && key_from.is_none() {
            return Ok(Self::Demonstration);
        }
        Ok(Self::Server {
            base_url,
            key_from,
            model: given(&shared.model),
        })
    }

    /// The same with another model.
    pub(crate) fn with_model(mut self, id: &str) -> Self {
        if let Self::Server { model, .. } = &mut self {
            *model = Some(id.to_owned());
        }
        self
    }

    /// The model; `None` is the demonstration.
    pub(crate) fn model(&self, shared: &Shared) -> Result<Option<OpenAiModel>, Failure> {
        let Self::Server {
            base_url,
            key_from,
            model,
        } = self
        else {
            return Ok(None);
        };
        let mut config = OpenAiModel::builder();
        if let Some(base_url) = base_url {
            config = config.base_url(base_url);
        }
        if let Some(name) = key_from {
            config = config.api_key_env(name);
        }
        if let Some(model) = model {
            config = config.model(model);
        }
        if let Some(name) = &shared.compat {
            config = config.preset(preset(name)?);
        }
        config
            .build()
            .map(Some)
            .map_err(|error| Failure::usage(format!("--base-url: {error}")))
    }
}

/// The preset of that name.
fn preset(name: &str) -> Result<Preset, Failure> {
    name.parse()
        .map_err(|error| Failure::usage(format!("--compat: {error}")))
}

/// What was said of a model while the demonstration answers, which has no use for it.
pub(crate) fn unused_by_the_demonstration(shared: &Shared) -> Vec<String> {
    let given = |what: &str, value: &Option<String>| {
        let value = value.as_ref().filter(|text| !text.trim().is_empty())?;
        Some(format!("{what} {value}"))
    };
    [
        given("the model", &shared.model),
        given("the preset", &shared.compat),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser as _;

    fn chosen(flags: &str, variables: &[(&str, &str)]) -> Result<Endpoint, Failure> {
        let words = ["yiem", "chat"].into_iter().chain(flags.split_whitespace());
        let mut shared = Cli::try_parse_from(words).unwrap().shared;
        // What clap reads of the environment of the test itself does not count.
        if !flags.contains("--base-url") {
            shared.base_url = None;
        }
        if !flags.contains("--model") {
            shared.model = None;
        }
        Endpoint::choose(&shared, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn server(base_url: Option<&str>, key_from: Option<&str>, model: Option<&str>) -> Endpoint {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Endpoint::Server {
            base_url: owned(base_url),
            key_from: owned(key_from),
            model: owned(model),
        }
    }

    #[test]
    fn neither_address_nor_key_is_the_demonstration() {
        assert_eq!(chosen("", &[]).unwrap(), Endpoint::Demonstration);
        assert_eq!(
            chosen("--model m", &[("OPENAI_API_KEY", " ")]).unwrap(),
            Endpoint::Demonstration
        );
    }

    #[test]
    fn an_address_alone_goes_without_a_key_and_a_key_alone_to_openai() {
        assert_eq!(
            chosen("--base-url http://x", &[]).unwrap(),
            server(Some("http://x"), None, None)
        );
        assert_eq!(
            chosen("", &[("OPENAI_API_KEY", "k")]).unwrap(),
            server(None, Some("OPENAI_API_KEY"), None)
        );
        assert_eq!(
            chosen(
                "--base-url http://x --model m --api-key-env K",
                &[("K", "k")]
            )
            .unwrap(),
            server(Some("http://x"), Some("K"), Some("m"))
        );
    }

    #[test]
    fn an_address_or_a_preset_that_cannot_be_is_wrong_use() {
        for flags in [
            "--base-url nonsense",
            "--base-url http://x --compat nonsense",
            "--compat nonsense",
        ] {
            let shared = Cli::try_parse_from(["yiem", "chat"].into_iter().chain(flags.split(' ')))
                .unwrap()
                .shared;
            let failure = chosen(flags, &[])
                .and_then(|endpoint| endpoint.model(&shared).map(drop))
                .unwrap_err();
            assert!(failure.line().contains("nonsense"), "{}", failure.line());
        }
    }

    #[test]
    fn a_variable_that_is_named_has_to_be_there() {
        let failure = chosen("--api-key-env NOTHING_HERE", &[]).unwrap_err();
        assert!(
            failure.line().contains("NOTHING_HERE"),
            "{}",
            failure.line()
        );
    }
}
