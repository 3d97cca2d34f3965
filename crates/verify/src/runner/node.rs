//! `node --test`: called by a test script, or detected by files that use `node:test`.

use super::format::{jest_json, tap};
use super::scripts::{missing_package, test_script};
use super::tree_view::is_node_test;
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, Tool, TreeView, command,
};
use crate::results::TestResults;
use crate::tally::TestRunner;

/// The name of the file with the reporter.
const REPORTER_NAME: &str = "node-reporter.mjs";

/// A reporter that writes the names of files and groups in front of those of tests, in the format of jest. Each process has
/// its own report.
const REPORTER: &str = r#"import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
export default async function* report(source) {
  const groups = [];
  const testResults = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      groups.length = data.nesting;
      groups[data.nesting] = data.name;
    } else if (type === 'test:pass' || type === 'test:fail') {
      const is_skipped = data.skip !== undefined && data.skip !== false || data.todo !== undefined && data.todo !== false;
      const status = is_skipped ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
      const ancestorTitles = groups.slice(0, data.nesting).map(String);
      // A file counts as a test where it has none.
      const title = data.name === data.file ? '' : String(data.name);
      testResults.push({ name: data.file ?? '', assertionResults: [{ ancestorTitles, title, status }] });
    }
  }
  const name = `report-${process.pid}-${process.hrtime.bigint()}.json`;
  writeFileSync(join(dirname(fileURLToPath(import.meta.url)), name), JSON.stringify({ testResults }) + '\n');
}
"#;

pub(super) struct Node;

impl Runner for Node {
    fn id(&self) -> &'static str {
        "node-test"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "node",
            install: "install Node.js 20 or newer, such as `apt install nodejs`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["package.json"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        if test_script(view).is_some() {
            return None;
        }
        let uses = |name: &&String| {
            is_node_test(name)
                && view
                    .text(name)
                    .is_some_and(|text| text.contains("node:test"))
        };
        let file = view.names.iter().find(uses)?;
        Some((
            command(&["node", "--test"]),
            format!("{file} uses node:test"),
        ))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "node" && call.has("--test")
    }

    /// By variable, because options cannot follow file names. The output for people stays the same.
    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        if call
            .args
            .iter()
            .any(|word| word.starts_with("--test-reporter"))
        {
            return Some(Reporting::unchanged(call));
        }
        let options = format!(
            "--test-reporter=spec --test-reporter-destination=stdout --test-reporter={}/{REPORTER_NAME} --test-reporter-destination=stderr",
            at.dir
        );
        // In this variable a space would begin another option.
        if at.dir.contains(char::is_whitespace) {
            return None;
        }
        let options = vec![("NODE_OPTIONS", options)];
        Some(Reporting {
            options,
            needs: vec![(REPORTER_NAME, REPORTER.to_owned())],
            ..Reporting::files(call.words.to_vec())
        })
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        let in_report = jest_json::read(output).filter(|results| !results.tests.is_empty());
        Some(in_report.unwrap_or_else(|| {
            let report = output.report.as_deref().filter(|report| !report.is_empty());
            tap::read(report.unwrap_or(&output.stdout), output)
        }))
    }

    fn suite(&self) -> &'static str {
        "javascript"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Node)
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        missing_package(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::tree_view::view;

    #[test]
    fn node_test_files_run_without_script() {
        let file = ("test/a.js", "import test from 'node:test'");
        assert_eq!(
            Node.detect(&view(&[file])).unwrap().0.join(" "),
            "node --test"
        );
        assert!(
            Node.detect(&view(&[
                file,
                ("package.json", r#"{"scripts":{"test":"x"}}"#)
            ]))
            .is_none()
        );
        assert!(
            Node.detect(&view(&[("src/a.test.mjs", "import {test} from 'vitest'")]))
                .is_none()
        );
    }
}
