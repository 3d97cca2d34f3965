//! What the tests of specifications share: a project, and a server that answers each phase with its document.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crucible_testkit::{FakeApi, Reply, SeenRequest};
use serde_json::Value;

use crate::support::{Call, Fixture, Ran};

/// The idea of most specs.
pub(crate) const IDEA: &str = "users can export their data\n";

/// The spec of most tests.
pub(crate) const SPEC: &str = "export-data";

/// Which phase each kind of system message is of, by its first words.
const BEGINNINGS: [(&str, &str); 7] = [
    ("You write the requirements", "requirements"),
    ("You keep the requirements", "requirements"),
    ("You write the design", "design"),
    ("You write the tasks", "tasks"),
    ("You review", "review"),
    ("You correct files", "fixup"),
    ("You close the plan", "final"),
];

pub(crate) const REQUIREMENTS: &str = "\
# Requirements: Export of data

### R-001: Users can ask for an export

A signed-in user can ask for all of their data in one file.

- The export holds every record of the user.
- Nobody else's record is in it.

### R-002: An export says when it was made

The file names the instant at which it was made.

- The instant is in UTC.
";

pub(crate) const DESIGN: &str = "\
# Design: Export of data

## Overview

One command writes one file (R-001, R-002).

## Components

- `src/area.py` gets a function that writes the export (R-001).
- The file begins with the instant (R-002).

## Data

One JSON object for each record.

## Risks

- Large exports: they are written record by record.
";

pub(crate) const TASKS: &str = "\
# Tasks: Export of data

- [ ] T-001 (R-001): write the export
  files: src/area.py
- [ ] T-002 (R-002): write the instant first
";

pub(crate) const REVIEW: &str = "\
# Review: Export of data

## Findings

- F-001 [major] src/area.py: the area is a sum and not a product
";

/// The answer of the fixup: the whole file, mended.
pub(crate) fn fixup() -> String {
    crate::support::good_answer()
}

pub(crate) const FINAL: &str = "\
# Final: Export of data

## Summary

Users ask for an export and get one file. It names its instant.

## Open points

- none
";

/// Which phase a request is of.
pub(crate) fn phase_of(request: &SeenRequest) -> &'static str {
    let system = request.body["messages"][0]["content"]
        .as_str()
        .unwrap_or_default();
    // A prompt template puts a heading before it.
    let system = system.strip_prefix("# Instructions\n\n").unwrap_or(system);
    let found = BEGINNINGS
        .iter()
        .find(|(beginning, _)| system.starts_with(beginning));
    match found {
        Some((_, phase)) => phase,
        None => panic!("no question of a phase: {system}"),
    }
}

/// The good answer of a phase.
pub(crate) fn good(phase: &str) -> String {
    match phase {
        "requirements" => REQUIREMENTS.to_owned(),
        "design" => DESIGN.to_owned(),
        "tasks" => TASKS.to_owned(),
        "review" => REVIEW.to_owned(),
        "fixup" => fixup(),
        _ => FINAL.to_owned(),
    }
}

/// A server that answers each phase well, but where `other` has something else to say.
pub(crate) fn server(
    mut other: impl FnMut(&str, &SeenRequest) -> Option<Reply> + Send + 'static,
) -> FakeApi {
    FakeApi::answering(move |request| {
        let phase = phase_of(request);
        other(phase, request).unwrap_or_else(|| Reply::Answer(good(phase)))
    })
}

/// A server that answers each phase well.
pub(crate) fn answering() -> FakeApi {
    server(|_, _| None)
}

/// The phases that were asked, in order.
pub(crate) fn asked(server: &FakeApi) -> Vec<&'static str> {
    server.completions().iter().map(phase_of).collect()
}

/// A project with one file that a review can find fault with.
pub(crate) fn project(fixture: &Fixture) -> PathBuf {
    let project = fixture.path("project");
    std::fs::create_dir_all(project.join(".crucible")).unwrap();
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("README.md"), "# Shop\n").unwrap();
    std::fs::write(project.join("src/area.py"), crate::support::WRONG).unwrap();
    project
}

/// A call in the project, with this idea on its standard input.
pub(crate) fn with_idea(call: Call, project: &Path, idea: &str) -> Ran {
    let mut command = call.current_dir(project).command();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who has read enough closes its end.
    let _closed = child.stdin.take().unwrap().write_all(idea.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// `crucible spec export-data` with the usual idea and these options.
pub(crate) fn spec<const N: usize>(fixture: &Fixture, project: &Path, options: [&str; N]) -> Ran {
    with_idea(fixture.call(["spec", SPEC]).args(options), project, IDEA)
}

/// `crucible resume export-data` with these options.
pub(crate) fn resume<const N: usize>(fixture: &Fixture, project: &Path, options: [&str; N]) -> Ran {
    fixture
        .call(["resume", SPEC])
        .args(options)
        .current_dir(project)
        .run()
}

/// The directory of the spec.
pub(crate) fn spec_dir(project: &Path) -> PathBuf {
    project.join(".crucible/specs").join(SPEC)
}

/// The receipts, by their place in the order.
pub(crate) fn receipts(project: &Path) -> Vec<Value> {
    let Ok(entries) = std::fs::read_dir(spec_dir(project).join("receipts")) else {
        return Vec::new();
    };
    let mut receipts: Vec<Value> = entries
        .map(|entry| {
            serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap()
        })
        .collect();
    receipts.sort_by_key(|receipt: &Value| receipt["sequence"].as_u64());
    receipts
}

/// The newest receipt.
#[track_caller]
pub(crate) fn newest(project: &Path) -> Value {
    receipts(project).pop().unwrap()
}

/// Everything below a directory, as one text, to look for what must not be there.
pub(crate) fn everything(directory: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        text.push_str(&format!("{}\n", path.display()));
        if path.is_dir() {
            text.push_str(&everything(&path));
        } else {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
    text
}

/// A document, checked against its schema.
#[track_caller]
pub(crate) fn valid(document: &Value, schema: &str) {
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let problem = schema
        .iter_errors(document)
        .next()
        .map(|error| error.to_string());
    assert_eq!(problem, None, "{document:#}");
}

/// A log of a gate, checked against what SARIF 2.1.0 and GitHub ask of it: each result has the rule that it names.
#[track_caller]
pub(crate) fn valid_sarif(log: &Value) {
    valid(
        log,
        include_str!("../../../../../docs/schemas/gate-sarif.schema.json"),
    );
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: std::collections::BTreeSet<&str> = rules
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), rules.len(), "two rules have one id");
    let results = run["results"].as_array().unwrap();
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"], "{result:#}");
    }
    let prints = results
        .iter()
        .map(|result| result["partialFingerprints"]["primaryLocationLineHash"].as_str());
    let prints: std::collections::BTreeSet<_> = prints.collect();
    assert_eq!(prints.len(), results.len(), "two results are one to GitHub");
}

/// Another program that writes to the ledger, and does not come to an end until this is dropped. Readers go on beside it.
pub(crate) struct LedgerHolder {
    program: Child,
}

impl LedgerHolder {
    pub(crate) fn new(ledger: &Path) -> Self {
        let script = "import sqlite3, sys\n\
                      db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                      db.execute('BEGIN IMMEDIATE')\n\
                      print('held', flush=True)\n\
                      sys.stdin.read()\n";
        let mut program = Command::new("python3")
            .args(["-c", script])
            .arg(ledger)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "held\n");
        Self { program }
    }
}

impl Drop for LedgerHolder {
    fn drop(&mut self) {
        let _it_may_have_ended = self.program.kill();
        let _it_may_have_ended = self.program.wait();
    }
}

/// Any command in the project.
pub(crate) fn at<const N: usize>(fixture: &Fixture, project: &Path, args: [&str; N]) -> Ran {
    fixture.call(args).current_dir(project).run()
}

/// The schema of receipts.
pub(crate) const RECEIPT_SCHEMA: &str =
    include_str!("../../../../../docs/schemas/receipt.v1.schema.json");

/// An artifact of the spec.
pub(crate) fn artifact(project: &Path, name: &str) -> String {
    std::fs::read_to_string(spec_dir(project).join("artifacts").join(name)).unwrap()
}
