//! T's `getTime`: the time of day in a city or timezone, with a check of its own.
//!
//! Knows: when its arguments will do, and how a time is written.
//! Does not know: who asks; the clock is the call's environment.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use yiem::{
    ArgsCheck, JsonObject, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs,
    async_trait,
};

use super::place;

/// The tool `getTime` (T "Custom Validation Hook").
#[derive(Debug)]
pub(crate) struct GetTime(Arc<ToolDefinition>);

impl GetTime {
    pub(crate) fn new() -> Self {
        Self(Arc::new(ToolDefinition {
            name: "getTime".into(),
            label: "Time Lookup".into(),
            description: "Get current local time for a timezone or city.".into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "timezone": {
                        "type": "string",
                        "description": "IANA timezone, e.g. 'America/New_York'"
                    },
                    "city": { "type": "string", "description": "City name" }
                }
            }),
            parallel: Some(true),
            replay: yiem::Replay::Safe,
            ..ToolDefinition::default()
        }))
    }
}

#[async_trait]
impl Tool for GetTime {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        check(args).map_or(ArgsCheck::Accept, ArgsCheck::Reject)
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        context
            .progress(json!({"status": "Looking at the clock..."}))
            .await;
        let (place, zone) = locate(&args)?;
        let now = Timestamp::from_millisecond(context.env.now().as_millis())?;
        Ok(ToolOutput::text(tell(&place, now, zone)))
    }
}

/// What is wrong with the arguments, in T's two texts.
///
/// T's pattern knows letters alone and would refuse the very name that its text recommends;
/// the digits and signs of IANA names (`America/New_York`, `Etc/GMT+5`) are let in here.
fn check(args: &JsonObject) -> Option<String> {
    let timezone = args.get("timezone").filter(|value| !value.is_null());
    let city = match args.get("city") {
        None | Some(Value::Null) => true,
        Some(Value::String(city)) => city.is_empty(),
        Some(_) => false,
    };
    match timezone {
        None if city => {
            Some("Missing required argument: provide at least one of 'timezone' or 'city'".into())
        }
        None => None,
        Some(timezone) => {
            let timezone = as_text(timezone);
            (!has_iana_form(&timezone)).then(|| {
                format!(
                    "Invalid timezone format: '{timezone}'. Use IANA format, e.g. 'America/New_York'"
                )
            })
        }
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether a name looks like `Area/City` or `Area/Country/City`.
fn has_iana_form(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_+-".contains(c))
    };
    name.contains('/') && name.split('/').all(is_part)
}

/// The name to tell and the timezone to look at; the timezone counts when both were given.
fn locate(args: &JsonObject) -> Result<(String, TimeZone), ToolError> {
    let text = |key: &str| {
        args.get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    if let Some(name) = text("timezone") {
        let zone = place::timezone(name).ok_or_else(|| {
            ToolError::new(format!(
                "Unknown timezone: '{name}'. Use the name of an IANA timezone, e.g. 'America/New_York'"
            ))
        })?;
        return Ok((text("city").unwrap_or(name).to_owned(), zone));
    }
    let city = text("city").unwrap_or_default();
    let zone = place::find(city).and_then(|found| place::timezone(found.zone)).ok_or_else(|| {
        ToolError::new(format!(
            "Unknown city: '{city}'. Give its 'timezone' in IANA format, e.g. 'America/New_York'"
        ))
    })?;
    Ok((city.to_owned(), zone))
}

/// `Time in Tokyo: 12:45:10, Monday, 30 November 2026 (Asia/Tokyo, UTC+09:00)`.
fn tell(place: &str, now: Timestamp, zone: TimeZone) -> String {
    let local = now.to_zoned_datetime(zone);
    let name = local.time_zone().iana_name().unwrap_or("UTC").to_owned();
    format!(
        "Time in {place}: {} ({name}, UTC{})",
        local.strftime("%H:%M:%S, %A, %-d %B %Y"),
        local.strftime("%:z")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> JsonObject {
        serde_json::from_value(value).unwrap()
    }

    const MISSING: &str = "Missing required argument: provide at least one of 'timezone' or 'city'";

    #[test]
    fn the_check_has_the_two_texts_of_t() {
        for args in [
            json!({}),
            json!({"city": ""}),
            json!({"timezone": null}),
            json!({"city": null}),
        ] {
            assert_eq!(
                check(&object(args.clone())).as_deref(),
                Some(MISSING),
                "{args}"
            );
        }
        for bad in [
            "Tokyo",
            "",
            "JST",
            "America/",
            "/Tokyo",
            "America//X",
            "A b/C",
            "5/6",
            "Asia/東京",
        ] {
            assert_eq!(
                check(&object(json!({"timezone": bad}))),
                Some(format!(
                    "Invalid timezone format: '{bad}'. Use IANA format, e.g. 'America/New_York'"
                ))
            );
        }
        assert_eq!(
            check(&object(json!({"timezone": 9, "city": "Tokyo"}))).as_deref(),
            Some("Invalid timezone format: '9'. Use IANA format, e.g. 'America/New_York'")
        );
    }

    #[test]
    fn the_check_lets_in_what_can_be_looked_up() {
        for args in [
            json!({"city": "Tokyo"}),
            json!({"timezone": "Asia/Tokyo"}),
            json!({"timezone": "America/New_York", "city": ""}),
            json!({"timezone": "America/Argentina/Buenos_Aires"}),
            json!({"timezone": "Etc/GMT+5"}),
            json!({"timezone": null, "city": "Rome"}),
        ] {
            assert_eq!(check(&object(args.clone())), None, "{args}");
        }
    }

    #[test]
    fn a_time_is_told_in_the_zone_of_the_place() {
        let now: Timestamp = "2026-11-30T03:45:10Z".parse().unwrap();
        let told = |args: Value| {
            locate(&object(args))
                .map(|(place, zone)| tell(&place, now, zone))
                .map_err(|e| e.to_string())
        };
        assert_eq!(
            told(json!({"city": "Tokyo"})).unwrap(),
            "Time in Tokyo: 12:45:10, Monday, 30 November 2026 (Asia/Tokyo, UTC+09:00)"
        );
        assert_eq!(
            told(json!({"timezone": "America/New_York"})).unwrap(),
            "Time in America/New_York: 22:45:10, Sunday, 29 November 2026 (America/New_York, UTC-05:00)"
        );
        assert!(
            told(json!({"city": "Atlantis"}))
                .unwrap_err()
                .contains("Unknown city: 'Atlantis'")
        );
        assert!(
            told(json!({"timezone": "Mars/Olympus"}))
                .unwrap_err()
                .contains("Unknown timezone")
        );
    }
}
