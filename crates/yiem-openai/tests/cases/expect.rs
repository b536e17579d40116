//! Whether what was read or built is what a case expects. The README of the cases is the form.

use serde_json::Value;

type Checked = Result<(), String>;

/// Checks what was read.
pub(crate) fn reading(read: &Value, expect: &Value) -> Checked {
    if let Some(any) = expect.get("any_of").and_then(Value::as_array) {
        let problems: Vec<String> = any
            .iter()
            .filter_map(|one| reading(read, one).err())
            .collect();
        return if problems.len() < any.len() {
            Ok(())
        } else {
            Err(problems.join("; or "))
        };
    }
    for key in ["text", "reasoning", "stop", "error"] {
        if let Some(wanted) = expect.get(key) {
            one_of(&read[key], wanted).map_err(|problem| format!("{key}: {problem}"))?;
        }
    }
    if expect.get("error").is_none()
        && !mentions(&expect["stop"], "error")
        && !read["error"].is_null()
    {
        return Err(format!(
            "there should be no error, but {} came",
            read["error"]
        ));
    }
    for key in ["retryable", "retry_after_s"] {
        if let Some(wanted) = expect.get(key)
            && !same(&read[key], wanted)
        {
            return Err(format!("{key}: {} in place of {wanted}", read[key]));
        }
    }
    match expect.get("usage") {
        Some(Value::Object(counts)) => {
            for (key, wanted) in counts {
                if !same(&read["usage"][key], wanted) {
                    return Err(format!(
                        "usage {key}: {} in place of {wanted}",
                        read["usage"][key]
                    ));
                }
            }
        }
        Some(Value::Null) if !read["usage"].is_null() => {
            return Err("usage should be unknown".to_owned());
        }
        _ => {}
    }
    let message = read["error_message"].as_str().unwrap_or_default();
    for part in expect["error_contains"].as_array().into_iter().flatten() {
        if !message.contains(part.as_str().unwrap_or_default()) {
            return Err(format!("the error {message:?} does not contain {part}"));
        }
    }
    if let Some(most) = expect["error_max_chars"].as_u64()
        && message.chars().count() as u64 > most
    {
        return Err(format!("the error is longer than {most} characters"));
    }
    for wanted in expect["keep"].as_array().into_iter().flatten() {
        if !read["keep"]
            .as_array()
            .is_some_and(|kept| kept.contains(wanted))
        {
            return Err(format!("{wanted} was not kept"));
        }
    }
    calls(read, expect)
}

fn calls(read: &Value, expect: &Value) -> Checked {
    let came = read["tool_calls"]
        .as_array()
        .ok_or("tool_calls is no list")?;
    let mut ids: Vec<&str> = came.iter().filter_map(|call| call["id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != came.len() {
        return Err("two calls have one id".to_owned());
    }
    let Some(wanted) = expect["tool_calls"].as_array() else {
        return Ok(());
    };
    if came.len() != wanted.len() {
        return Err(format!("{} calls in place of {}", came.len(), wanted.len()));
    }
    for (call, wanted) in came.iter().zip(wanted) {
        one_call(call, wanted).map_err(|problem| format!("{problem} in {call}"))?;
    }
    Ok(())
}

fn one_call(call: &Value, wanted: &Value) -> Checked {
    let id = call["id"].as_str().unwrap_or_default();
    if id.is_empty() || wanted.get("id").is_some_and(|wanted| wanted != id) {
        return Err(format!("id {id:?}"));
    }
    if call["name"] != wanted["name"] {
        return Err(format!("name {}", call["name"]));
    }
    let invalid = call["arguments_invalid"] == Value::Bool(true);
    if wanted["arguments_invalid"] == Value::Bool(true) {
        if !invalid || call.get("arguments").is_some() {
            return Err("the arguments should be unusable".to_owned());
        }
        if let Some(raw) = wanted.get("arguments_raw")
            && call["arguments_raw"] != *raw
        {
            return Err("the raw arguments differ".to_owned());
        }
        return Ok(());
    }
    if invalid && wanted["or_invalid"] == Value::Bool(true) {
        return Ok(());
    }
    if invalid || !same(&call["arguments"], &wanted["arguments"]) {
        return Err(format!("arguments in place of {}", wanted["arguments"]));
    }
    Ok(())
}

fn mentions(value: &Value, word: &str) -> bool {
    value == word
        || value
            .as_array()
            .is_some_and(|list| list.iter().any(|item| item == word))
}

fn one_of(came: &Value, wanted: &Value) -> Checked {
    let fits = match wanted {
        Value::Array(list) => list.contains(came),
        single => single == came,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{came} in place of {wanted}"))
    }
}

/// Equal, numbers by value and whole numbers to the last digit.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i128(), b.as_i128()) {
            (Some(a), Some(b)) => a == b,
            _ => a.as_f64() == b.as_f64(),
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => a == b,
    }
}

/// Checks a request's body.
pub(crate) fn building(body: &str, expect: &Value) -> Checked {
    let built: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let expect = expect.as_object().ok_or("expect is no object")?;
    for (key, wanted) in expect {
        one_expectation(&built, key, wanted)
            .map_err(|problem| format!("{key} {wanted}: {problem}"))?;
    }
    Ok(())
}

fn one_expectation(built: &Value, key: &str, wanted: &Value) -> Checked {
    let messages = || built["messages"].as_array().into_iter().flatten();
    let places = || {
        wanted
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    };
    let at = |place: &str| built.pointer(place).cloned().unwrap_or_default();
    let ensure = |holds: bool, problem: String| if holds { Ok(()) } else { Err(problem) };
    match key {
        "assert" | "stable" | "body_is_strict_json" => Ok(()),
        "roles" => ensure(roles(built) == *wanted, roles(built).to_string()),
        "roles_any_of" => {
            let fits = wanted
                .as_array()
                .is_some_and(|lists| lists.contains(&roles(built)));
            ensure(fits, roles(built).to_string())
        }
        "absent_roles" => ensure(
            !places().any(|role| messages().any(|message| message["role"] == role)),
            roles(built).to_string(),
        ),
        "pointers" => each_place(wanted, |place, wanted| same(&at(place), wanted)),
        "text_at" => each_place(wanted, |place, wanted| *wanted == joined(&at(place))),
        "json_at" => each_place(wanted, |place, wanted| {
            parsed(&at(place)).is_some_and(|value| same(&value, wanted))
        }),
        "json_object_at" => places().try_for_each(|place| {
            ensure(
                parsed(&at(place)).is_some_and(|value| value.is_object()),
                place.to_owned(),
            )
        }),
        "matches" => each_place(wanted, |place, pattern| {
            at(place).as_str().is_some_and(|text| fits(text, pattern))
        }),
        "matches_text" => each_place(wanted, |place, pattern| fits(&joined(&at(place)), pattern)),
        "type_at" => each_place(wanted, |place, kind| match kind.as_str() {
            Some("string") => at(place).is_string(),
            Some("array") => at(place).is_array(),
            _ => false,
        }),
        "contains" | "texts_in_order_at" => each_place(wanted, |place, texts| {
            let whole = match at(place) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let mut rest = whole.as_str();
            texts
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .all(|text| {
                    let found = rest.find(text);
                    rest = found.map_or("", |at| &rest[at + text.len()..]);
                    found.is_some()
                })
        }),
        "equal" | "different" => wanted
            .as_array()
            .into_iter()
            .flatten()
            .try_for_each(|pair| {
                let value = |n: usize| at(pair[n].as_str().unwrap_or_default());
                ensure((value(0) == value(1)) == (key == "equal"), pair.to_string())
            }),
        "all_different" => {
            let mut values: Vec<String> = places().map(|place| at(place).to_string()).collect();
            let count = values.len();
            values.sort();
            values.dedup();
            ensure(values.len() == count, "some are equal".to_owned())
        }
        "absent" => {
            places().try_for_each(|place| ensure(built.pointer(place).is_none(), place.to_owned()))
        }
        "null_or_absent" => {
            places().try_for_each(|place| ensure(at(place).is_null(), place.to_owned()))
        }
        "absent_or_empty_string" => places().try_for_each(|place| {
            ensure(
                built.pointer(place).is_none() || at(place) == "",
                place.to_owned(),
            )
        }),
        "absent_keys_in_messages" => ensure(
            !places().any(|key| messages().any(|message| message.get(key).is_some())),
            "a key is there".to_owned(),
        ),
        "message_keys_allowed" => {
            let allowed: Vec<&str> = places().collect();
            let odd = messages()
                .filter_map(Value::as_object)
                .flat_map(|message| message.keys())
                .find(|key| !allowed.contains(&key.as_str()));
            ensure(odd.is_none(), format!("{odd:?}"))
        }
        "non_empty_text_at" => places()
            .try_for_each(|place| ensure(!joined(&at(place)).trim().is_empty(), place.to_owned())),
        "texts_present" => places().try_for_each(|text| {
            ensure(
                messages().any(|m| m["content"].to_string().contains(text)),
                text.to_owned(),
            )
        }),
        "texts_absent_in_content" => places().try_for_each(|text| {
            ensure(
                !messages().any(|m| m["content"].to_string().contains(text)),
                text.to_owned(),
            )
        }),
        "no_empty_text" => messages().try_for_each(|message| {
            let blank = match &message["content"] {
                Value::String(text) => text.trim().is_empty(),
                Value::Array(parts) => {
                    parts.is_empty()
                        || parts.iter().any(|part| {
                            part["type"] == "text"
                                && part["text"].as_str().unwrap_or_default().trim().is_empty()
                        })
                }
                _ => false,
            };
            ensure(!blank, message.to_string())
        }),
        "no_nulls_at_top" => ensure(
            built
                .as_object()
                .is_some_and(|body| body.values().all(|value| !value.is_null())),
            "a null".to_owned(),
        ),
        "role_has_no_images" => places().try_for_each(|role| {
            let found = messages()
                .any(|m| m["role"] == role && m["content"].to_string().contains("image_url"));
            ensure(!found, role.to_owned())
        }),
        "tool_ids_answered" => {
            let mut ids: Vec<&str> = messages()
                .filter(|message| message["role"] == "tool")
                .filter_map(|message| message["tool_call_id"].as_str())
                .collect();
            let mut expected: Vec<&str> = places().collect();
            ids.sort_unstable();
            expected.sort_unstable();
            ensure(ids == expected, format!("{ids:?}"))
        }
        "result_text" => each_place(wanted, |id, text| {
            messages().any(|m| m["tool_call_id"] == id && *text == joined(&m["content"]))
        }),
        "system_count" => {
            let count = messages()
                .filter(|m| m["role"] == "system" || m["role"] == "developer")
                .count() as u64;
            ensure(wanted.as_u64() == Some(count), count.to_string())
        }
        "each_tool_parameters_ok" => {
            let ok =
                built["tools"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .all(|tool| match tool["function"].get("parameters") {
                        None => true,
                        Some(schema) => {
                            schema["type"] == "object" && schema["properties"].is_object()
                        }
                    });
            ensure(ok, "a tool has other parameters".to_owned())
        }
        other => Err(format!("the test does not know the key {other}")),
    }
}

fn roles(built: &Value) -> Value {
    built["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| message["role"].clone())
        .collect()
}

fn each_place(wanted: &Value, holds: impl Fn(&str, &Value) -> bool) -> Checked {
    for (place, wanted) in wanted.as_object().ok_or("no object of places")? {
        if !holds(place, wanted) {
            return Err(format!("at {place}"));
        }
    }
    Ok(())
}

/// The text of content: a string, or the text parts joined.
fn joined(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

fn parsed(value: &Value) -> Option<Value> {
    serde_json::from_str(value.as_str()?).ok()
}

fn fits(text: &str, pattern: &Value) -> bool {
    let pattern = regex::Regex::new(pattern.as_str().expect("a pattern")).expect("a pattern");
    pattern.is_match(text)
}
