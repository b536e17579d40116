//! A schema's shape: what leads where, what it may cost, which defaults it names.
//!
//! Knows: which keywords hold schemas, how `$ref` leads on inside one document, how much work a
//! validator may have with a value. Does not know: whether a value is valid.

mod builder;

use serde_json::Value;

use super::SchemaError;
use super::SchemaLimits;

use builder::Builder;

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

impl Outline {
    pub(crate) fn new(root: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        let read = Builder::read(root, limits)?;
        let mut outline = Self {
            patterns: read.patterns,
            nodes: read.nodes,
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
