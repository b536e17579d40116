//! Accepted arguments as values of Rust types.
//!
//! Knows: that JSON Schema calls 42.0 an integer and serde does not. Does not know: schemas.

use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use yiem_core::{JsonObject, ToolError};

/// All arguments as one value. `()` is read from no arguments.
pub(super) fn whole<T: DeserializeOwned>(args: Value) -> Result<T, ToolError> {
    let nothing = args.as_object().is_some_and(JsonObject::is_empty);
    T::deserialize(&args)
        .or_else(|first| {
            let other = if nothing {
                Some(Value::Null)
            } else {
                with_integers(args)
            };
            other
                .and_then(|args| T::deserialize(args).ok())
                .ok_or(first)
        })
        .map_err(|error| {
            ToolError::new(format!("The arguments do not suit the tool: {error}"))
                .with_source(error)
        })
}

/// One argument out of an object.
pub(super) fn argument<T: DeserializeOwned>(
    args: &mut JsonObject,
    name: &str,
    absent: Option<fn() -> T>,
) -> Result<T, ToolError> {
    let value = match (args.swap_remove(name), absent) {
        (Some(value), _) => value,
        (None, Some(absent)) => return Ok(absent()),
        (None, None) if is_option::<T>() => Value::Null,
        (None, None) => {
            return Err(ToolError::new(format!(
                "Missing required arguments: {name}"
            )));
        }
    };
    T::deserialize(&value)
        .or_else(|first| {
            with_integers(value)
                .and_then(|value| T::deserialize(value).ok())
                .ok_or(first)
        })
        .map_err(|error| {
            ToolError::new(format!("The argument {name} does not suit: {error}")).with_source(error)
        })
}

/// Whether a type is an `Option`, under whatever alias.
pub(super) fn is_option<T>() -> bool {
    std::any::type_name::<T>().starts_with("core::option::Option<")
}

/// The value with floats without a fraction as whole numbers; `None` if there are none.
fn with_integers(mut value: Value) -> Option<Value> {
    fn turn(value: &mut Value) -> bool {
        match value {
            Value::Number(number) if number.is_f64() => {
                let whole = number.as_f64().and_then(whole_number);
                whole.map(|whole| *number = whole).is_some()
            }
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |turned, item| turn(item) | turned),
            Value::Object(map) => map
                .values_mut()
                .fold(false, |turned, item| turn(item) | turned),
            _ => false,
        }
    }
    turn(&mut value).then_some(value)
}

/// A float without a fraction as a whole number, where none is lost.
pub(crate) fn whole_number(float: f64) -> Option<Number> {
    /// Up to here every whole number is a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (float.fract() == 0.0 && float.abs() <= EXACT).then(|| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "held within ±2^53, without a fraction"
        )]
        Number::from(float as i64)
    })
}
