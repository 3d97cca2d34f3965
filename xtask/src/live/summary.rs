//! What the live tests say about themselves: a line of JSON each, shown as a table.

use std::fmt;
use std::fs;
use std::path::Path;

use comfy_table::{Table, presets};
use serde::Deserialize;

use crate::error::TaskError;

/// One test, as it wrote itself down.
#[derive(Debug, Deserialize)]
struct Line {
    test: String,
    asked: String,
    provider: String,
    model: String,
    tokens_input: Option<u64>,
    tokens_output: Option<u64>,
    seconds: f64,
    verdict: String,
}

/// What all tests of a run wrote down.
#[derive(Debug)]
pub(super) struct Summary(Vec<Line>);

impl Summary {
    /// Reads it from this file.
    pub(super) fn read(path: &Path) -> Result<Self, TaskError> {
        let text = fs::read_to_string(path).map_err(TaskError::io("read", path))?;
        Ok(Self(
            text.lines()
                .map(serde_json::from_str)
                .collect::<Result<_, _>>()?,
        ))
    }

    /// Fails unless each of so many tests left its line.
    pub(super) fn check(&self, tests: u64) -> Result<(), TaskError> {
        let lines = self.0.len() as u64;
        if lines > 0 && lines == tests {
            return Ok(());
        }
        Err(TaskError::Missing {
            what: format!("the summary of some live test ({tests} ran, {lines} left a line)"),
            fix: "Each test begins with a line of its own; see crates/testkit/src/live.rs."
                .to_owned(),
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&table(&self.0))
    }
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "test",
        "asked",
        "provider",
        "model",
        "tokens in",
        "out",
        "seconds",
        "verdict",
    ]);
    for line in lines {
        let count = |tokens: Option<u64>| {
            tokens.map_or_else(|| "–".to_owned(), |tokens| tokens.to_string())
        };
        table.add_row([
            line.test.clone(),
            line.asked.clone(),
            line.provider.clone(),
            line.model.clone(),
            count(line.tokens_input),
            count(line.tokens_output),
            format!("{:.1}", line.seconds),
            line.verdict.clone(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_needs_one_row_for_each_test() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.jsonl");
        fs::write(&path, "").unwrap();
        assert!(
            Summary::read(&path).unwrap().check(0).is_err(),
            "no test ran"
        );
        fs::write(
            &path,
            "{\"test\":\"a\",\"asked\":\"b\",\"provider\":\"gateway\",\"model\":\"m\",\"tokens_input\":12,\
             \"tokens_output\":null,\"seconds\":1.26,\"verdict\":\"as expected\"}\n",
        )
        .unwrap();
        let summary = Summary::read(&path).unwrap();
        summary.check(1).unwrap();
        let error = summary.check(2).unwrap_err().to_string();
        assert!(error.contains("2 ran, 1 left"), "{error}");
        let text = summary.to_string();
        assert!(
            text.contains("| 12") && text.contains("1.3") && text.contains("as expected"),
            "{text}"
        );
        fs::write(&path, "{\"test\":").unwrap();
        assert!(Summary::read(&path).is_err());
    }
}
