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
