//! Bodies in one piece, and data that is not the JSON of one chunk.
//!
//! Knows: JSON that is nearly some, lists and lines of bodies, events that ran together, and
//! when a body says nothing at all. Does not know: what a body's fields mean.

use super::*;

impl ReplyState {
    /// Data that was nearly JSON; whether it is a body now.
    pub(super) fn mended_body(&mut self, text: &str) -> bool {
        let body = serde_json::from_str::<Body<'_>>(text);
        if let Ok(body) = &body {
            self.body(body, text);
        }
        body.is_ok()
    }

    /// Data that is no object.
    pub(super) fn odd_data(&mut self, data: &str, error: &serde_json::Error, last: bool) {
        match serde_json::from_str::<Option<Vec<&RawValue>>>(data) {
            Ok(None) => {}
            Ok(Some(bodies)) => {
                for raw in bodies {
                    if let Ok(body) = serde_json::from_str::<Body<'_>>(raw.get()) {
                        self.body(&body, raw.get());
                    }
                }
            }
            Err(_) if self.run_together(data, last) => {}
            // Whatever comes after the end is not needed.
            Err(_) if self.is_complete() => {}
            // The connection broke inside the event: the end finds that out.
            Err(_) if last => {}
            Err(_) => {
                // A stream that was damaged on its way may come whole the next time.
                let why = format!("has an event that is not valid JSON ({error})");
                let error = classify::unreadable(data.as_bytes(), &why);
                self.fail(ModelError {
                    retryable: true,
                    ..error
                });
            }
        }
    }

    /// Events without the blank lines between them, with their field's name twice, or whose word
    /// for the end is written otherwise. False when any line is none of these.
    pub(super) fn run_together(&mut self, data: &str, last: bool) -> bool {
        let lines: Vec<&str> = data
            .lines()
            .map(|line| line.strip_prefix("data:").unwrap_or(line).trim())
            .filter(|line| !line.is_empty())
            .collect();
        let ends = |line: &str| line.trim_matches('"').eq_ignore_ascii_case("[done]");
        let bodies = lines
            .iter()
            .take_while(|line| ends(line) || serde_json::from_str::<Body<'_>>(line).is_ok())
            .count();
        // Only the last line of a stream can be cut.
        if bodies == 0 || bodies + usize::from(last) < lines.len() {
            return false;
        }
        for line in &lines[..bodies] {
            if self.done || self.done_marker {
                break;
            }
            match serde_json::from_str::<Body<'_>>(line) {
                Ok(body) => self.body(&body, line),
                Err(_) => self.done_marker = true,
            }
        }
        true
    }

    pub(super) fn json_body(&mut self, bytes: &[u8]) {
        // The check alone is several times faster than the lossy reading.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let mut text: &str = &text;
        let mut body = serde_json::from_str::<Body<'_>>(text);
        let nearly;
        if let Err(error) = &body
            && !error.is_eof()
            && let Some(mended) = mended(text)
        {
            nearly = mended;
            text = &nearly;
            body = serde_json::from_str(text);
        }
        match body {
            Ok(body) => {
                self.whole = true;
                self.body(&body, text);
                self.other_than_message(text);
                self.without_answer(text);
            }
            Err(error) if !self.json_lines(text) => {
                let cut = error.is_eof() && self.asked == Asked::Stream;
                if cut {
                    return self.fail(classify::cut_off(text));
                }
                self.whole = true;
                let before = self.answered;
                self.odd_data(text, &error, false);
                let silent = self.answered == before && self.error.is_none();
                if silent && self.foreign.is_none() {
                    let why = if error.is_eof() {
                        "is cut: it ends before its JSON does"
                    } else if error.is_syntax() {
                        "is not valid JSON"
                    } else {
                        "is no object"
                    };
                    self.fail(classify::unreadable(bytes, why));
                }
            }
            Err(_) => {}
        }
    }

    /// A whole body whose message is an object of another kind: an error of some proxy, mostly. Where
    /// the reply was cut or filtered, that is told.
    fn other_than_message(&mut self, text: &str) {
        let meaning = self.finish.as_deref().map(finish::meaning);
        let said = self.spoke || !self.calls.is_empty() || !self.reasoning.is_empty();
        if said || matches!(meaning, Some(Meaning::Length | Meaning::Filter)) {
            return;
        }
        if let Some(other) = wire::other_than_message(text) {
            let whole = (!self.answered)
                .then(|| classify::of_silent(text))
                .flatten();
            self.fail(whole.unwrap_or_else(|| classify::other_than_message(&other)));
        }
    }

    /// A whole body that held no answer: it may say why under a name that nobody knows.
    pub(super) fn without_answer(&mut self, text: &str) {
        if self.answered || self.done || self.foreign.is_some() {
            return;
        }
        let error = classify::of_silent(text).unwrap_or_else(|| classify::without_message(text));
        self.fail(error);
    }

    /// A stream of one JSON object a line, as Ollama's own interface sends it.
    pub(super) fn json_lines(&mut self, text: &str) -> bool {
        let mut lines = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .peekable();
        let first = lines
            .peek()
            .is_some_and(|line| serde_json::from_str::<Body<'_>>(line).is_ok());
        if !first {
            return false;
        }
        for line in lines {
            match serde_json::from_str::<Body<'_>>(line) {
                Ok(body) => self.body(&body, line),
                Err(_) => break,
            }
        }
        true
    }
}
