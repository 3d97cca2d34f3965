//! Extracts source locations from a failed gate: failing tests, stack frames, and names in errors.
//!
//! Reads a normalised log line by line. Frames of Python, JavaScript, Go, Rust and Java are recognised by
//! their shape; toolchains and installed dependencies are left out. A frame's depth is its distance from the
//! innermost frame of its trace.
//!
//! Invariants: each list is sorted, free of duplicates and bounded, so that the order in which a gate prints,
//! its times and its addresses change nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

mod frame;
mod tests_named;

use frame::{Order, frame_of, opens_trace};
use tests_named::failing_test;

/// Maximum number of frames, of failing tests and of names.
const LIMIT: usize = 64;

/// Beginnings of pytest lines on tests that did not fail.
const NO_FAILURES: [&str; 3] = ["SKIPPED ", "XFAIL ", "XPASS "];

/// The longest line that is read, in bytes; the rest of it is ignored.
const MAX_LINE: usize = 2000;

/// Maximum lines between two frames of a trace with the innermost first.
const GAP: usize = 3;

/// The locations in a gate's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureEvidence {
    /// The failing tests as their runner names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// The stack frames, and the places of compile errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<StackFrame>,
    /// Identifiers that error messages quote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// One place in a stack trace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFrame {
    /// The frames between it and the innermost one, at the least over all traces.
    pub depth: u64,
    /// The file as it was printed, without the directory of the copy.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The function, if the trace names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

impl FailureEvidence {
    /// Reads the normalised output of a gate.
    #[must_use]
    pub fn read(log: &str) -> Self {
        let mut reader = Reader::default();
        for (number, line) in log.lines().enumerate() {
            reader.line(number, &line[..line.floor_char_boundary(MAX_LINE)]);
        }
        reader.end_trace();
        let mut frames: Vec<StackFrame> = reader
            .frames
            .into_iter()
            .map(|((file, line, function), depth)| StackFrame {
                depth,
                file,
                line,
                function,
            })
            .collect();
        frames.sort_unstable();
        frames.truncate(LIMIT);
        let tests = reader.tests.into_iter().take(LIMIT).collect();
        Self {
            tests,
            frames,
            names: reader.names.into_iter().take(LIMIT).collect(),
        }
    }

    /// Whether nothing was recognised.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty() && self.frames.is_empty() && self.names.is_empty()
    }

    /// Adds the failing tests of a report if the output named none.
    pub fn add_tests<'t>(&mut self, failed: impl Iterator<Item = &'t str>) {
        if self.tests.is_empty() {
            self.tests = failed.take(LIMIT).map(str::to_owned).collect();
        }
    }

    /// Merges another gate's evidence.
    pub fn merge(&mut self, other: &Self) {
        self.tests.extend(other.tests.iter().cloned());
        self.frames.extend(other.frames.iter().cloned());
        self.names.extend(other.names.iter().cloned());
        self.tests.sort_unstable();
        self.tests.dedup();
        self.frames.sort_unstable();
        self.frames
            .dedup_by(|a, b| (&a.file, a.line, &a.function) == (&b.file, b.line, &b.function));
        self.names.sort_unstable();
        self.names.dedup();
    }
}

/// A place without its depth.
type FrameLocation = (String, u64, Option<String>);

#[derive(Default)]
struct Reader {
    tests: BTreeSet<String>,
    names: BTreeSet<String>,
    frames: BTreeMap<FrameLocation, u64>,
    /// The frames of the trace that is being read, as printed.
    trace: Vec<FrameLocation>,
    order: Order,
    last_frame: usize,
    /// The line before, which names the function of a frame in Go and Rust.
    before: String,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
        if NO_FAILURES.iter().any(|word| line.starts_with(word)) {
            return;
        }
        if let Some(test) = failing_test(line) {
            keep(&mut self.tests, test);
        }
        if opens_trace(line)
            || (self.order == Order::InnermostFirst && number > self.last_frame + GAP)
        {
            self.end_trace();
        }
        names_in(line, &mut self.names);
        if let Some(frame) = frame_of(line, &self.before) {
            if self.trace.is_empty() {
                self.order = frame.order;
            }
            self.last_frame = number;
            if frame.is_own && self.trace.len() < 4 * LIMIT {
                self.trace.push((frame.file, frame.line, frame.function));
            }
        }
        line.trim().clone_into(&mut self.before);
    }

    fn end_trace(&mut self) {
        let count = self.trace.len();
        for (at, place) in std::mem::take(&mut self.trace).into_iter().enumerate() {
            let depth = match self.order {
                Order::InnermostFirst => at,
                Order::InnermostLast => count - 1 - at,
            } as u64;
            let known = self.frames.entry(place).or_insert(depth);
            *known = depth.min(*known);
        }
        // The kept frames do not depend on the order: the deepest are dropped first, and the last of equals.
        while self.frames.len() > 16 * LIMIT {
            let last = self
                .frames
                .iter()
                .max_by_key(|(place, depth)| (**depth, *place));
            let Some(last) = last.map(|(place, _)| place.clone()) else {
                break;
            };
            self.frames.remove(&last);
        }
    }
}

/// Adds to a bounded set; of too many the last are dropped.
fn keep(set: &mut BTreeSet<String>, value: String) {
    set.insert(value);
    if set.len() > LIMIT {
        set.pop_last();
    }
}

/// Adds quoted identifiers in an error line; for Go, undefined names.
fn names_in(line: &str, names: &mut BTreeSet<String>) {
    let tells = ["Error", "error", "undefined"];
    if !tells.iter().any(|word| line.contains(word)) {
        return;
    }
    let mut add = |name: &str| {
        let name = name.trim_end_matches("()");
        let is_name = name.len() >= 3
            && name.len() <= 80
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.:".contains(&byte));
        if is_name {
            keep(names, name.to_owned());
        }
    };
    for quote in ['\'', '`', '"'] {
        line.split(quote).skip(1).step_by(2).for_each(&mut add);
    }
    if let Some((_, rest)) = line.split_once("undefined: ") {
        rest.split_whitespace()
            .next()
            .into_iter()
            .for_each(&mut add);
    }
    if let Some((before, _)) = line.split_once(" undefined (") {
        before
            .split_whitespace()
            .last()
            .into_iter()
            .for_each(&mut add);
    }
}

#[cfg(test)]
mod tests;
