//! Reads instances in the form of SWE-bench (JSON lines) and writes each as a task.
//!
//! Read are `instance_id`, `repo`, `base_commit`, `patch`, `test_patch`, `problem_statement`, `FAIL_TO_PASS` and `PASS_TO_PASS`; the two
//! lists may be JSON lists or texts that hold one, as in the published files. The check runs exactly those tests with pytest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crucible_host::fs::{create_dir_all, read_regular_up_to, write_atomic};
use crucible_host::words::shell_word;
use crucible_model::ByteLimit;
use crucible_repo::Oid;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::EvalError;
use crate::task::{TaskFile, TaskVersion, is_plain_name};

/// The largest file that is read.
const MAX_FILE: ByteLimit = ByteLimit(512 << 20);
/// Maximum bytes of a check: the limit of one command argument, with a margin.
const MAX_CHECK: usize = 100 * 1024;

/// The schema name of the JSON result.
const SCHEMA: &str = "crucible-eval-import-v1";

/// What an import came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// The tasks that were written.
    pub written: Vec<String>,
    /// Instances that were not, each with the reason.
    pub skipped: Vec<(String, String)>,
}

impl ImportSummary {
    /// Returns the result for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let (written, skipped) = (self.written.len(), self.skipped.len());
        format!("{written} tasks written, {skipped} skipped")
    }

    /// Returns the result for programs.
    #[must_use]
    pub fn document(&self) -> Value {
        let skipped: Vec<_> = self
            .skipped
            .iter()
            .map(|(task, reason)| json!({ "task": task, "reason": reason }))
            .collect();
        json!({ "schema_version": SCHEMA, "written": self.written, "skipped": skipped })
    }
}

/// An instance; other keys are ignored.
#[derive(Deserialize)]
struct Instance {
    instance_id: String,
    repo: String,
    base_commit: String,
    patch: String,
    test_patch: String,
    problem_statement: String,
    #[serde(rename = "FAIL_TO_PASS")]
    fail_to_pass: Value,
    #[serde(rename = "PASS_TO_PASS", default)]
    pass_to_pass: Value,
}

/// Writes each instance of `file` as a task below `out`. Its repository `owner/name` is searched in `repos`
/// as `owner__name`, `name` or `owner/name`; an instance without one is skipped and named.
///
/// # Errors
///
/// Fails on the first invalid line, and if a task cannot be written. Existing content of `out` is never
/// replaced.
pub fn import_swe_bench(file: &Path, repos: &Path, out: &Path) -> Result<ImportSummary, EvalError> {
    let bytes = read_regular_up_to(file, MAX_FILE)?;
    let mut summary = ImportSummary::default();
    let mut seen = BTreeSet::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let wrong = |problem: String| EvalError::Import {
            path: file.to_owned(),
            line: number,
            problem,
        };
        let instance: Instance =
            serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
        if !is_plain_name(&instance.instance_id) || !seen.insert(instance.instance_id.clone()) {
            return Err(wrong(format!(
                "instance_id {:?} is already used or not a plain name",
                instance.instance_id
            )));
        }
        let commit: Oid = (instance.base_commit.parse())
            .map_err(|error| wrong(format!("base_commit {:?}: {error}", instance.base_commit)))?;
        let tests = |value: &Value| tests(value).map_err(&wrong);
        let tests: BTreeSet<String> = tests(&instance.fail_to_pass)?
            .into_iter()
            .chain(tests(&instance.pass_to_pass)?)
            .collect();
        let place = out.join(&instance.instance_id);
        let skipped = match (place_of(&instance.repo, repos), check(&tests)) {
            _ if place.symlink_metadata().is_ok() => {
                Err(format!("{} already exists", place.display()))
            }
            (None, _) => Err(format!(
                "no repository of {:?} in {}",
                instance.repo,
                repos.display()
            )),
            (_, None) => Err("it has no tests, or too many for one command".to_owned()),
            (Some(repo), Some(check)) => Ok((repo, check)),
        };
        match skipped {
            Err(why) => summary.skipped.push((instance.instance_id, why)),
            Ok((repo, check)) => {
                let task = TaskFile {
                    schema_version: TaskVersion::V1,
                    goal: instance.problem_statement,
                    repo,
                    commit: Some(commit.as_str().to_owned()),
                    visible: None,
                    hidden: "hidden.patch".to_owned(),
                    solution: Some("solution.patch".to_owned()),
                    check,
                    check_timeout_s: 1800,
                    setup: Vec::new(),
                    setup_timeout_s: 1800,
                    setup_network: false,
                    test: None,
                    gates: BTreeMap::new(),
                    files: Vec::new(),
                };
                let text = toml::to_string(&task).map_err(|error| wrong(error.to_string()))?;
                create_dir_all(&place)?;
                write_atomic(&place.join("hidden.patch"), instance.test_patch.as_bytes())?;
                write_atomic(&place.join("solution.patch"), instance.patch.as_bytes())?;
                // Without this file the directory is not a task; it comes last.
                write_atomic(&place.join("task.toml"), text.as_bytes())?;
                summary.written.push(instance.instance_id);
            }
        }
    }
    Ok(summary)
}

/// The names of tests: a list, or a text that holds one.
fn tests(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => {
            let list: Value = serde_json::from_str(text)
                .map_err(|error| format!("invalid list of tests: {error}"))?;
            if list.is_string() {
                Err("a list of tests must be a string".to_owned())
            } else {
                tests(&list)
            }
        }
        Value::Array(names) => {
            let name = |name: &Value| name.as_str().map(str::to_owned);
            names
                .iter()
                .map(name)
                .collect::<Option<_>>()
                .ok_or_else(|| "a test has no name".to_owned())
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err("the list of tests is missing".to_owned())
        }
    }
}

/// The path below `repos` of the repository `owner/name`.
fn place_of(repo: &str, repos: &Path) -> Option<String> {
    let (owner, name) = repo
        .split_once('/')
        .filter(|(owner, name)| is_plain_name(owner) && is_plain_name(name))?;
    let candidates = [
        format!("{owner}__{name}"),
        format!("{owner}/{name}"),
        name.to_owned(),
    ];
    candidates
        .into_iter()
        .find(|path| repos.join(path).exists())
}

/// The command that runs these tests.
fn check(tests: &BTreeSet<String>) -> Option<String> {
    let words: Vec<String> = tests.iter().map(|test| shell_word(test)).collect();
    let command = format!(
        "python3 -m pytest -q -p no:cacheprovider -- {}",
        words.join(" ")
    );
    (!tests.is_empty() && command.len() <= MAX_CHECK).then_some(command)
}
