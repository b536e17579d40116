//! MCP's content blocks ↔ core's.

use serde_json::{Map, Value, json};
use yiem_core::{
    AudioContent, Content, Extra, ImageContent, OtherContent, ResourceBody, ResourceContent,
    TextContent,
};

/// Reads one block of a result. A block that is odd is kept as it came and costs only itself (M-5).
#[must_use]
pub fn content_from_wire(block: Value) -> Content {
    let object = match block {
        Value::Object(object) => object,
        Value::String(text) => return Content::text(text),
        value => return Content::Other(OtherContent { value }),
    };
    match get(&object, "type").and_then(Value::as_str) {
        Some("text") if is_text(&object, "text") => text_block(object),
        Some("image") if is_text(&object, "data") => {
            let mut object = without_type(object);
            Content::Image(ImageContent {
                data: take_text(&mut object, "data"),
                mime_type: take_text(&mut object, "mimeType"),
                extra: Extra::from(object),
            })
        }
        Some("audio") if is_text(&object, "data") => {
            let mut object = without_type(object);
            Content::Audio(AudioContent {
                data: take_text(&mut object, "data"),
                mime_type: take_text(&mut object, "mimeType"),
                extra: Extra::from(object),
            })
        }
        Some("resource_link") if is_text(&object, "uri") => {
            resource(without_type(object), Map::new())
        }
        Some("resource") => {
            let inner = object.get("resource").and_then(Value::as_object);
            if inner.is_some_and(|inner| is_text(inner, "uri")) {
                let mut outer = without_type(object);
                match outer.shift_remove("resource") {
                    Some(Value::Object(inner)) => resource(inner, outer),
                    _ => Content::Other(OtherContent {
                        value: Value::Object(outer),
                    }),
                }
            } else {
                Content::Other(OtherContent {
                    value: Value::Object(object),
                })
            }
        }
        _ => Content::Other(OtherContent {
            value: Value::Object(object),
        }),
    }
}

fn resource(mut inner: Map<String, Value>, outer: Map<String, Value>) -> Content {
    let body = if is_text(&inner, "text") {
        ResourceBody::Text(take_text(&mut inner, "text"))
    } else if is_text(&inner, "blob") {
        ResourceBody::Blob(take_text(&mut inner, "blob"))
    } else {
        ResourceBody::Link
    };
    let uri = take_text(&mut inner, "uri");
    let mime_type = optional_text(&mut inner, "mimeType");
    let title = optional_text(&mut inner, "title");
    for (key, value) in outer {
        inner.entry(key).or_insert(value);
    }
    Content::Resource(ResourceContent {
        uri,
        mime_type,
        title,
        body,
        extra: Extra::from(inner),
    })
}

/// A block of text: what nearly all are, so it is taken apart in one go.
fn text_block(object: Map<String, Value>) -> Content {
    let (mut text, mut extra) = (String::new(), Map::new());
    for (key, value) in object {
        match (key.as_str(), value) {
            ("type", _) => {}
            ("text", Value::String(value)) => text = value,
            (_, value) => {
                extra.insert(key, value);
            }
        }
    }
    Content::Text(TextContent {
        text,
        extra: Extra::from(extra),
    })
}

/// Looks through the few keys of a block, which is less than hashing one.
fn get<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object
        .iter()
        .find_map(|(known, value)| (known == key).then_some(value))
}

fn is_text(object: &Map<String, Value>, key: &str) -> bool {
    get(object, key).is_some_and(Value::is_string)
}

fn without_type(mut object: Map<String, Value>) -> Map<String, Value> {
    object.shift_remove("type");
    object
}

fn take_text(object: &mut Map<String, Value>, key: &str) -> String {
    match object.shift_remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn optional_text(object: &mut Map<String, Value>, key: &str) -> Option<String> {
    if is_text(object, key) {
        Some(take_text(object, key))
    } else {
        None
    }
}

/// Writes one block as MCP has it; for servers made of our tools.
#[must_use]
pub fn content_to_wire(content: &Content) -> Value {
    let (mut object, extra) = match content {
        Content::Text(text) => (json!({"type": "text", "text": text.text}), &text.extra),
        Content::Image(image) => (
            json!({"type": "image", "data": image.data, "mimeType": image.mime_type}),
            &image.extra,
        ),
        Content::Audio(audio) => (
            json!({"type": "audio", "data": audio.data, "mimeType": audio.mime_type}),
            &audio.extra,
        ),
        Content::Resource(resource) => return resource_to_wire(resource),
        Content::Other(other) => return other.value.clone(),
    };
    add(&mut object, extra);
    object
}

fn resource_to_wire(resource: &ResourceContent) -> Value {
    let mut inner = json!({"uri": resource.uri});
    if let Some(mime_type) = &resource.mime_type {
        inner["mimeType"] = mime_type.as_str().into();
    }
    if let Some(title) = &resource.title {
        inner["title"] = title.as_str().into();
    }
    match &resource.body {
        ResourceBody::Link => {
            inner["type"] = "resource_link".into();
            inner["name"] = resource.title.as_deref().unwrap_or(&resource.uri).into();
            add(&mut inner, &resource.extra);
            return inner;
        }
        ResourceBody::Text(text) => inner["text"] = text.as_str().into(),
        ResourceBody::Blob(blob) => inner["blob"] = blob.as_str().into(),
    }
    let mut outer = json!({"type": "resource"});
    for (key, value) in resource.extra.iter() {
        let place = if key == "annotations" {
            &mut outer
        } else {
            &mut inner
        };
        place[key.as_str()] = value.clone();
    }
    outer["resource"] = inner;
    outer
}

fn add(object: &mut Value, extra: &Extra) {
    for (key, value) in extra.iter() {
        object[key.as_str()] = value.clone();
    }
}
