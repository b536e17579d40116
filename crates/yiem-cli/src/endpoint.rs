//! Which model answers: a server's, or the demonstration.
//!
//! Knows: how flags and the environment choose. Does not know: the network.

use std::env;
use std::sync::Arc;

use yiem::ChatModel;

use crate::args::Shared;
use crate::failure::Failure;

/// The address of OpenAI's own API, taken when there is a key and no address.
const OPENAI: &str = "https://api.openai.com/v1";

/// The variable that holds the key, unless another one is named.
const KEY: &str = "OPENAI_API_KEY";

/// Where answers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The demonstration: neither an address nor a key was given.
    Demonstration,
    /// An OpenAI-compatible server.
    Server {
        /// Its address.
        base_url: String,
        /// The variable that holds the key; none is sent without one.
        key_from: Option<String>,
        /// The model's id.
        model: String,
    },
}

impl Endpoint {
    /// What the flags and the environment say.
    ///
    /// With a key alone the address is OpenAI's; with an address alone no key is sent.
    pub(crate) fn of(shared: &Shared) -> Result<Self, Failure> {
        Self::choose(shared, |name| env::var(name).ok())
    }

    /// The same with another model.
    pub(crate) fn with_model(&self, id: &str) -> Self {
        match self {
            Self::Demonstration => Self::Demonstration,
            Self::Server {
                base_url, key_from, ..
            } => Self::Server {
                base_url: base_url.clone(),
                key_from: key_from.clone(),
                model: id.to_owned(),
            },
        }
    }

    /// The model; `None` is the demonstration.
    pub(crate) fn model(&self, shared: &Shared) -> Result<Option<Arc<dyn ChatModel>>, Failure> {
        let _ = shared;
        match self {
            Self::Demonstration => Ok(None),
            Self::Server { .. } => Err(Failure::new("not there yet")),
        }
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
        let base_url = match (given(&shared.base_url), &key_from) {
            (Some(base_url), _) => base_url,
            (None, Some(_)) => OPENAI.to_owned(),
            (None, None) => return Ok(Self::Demonstration),
        };
        let model = given(&shared.model).unwrap_or_else(|| {
            // Servers of a single model take any name.
            if base_url == OPENAI {
                "gpt-5-mini"
            } else {
                "default"
            }
            .to_owned()
        });
        Ok(Self::Server {
            base_url,
            key_from,
            model,
        })
    }
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

    fn server(base_url: &str, key_from: Option<&str>, model: &str) -> Endpoint {
        Endpoint::Server {
            base_url: base_url.into(),
            key_from: key_from.map(Into::into),
            model: model.into(),
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
            server("http://x", None, "default")
        );
        assert_eq!(
            chosen("", &[("OPENAI_API_KEY", "k")]).unwrap(),
            server(OPENAI, Some("OPENAI_API_KEY"), "gpt-5-mini")
        );
        assert_eq!(
            chosen(
                "--base-url http://x --model m --api-key-env K",
                &[("K", "k")]
            )
            .unwrap(),
            server("http://x", Some("K"), "m")
        );
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
