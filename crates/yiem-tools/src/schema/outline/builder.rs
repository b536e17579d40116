//! A schema document read into its outline.
//!
//! Knows: which keywords hold schemas and where, how `$ref`, `$id` and anchors lead on inside one
//! document, how many schemas, names and patterns are too many. Does not know: what checking a
//! value costs.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Id, Node, SchemaError, SchemaLimits, push_segment};

/// How long the names on the way to a schema may be in all; each schema below holds them again.
const MAX_POINTER: usize = 4 * 1024;

/// How many patterns a schema may have.
const MAX_PATTERNS: usize = 500;

pub(super) struct Builder<'s> {
    root: &'s Value,
    limits: &'s SchemaLimits,
    nodes: Vec<Node>,
    by_pointer: HashMap<String, Id>,
    /// `$id` (as written) to the pointer of its schema.
    resources: HashMap<String, String>,
    /// Pointer of the resource and anchor to node; dynamic anchors by name alone as well.
    anchors: HashMap<(String, String), Id>,
    dynamic: HashMap<String, Vec<Id>>,
    references: Vec<Reference>,
    patterns: usize,
}

struct Reference {
    from: Id,
    base: String,
    target: String,
    dynamic: bool,
}

/// What was read.
pub(super) struct Read {
    /// Every schema, the whole document's first.
    pub(super) nodes: Vec<Node>,
    /// How many patterns there are.
    pub(super) patterns: usize,
}

impl<'s> Builder<'s> {
    /// Reads the whole document.
    pub(super) fn read(root: &'s Value, limits: &'s SchemaLimits) -> Result<Read, SchemaError> {
        let mut builder = Self {
            root,
            limits,
            nodes: Vec::new(),
            by_pointer: HashMap::new(),
            resources: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
            references: Vec::new(),
            patterns: 0,
        };
        builder.add(root, String::new(), String::new(), 0)?;
        builder.link()?;
        Ok(Read {
            nodes: builder.nodes,
            patterns: builder.patterns,
        })
    }

    fn add(
        &mut self,
        schema: &'s Value,
        pointer: String,
        base: String,
        depth: usize,
    ) -> Result<Id, SchemaError> {
        if let Some(&id) = self.by_pointer.get(&pointer) {
            return Ok(id);
        }
        if depth > self.limits.max_depth {
            return Err(SchemaError::TooDeep {
                limit: self.limits.max_depth,
            });
        }
        if pointer.len() > MAX_POINTER {
            return Err(SchemaError::LongNames { limit: MAX_POINTER });
        }
        if self.nodes.len() >= self.limits.max_schemas {
            return Err(SchemaError::TooMany {
                limit: self.limits.max_schemas,
            });
        }
        let id = self.nodes.len();
        self.nodes.push(Node {
            own: 1,
            ..Node::default()
        });
        self.by_pointer.insert(pointer.clone(), id);
        let Value::Object(map) = schema else {
            return Ok(id);
        };
        let base = self.name_resource(map, id, &pointer, base);
        if let Some(pattern) = map.get("pattern").and_then(Value::as_str) {
            self.count_pattern(pattern)?;
        }
        self.note_keywords(map, id, &base);
        self.add_in_place(map, id, &pointer, &base, depth)?;
        self.add_members(map, id, &pointer, &base, depth)?;
        self.add_elements(map, id, &pointer, &base, depth)?;
        // Definitions apply only where they are referred to.
        for keyword in ["$defs", "definitions"] {
            if let Some(Value::Object(definitions)) = map.get(keyword) {
                for (name, definition) in definitions {
                    let at = pointer_to(&pointer, &[keyword, name]);
                    self.add(definition, at, base.clone(), depth + 1)?;
                }
            }
        }
        Ok(id)
    }

    /// Compiling a pattern costs time and memory: their number and length are bounded.
    fn count_pattern(&mut self, pattern: &str) -> Result<(), SchemaError> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS || pattern.len() > 4_096 {
            return Err(SchemaError::Patterns {
                limit: MAX_PATTERNS,
            });
        }
        Ok(())
    }

    /// Notes `$id` and anchors; gives the pointer of the resource that this schema belongs to.
    fn name_resource(
        &mut self,
        map: &Map<String, Value>,
        id: Id,
        pointer: &str,
        base: String,
    ) -> String {
        let name = map
            .get("$id")
            .or_else(|| map.get("id"))
            .and_then(Value::as_str);
        let base = match name {
            Some(name) if !name.starts_with('#') => {
                self.resources
                    .insert(name.trim_end_matches('#').to_owned(), pointer.to_owned());
                pointer.to_owned()
            }
            Some(anchor) => {
                self.anchors
                    .insert((base.clone(), anchor[1..].to_owned()), id);
                base
            }
            None => base,
        };
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = map.get(keyword).and_then(Value::as_str) {
                self.anchors.insert((base.clone(), anchor.to_owned()), id);
                if keyword == "$dynamicAnchor" {
                    self.dynamic.entry(anchor.to_owned()).or_default().push(id);
                }
            }
        }
        base
    }

    fn note_keywords(&mut self, map: &Map<String, Value>, id: Id, base: &str) {
        let node = &mut self.nodes[id];
        node.own += map.len() as u64;
        if let Some(Value::Array(options)) = map.get("enum") {
            node.own += options.len() as u64 / 16;
        }
        node.default = map.get("default").cloned();
        node.twice =
            map.contains_key("unevaluatedProperties") || map.contains_key("unevaluatedItems");
        node.backtracks = map
            .get("pattern")
            .and_then(Value::as_str)
            .is_some_and(backtracks);
        for (keyword, dynamic) in [
            ("$ref", false),
            ("$dynamicRef", true),
            ("$recursiveRef", false),
        ] {
            if let Some(target) = map.get(keyword).and_then(Value::as_str) {
                self.references.push(Reference {
                    from: id,
                    base: base.to_owned(),
                    target: target.to_owned(),
                    dynamic,
                });
            }
        }
    }

    fn add_in_place(
        &mut self,
        map: &'s Map<String, Value>,
        id: Id,
        pointer: &str,
        base: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        for (keyword, union) in [("allOf", false), ("anyOf", true), ("oneOf", true)] {
            let Some(Value::Array(branches)) = map.get(keyword) else {
                continue;
            };
            let mut real = Vec::new();
            for (i, branch) in branches.iter().enumerate() {
                let at = pointer_to(pointer, &[keyword, &i.to_string()]);
                let next = self.add(branch, at, base.to_owned(), depth + 1)?;
                self.nodes[id].in_place.push((next, union));
                if !is_null_schema(branch) {
                    real.push(next);
                }
            }
            if !union || real.len() == 1 {
                self.nodes[id].sure.append(&mut real);
            }
        }
        for keyword in ["not", "if", "then", "else"] {
            if let Some(branch) = map.get(keyword) {
                let at = pointer_to(pointer, &[keyword]);
                let next = self.add(branch, at, base.to_owned(), depth + 1)?;
                self.nodes[id].in_place.push((next, false));
            }
        }
        for keyword in ["dependentSchemas", "dependencies"] {
            if let Some(Value::Object(dependents)) = map.get(keyword) {
                for (name, branch) in dependents.iter().filter(|(_, b)| !b.is_array()) {
                    let at = pointer_to(pointer, &[keyword, name]);
                    let next = self.add(branch, at, base.to_owned(), depth + 1)?;
                    self.nodes[id].in_place.push((next, false));
                }
            }
        }
        Ok(())
    }

    fn add_members(
        &mut self,
        map: &'s Map<String, Value>,
        id: Id,
        pointer: &str,
        base: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, property) in properties {
                let at = pointer_to(pointer, &["properties", name]);
                let next = self.add(property, at, base.to_owned(), depth + 1)?;
                self.nodes[id].properties.push((name.clone(), next));
            }
        }
        if let Some(Value::Object(patterns)) = map.get("patternProperties") {
            for (pattern, property) in patterns {
                let at = pointer_to(pointer, &["patternProperties", pattern]);
                let next = self.add(property, at, base.to_owned(), depth + 1)?;
                self.nodes[id].members.push(next);
                self.count_pattern(pattern)?;
                if backtracks(pattern) {
                    // The pattern runs over the keys: a schema of its own with that cost.
                    let names = self.nodes.len();
                    self.nodes.push(Node {
                        own: 1,
                        backtracks: true,
                        ..Node::default()
                    });
                    self.nodes[id].names.push(names);
                }
            }
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            if let Some(property) = map.get(keyword).filter(|p| p.is_object()) {
                let at = pointer_to(pointer, &[keyword]);
                let next = self.add(property, at, base.to_owned(), depth + 1)?;
                self.nodes[id].members.push(next);
            }
        }
        if let Some(names) = map.get("propertyNames") {
            let at = pointer_to(pointer, &["propertyNames"]);
            let next = self.add(names, at, base.to_owned(), depth + 1)?;
            self.nodes[id].names.push(next);
        }
        Ok(())
    }

    fn add_elements(
        &mut self,
        map: &'s Map<String, Value>,
        id: Id,
        pointer: &str,
        base: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        for keyword in ["prefixItems", "items"] {
            if let Some(Value::Array(schemas)) = map.get(keyword) {
                for (i, schema) in schemas.iter().enumerate() {
                    let at = pointer_to(pointer, &[keyword, &i.to_string()]);
                    let next = self.add(schema, at, base.to_owned(), depth + 1)?;
                    self.nodes[id].prefix.push(next);
                }
            }
        }
        for keyword in ["items", "additionalItems", "unevaluatedItems", "contains"] {
            if let Some(schema) = map.get(keyword).filter(|s| s.is_object()) {
                let at = pointer_to(pointer, &[keyword]);
                let next = self.add(schema, at, base.to_owned(), depth + 1)?;
                self.nodes[id].elements.push(next);
                if keyword == "items" {
                    self.nodes[id].items = Some(next);
                }
            }
        }
        Ok(())
    }

    /// Leads every reference to its schema. Targets outside this document cost a flat sum; the
    /// validator says whether they exist.
    fn link(&mut self) -> Result<(), SchemaError> {
        let mut done = 0;
        while done < self.references.len() {
            let Reference {
                from,
                base,
                target,
                dynamic,
            } = &self.references[done];
            let (from, base, target, dynamic) = (*from, base.clone(), target.clone(), *dynamic);
            done += 1;
            let mut targets: Vec<Id> = self.find(&base, &target)?.into_iter().collect();
            if dynamic && let Some(name) = target.rsplit_once('#').map(|(_, n)| n) {
                targets.extend(self.dynamic.get(name).into_iter().flatten());
                targets.sort_unstable();
                targets.dedup();
            }
            if targets.is_empty() {
                self.nodes[from].foreign = true;
            }
            for next in targets {
                self.nodes[from].in_place.push((next, false));
                self.nodes[from].sure.push(next);
            }
        }
        Ok(())
    }

    fn find(&mut self, base: &str, target: &str) -> Result<Option<Id>, SchemaError> {
        let (document, fragment) = target.split_once('#').unwrap_or((target, ""));
        let base = if document.is_empty() {
            base.to_owned()
        } else {
            let ends = |id: &str| {
                id == document
                    || id
                        .strip_suffix(document)
                        .is_some_and(|head| head.ends_with('/'))
            };
            match self.resources.iter().find(|(id, _)| ends(id)) {
                Some((_, pointer)) => pointer.clone(),
                None => return Ok(None),
            }
        };
        let fragment = percent_decoded(fragment);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return Ok(self.anchors.get(&(base, fragment)).copied());
        }
        let pointer = base.clone() + &fragment;
        if let Some(&id) = self.by_pointer.get(&pointer) {
            return Ok(Some(id));
        }
        // A place that no keyword leads to may still be referred to.
        let root = self.root;
        match root.pointer(&pointer) {
            Some(schema) => self.add(schema, pointer, base, 0).map(Some),
            None => Ok(None),
        }
    }
}

fn pointer_to(base: &str, segments: &[&str]) -> String {
    let mut pointer = base.to_owned();
    for segment in segments {
        push_segment(&mut pointer, segment);
    }
    pointer
}

fn is_null_schema(value: &Value) -> bool {
    value.get("type").and_then(Value::as_str) == Some("null")
        || value.get("const").is_some_and(Value::is_null)
}

/// Whether a pattern needs a backtracking engine: look-around, back references, atomic groups.
fn backtracks(pattern: &str) -> bool {
    let mut escaped = false;
    let bytes = pattern.as_bytes();
    bytes.iter().enumerate().any(|(i, b)| {
        if std::mem::take(&mut escaped) {
            return matches!(b, b'1'..=b'9' | b'k' | b'g' | b'K' | b'G');
        }
        match b {
            b'\\' => escaped = true,
            b'(' => {
                let rest = &bytes[i + 1..];
                return [&b"?="[..], b"?!", b"?<=", b"?<!", b"?>", b"?("]
                    .iter()
                    .any(|start| rest.starts_with(start));
            }
            // Possessive: a++, a*+, a?+
            b'+' => return i > 0 && matches!(bytes[i - 1], b'+' | b'*' | b'?' | b'}'),
            _ => {}
        }
        false
    })
}

fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex {
            Some(byte) => {
                out.push(byte);
                i += 3;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
