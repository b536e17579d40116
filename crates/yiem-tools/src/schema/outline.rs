//! A schema's shape: what leads where, what it may cost, which defaults it names.
//!
//! Knows: which keywords hold schemas, how `$ref` leads on inside one document, how much work a
//! validator may have with a value. Does not know: whether a value is valid.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SchemaError;
use super::SchemaLimits;

/// Index of a schema in an [`Outline`].
type Id = usize;

/// How much more a step costs inside `anyOf` and `oneOf`, whose errors are gathered per branch.
const UNION_WEIGHT: u64 = 8;
/// What a pattern with look-around or back references may cost per text: it backtracks.
const BACKTRACKING: u64 = 2_000;
/// The cost of a reference whose target is outside this document (a meta-schema).
const FOREIGN: u64 = 2_000;
/// How deep a validator may go in all, in the schema and in the value together. It recurses,
/// and a worker's stack has 2 MiB.
const MAX_DESCENT: usize = 400;
/// How many schemas in a row may apply to the same value.
const MAX_CHAIN: usize = 100;
/// How many schemas, counted each time they apply, one value may meet.
const MAX_FANOUT: u64 = 20_000;

/// How long the names on the way to a schema may be in all; each schema below holds them again.
const MAX_POINTER: usize = 4 * 1024;

/// How many patterns a schema may have.
const MAX_PATTERNS: usize = 500;

/// The shape of one schema document.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    nodes: Vec<Node>,
    /// How many schemas there are when each use counts; no place meets more than these.
    unfolded: u64,
    has_defaults: bool,
    has_pattern: bool,
    #[cfg_attr(
        not(feature = "schema"),
        expect(dead_code, reason = "asked by the schema stage")
    )]
    patterns: usize,
}

#[derive(Debug, Default)]
struct Node {
    own: u64,
    /// Whether the schemas that apply here are gone through twice (`unevaluated…`).
    twice: bool,
    backtracks: bool,
    foreign: bool,
    /// Schemas that apply to the same value: which, and whether as one of several branches.
    in_place: Vec<(Id, bool)>,
    /// Those of them that apply in any case, or whose only other branch is `null`.
    sure: Vec<Id>,
    properties: Vec<(String, Id)>,
    /// Schemas that may apply to any member of an object.
    members: Vec<Id>,
    /// Schemas that apply to an object's keys.
    names: Vec<Id>,
    prefix: Vec<Id>,
    /// Schemas that may apply to any element of an array.
    elements: Vec<Id>,
    /// The schema of all elements after the prefix, for defaults.
    items: Option<Id>,
    default: Option<Value>,
    /// Whether a default stands in this schema or in one that it leads to.
    leads_to_default: bool,
}

/// Defaults on their way into a value.
struct Filling<'w> {
    /// Whether the default of a place is to be filled in.
    wanted: &'w dyn Fn(&str) -> bool,
    path: String,
    /// The places that were filled.
    added: Vec<String>,
    /// The properties whose defaults are being filled in, each inside the one before.
    inside: Vec<Id>,
    /// Where a circle of defaults begins that was met.
    circle: Option<Id>,
    steps: usize,
}

/// More work than the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooCostly;

struct Builder<'s> {
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

impl Outline {
    pub(crate) fn new(root: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        let mut builder = Builder {
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
        let mut outline = Self {
            patterns: builder.patterns,
            nodes: builder.nodes,
            ..Self::default()
        };
        outline.has_pattern = outline.nodes.iter().any(|n| n.backtracks || n.foreign);
        outline.mark_defaults();
        outline.measure()?;
        Ok(outline)
    }

    /// How many patterns there are.
    #[cfg(feature = "schema")]
    pub(crate) fn patterns(&self) -> usize {
        self.patterns
    }

    /// Whether any default may have to be filled in.
    #[cfg(feature = "schema")]
    pub(crate) fn has_defaults(&self) -> bool {
        self.has_defaults
    }

    /// Puts the defaults of absent properties into `value`, wherever they surely apply.
    ///
    /// `wanted` says of each place whether it is to be filled; nothing that is there is changed.
    /// Gives the places that were filled, as pointers.
    pub(crate) fn fill_defaults(
        &self,
        value: &mut Value,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut filling = Filling {
            wanted,
            path: String::new(),
            added: Vec::new(),
            inside: Vec::new(),
            circle: None,
            steps: 20_000,
        };
        if self.has_defaults {
            self.fill(0, value, &mut filling, 0);
        }
        filling.added
    }

    /// Every default with the place where it stands, as a pointer into the arguments; array
    /// elements are left out.
    pub(crate) fn defaults(&self) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        if self.has_defaults {
            self.gather(0, &mut String::new(), &mut found, 0);
        }
        found
    }

    fn gather(&self, id: Id, path: &mut String, found: &mut Vec<(String, Value)>, depth: usize) {
        let node = &self.nodes[id];
        if depth > 24 || found.len() >= 1_000 || !node.leads_to_default {
            return;
        }
        for &next in &node.sure {
            self.gather(next, path, found, depth + 1);
        }
        for (name, property) in &node.properties {
            let length = path.len();
            push_segment(path, name);
            if let Some(default) = self.default_of(*property, 0) {
                found.push((path.clone(), default.clone()));
            }
            self.gather(*property, path, found, depth + 1);
            path.truncate(length);
        }
    }

    fn fill(&self, id: Id, value: &mut Value, filling: &mut Filling<'_>, depth: usize) {
        let node = &self.nodes[id];
        if !node.leads_to_default || filling.steps == 0 || depth > MAX_DESCENT {
            return;
        }
        filling.steps -= 1;
        for &next in &node.sure {
            self.fill(next, value, filling, depth + 1);
        }
        let length = filling.path.len();
        match value {
            Value::Object(map) => {
                for (name, property) in &node.properties {
                    if let Some(member) = map.get_mut(name) {
                        if self.nodes[*property].leads_to_default {
                            push_segment(&mut filling.path, name);
                            self.fill(*property, member, filling, depth + 1);
                        }
                    } else if let Some(default) = self.default_of(*property, 0) {
                        push_segment(&mut filling.path, name);
                        let mut default = default.clone();
                        if (filling.wanted)(&filling.path)
                            && self.fill_inside(*property, &mut default, filling, depth + 1)
                        {
                            map.insert(name.clone(), default);
                        }
                    }
                    filling.path.truncate(length);
                }
            }
            Value::Array(elements) => {
                for (i, element) in elements.iter_mut().enumerate() {
                    if let Some(next) = node.prefix.get(i).copied().or(node.items) {
                        push_segment(&mut filling.path, &i.to_string());
                        self.fill(next, element, filling, depth + 1);
                        filling.path.truncate(length);
                    }
                }
            }
            _ => {}
        }
    }

    /// Fills the defaults inside of a default that is filled in itself, and tells whether that
    /// comes to an end: a schema may refer to itself, and its default lead to itself again. None
    /// of such a circle is filled in.
    fn fill_inside(
        &self,
        property: Id,
        default: &mut Value,
        filling: &mut Filling<'_>,
        depth: usize,
    ) -> bool {
        if filling.circle.is_some() {
            return false;
        }
        if filling.inside.contains(&property) {
            filling.circle = Some(property);
            return false;
        }
        let before = filling.added.len();
        filling.added.push(filling.path.clone());
        filling.inside.push(property);
        self.fill(property, default, filling, depth);
        filling.inside.pop();
        if filling.circle.is_none() {
            return true;
        }
        filling.circle = filling.circle.filter(|begins| *begins != property);
        filling.added.truncate(before);
        false
    }

    /// The default of a property: its own, else that of the schema it refers to.
    fn default_of(&self, id: Id, depth: usize) -> Option<&Value> {
        let node = &self.nodes[id];
        node.default.as_ref().or_else(|| {
            if depth > 16 {
                return None;
            }
            node.sure
                .iter()
                .find_map(|&next| self.default_of(next, depth + 1))
        })
    }

    /// Refuses, before any work is done, what would cost a validator more than `budget` steps.
    ///
    /// The usual case, a schema and a value of usual size, costs one walk over the value.
    pub(crate) fn affords(&self, value: &Value, budget: u64) -> Result<(), TooCostly> {
        let mut size = Size {
            left: budget,
            deepest: 0,
        };
        size.add(value, 0);
        if size.left == 0 {
            return Err(TooCostly);
        }
        let values = budget - size.left;
        let simple = !self.has_pattern && size.deepest * MAX_CHAIN / 8 < MAX_DESCENT;
        if simple && self.unfolded.saturating_mul(values) <= budget / UNION_WEIGHT {
            return Ok(());
        }
        let mut left = budget;
        self.walk(0, value, 1, 0, &mut Vec::new(), &mut left)
    }

    fn walk(
        &self,
        id: Id,
        value: &Value,
        weight: u64,
        depth: usize,
        here: &mut Vec<Id>,
        left: &mut u64,
    ) -> Result<(), TooCostly> {
        if here.contains(&id) {
            return Ok(());
        }
        if depth > MAX_DESCENT {
            return Err(TooCostly);
        }
        let node = &self.nodes[id];
        let weight = if node.twice {
            weight.saturating_mul(2)
        } else {
            weight
        };
        let mut own = node.own;
        if let Value::String(text) = value {
            own += text.len() as u64 / 64;
            if node.backtracks {
                own += BACKTRACKING + text.len() as u64;
            }
        }
        if node.foreign {
            own += FOREIGN;
        }
        *left = left
            .checked_sub(own.saturating_mul(weight))
            .ok_or(TooCostly)?;
        if !node.in_place.is_empty() {
            here.push(id);
            for &(next, union) in &node.in_place {
                let weight = if union {
                    weight.max(UNION_WEIGHT)
                } else {
                    weight
                };
                self.walk(next, value, weight, depth + 1, here, left)?;
            }
            here.pop();
        }
        match value {
            Value::Object(map) => {
                for (name, member) in map {
                    if let Some((_, next)) = node.properties.iter().find(|(n, _)| n == name) {
                        self.walk(*next, member, weight, depth + 1, &mut Vec::new(), left)?;
                    }
                    for &next in &node.members {
                        self.walk(next, member, weight, depth + 1, &mut Vec::new(), left)?;
                    }
                    if !node.names.is_empty() {
                        let name = Value::String(name.clone());
                        for &next in &node.names {
                            self.walk(next, &name, weight, depth + 1, &mut Vec::new(), left)?;
                        }
                    }
                }
            }
            Value::Array(elements) => {
                for (i, element) in elements.iter().enumerate() {
                    if let Some(&next) = node.prefix.get(i) {
                        self.walk(next, element, weight, depth + 1, &mut Vec::new(), left)?;
                    }
                    for &next in &node.elements {
                        self.walk(next, element, weight, depth + 1, &mut Vec::new(), left)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Marks the schemas that lead to a default, so that filling goes nowhere else.
    fn mark_defaults(&mut self) {
        for node in &mut self.nodes {
            node.leads_to_default = false;
        }
        let mut above: Vec<Vec<Id>> = vec![Vec::new(); self.nodes.len()];
        let mut open = Vec::new();
        for (id, node) in self.nodes.iter().enumerate() {
            let down = node
                .sure
                .iter()
                .chain(node.properties.iter().map(|(_, p)| p))
                .chain(&node.prefix)
                .chain(&node.items);
            for &next in down {
                above[next].push(id);
            }
            if node.default.is_some() {
                open.push(id);
            }
        }
        while let Some(id) = open.pop() {
            for &up in &above[id] {
                if !self.nodes[up].leads_to_default {
                    self.nodes[up].leads_to_default = true;
                    open.push(up);
                }
            }
        }
        self.has_defaults = self.nodes.first().is_some_and(|n| n.leads_to_default);
    }

    /// Refuses schemas in which one value meets too many schemas, or too many in a row.
    fn measure(&mut self) -> Result<(), SchemaError> {
        #[derive(Clone, Copy)]
        enum Mark {
            New,
            Open,
            Done(u64),
        }
        fn visit(
            nodes: &[Node],
            marks: &mut [Mark],
            id: Id,
            depth: usize,
        ) -> Result<u64, SchemaError> {
            match marks[id] {
                Mark::Done(n) => return Ok(n),
                // A circle: the validator ends it.
                Mark::Open => return Ok(0),
                Mark::New => {}
            }
            if depth > MAX_CHAIN {
                return Err(SchemaError::Chain { limit: MAX_CHAIN });
            }
            marks[id] = Mark::Open;
            let node = &nodes[id];
            let mut sum = 1 + node.own / 16;
            for &(next, _) in &node.in_place {
                sum = sum.saturating_add(visit(nodes, marks, next, depth + 1)?);
            }
            if node.twice {
                sum = sum.saturating_mul(2);
            }
            marks[id] = Mark::Done(sum);
            Ok(sum)
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        for id in 0..self.nodes.len() {
            if visit(&self.nodes, &mut marks, id, 0)? > MAX_FANOUT {
                return Err(SchemaError::Fanout { limit: MAX_FANOUT });
            }
        }
        self.unfolded = self.unfold(0, &mut vec![None; self.nodes.len()], 0);
        Ok(())
    }

    /// How many schemas there are when each use counts; `u64::MAX` for recursive ones, about
    /// which only a walk over the value can tell.
    fn unfold(&self, id: Id, known: &mut Vec<Option<u64>>, depth: usize) -> u64 {
        if let Some(n) = known[id] {
            return n;
        }
        if depth > 300 {
            return u64::MAX;
        }
        // While this one is open, meeting it again is recursion.
        known[id] = Some(u64::MAX);
        let node = &self.nodes[id];
        let mut sum = node.own;
        let down = node
            .in_place
            .iter()
            .map(|(n, _)| n)
            .chain(node.properties.iter().map(|(_, p)| p))
            .chain(&node.members)
            .chain(&node.names)
            .chain(&node.prefix)
            .chain(&node.elements);
        for &next in down {
            sum = sum.saturating_add(self.unfold(next, known, depth + 1));
        }
        if node.twice {
            sum = sum.saturating_mul(2);
        }
        known[id] = Some(sum);
        sum
    }
}

struct Size {
    left: u64,
    deepest: usize,
}

impl Size {
    fn add(&mut self, value: &Value, depth: usize) {
        self.deepest = self.deepest.max(depth);
        if self.left == 0 {
            return;
        }
        if depth > MAX_DESCENT {
            self.left = 0;
            return;
        }
        self.left -= 1;
        match value {
            Value::Object(map) => map.values().for_each(|v| self.add(v, depth + 1)),
            Value::Array(elements) => elements.iter().for_each(|v| self.add(v, depth + 1)),
            Value::String(text) => self.left = self.left.saturating_sub(text.len() as u64 / 256),
            _ => {}
        }
    }
}

/// Appends `/name` with `~` and `/` escaped, as JSON pointers have it.
pub(crate) fn push_segment(pointer: &mut String, name: &str) {
    pointer.push('/');
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
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

impl<'s> Builder<'s> {
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
