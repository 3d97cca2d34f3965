//! The run of the gates on deliberately broken sources, before a model is asked.
//!
//! A gate proves a change only if it runs the changed files. Each gate of the attempts is run once on a copy in which every source file
//! holds a line that no programming language accepts; a gate that ends as before tests something else, such as an installed copy of the
//! package. The line is at the top, where no comment or string of the file can hold it. Where the repository has no source file in a
//! known language, its text files hold nothing but that line.
//!
//! What always holds: tests, configuration and the files of gates stay as they are; only a private copy is written to; a gate whose run
//! can tell nothing is not run.

use std::path::Path;
use std::time::Duration;

use crucible_host::fs;
use crucible_model::{ByteLimit, PathRole, PathRoles, RepoPath, counted};
use crucible_patch::FileMode;
use crucible_repo::{FileKind, Git, TrackedFile};
use crucible_verify::{
    CanaryOutcome, GateLevel, GateOutcome, GateRun, TestRunner, TestTally, is_canary_telling, judge_canary,
};
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::journal::Witness;
use crate::trial::{self, Copied, Trial, TrialBase};
use crate::world::World;

/// A closing bracket begins nothing in any language, and what follows ends no line of a language that joins lines.
const BROKEN_LINE: &str = ")]} this line is broken on purpose ({[\n";

/// The largest file that is broken.
const MAX_FILE: ByteLimit = ByteLimit(8 * 1024 * 1024);
/// How much longer than before a gate may take on broken sources, beside twice its time.
const GRACE: Duration = Duration::from_secs(10);

/// Languages of [`FileKind::Source`] in which a program is not written.
const DATA: [&str; 5] = ["json", "toml", "xml", "yaml", "yml"];
/// Extensions of source files that are in no list of [`FileKind`].
const MORE_SOURCES: [&str; 30] = [
    "c++", "clj", "cljs", "cr", "cts", "cxx", "dart", "el", "elm", "f90", "fsx", "groovy", "hh", "hs", "hxx",
    "jl", "lisp", "ml", "mli", "mts", "pas", "php", "pl", "pm", "pyx", "r", "rkt", "sol", "tcl", "vb",
];

/// What the gates showed on broken sources; a part of `artifacts/analysis.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// Which files were broken.
    pub broken: BrokenFiles,
    /// How many files.
    pub files: u64,
    /// What each gate showed.
    pub gates: Vec<CanaryGate>,
}

/// Which files are broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BrokenFiles {
    /// Source files in a known language.
    Sources,
    /// Text files, where there is no source file.
    Texts,
    /// None: everything is a test, configuration or a file of a gate.
    None,
}

/// What one gate showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryGate {
    /// Which gate.
    pub id: String,
    /// What it showed.
    pub outcome: CanaryOutcome,
}

impl Canary {
    /// What this gate showed.
    pub(crate) fn outcome(&self, gate: &str) -> CanaryOutcome {
        self.gates.iter().find(|found| found.id == gate).map(|found| found.outcome).unwrap_or_default()
    }
}

/// The files that are broken in a copy.
pub(crate) struct Broken {
    files: Vec<(RepoPath, FileMode)>,
    kind: BrokenFiles,
}

impl Broken {
    /// Chooses the files that a change could touch. Pure.
    fn choose(tracked: &[TrackedFile], gate_files: &[RepoPath]) -> Self {
        let plain =
            tracked.iter().filter(|file| matches!(file.mode, FileMode::Regular | FileMode::Executable));
        let files: Vec<(RepoPath, FileMode)> = plain
            .filter_map(|file| Some((file.path.to_str()?.parse::<RepoPath>().ok()?, file.mode)))
            .filter(|(path, _)| !is_kept(path) && !gate_files.contains(path))
            .collect();
        let sources: Vec<_> = files.iter().filter(|(path, _)| is_source(path)).cloned().collect();
        if !sources.is_empty() {
            return Self { files: sources, kind: BrokenFiles::Sources };
        }
        let kind = if files.is_empty() { BrokenFiles::None } else { BrokenFiles::Texts };
        Self { files, kind }
    }

    /// Breaks the files of a copy.
    pub(crate) fn write(&self, copy: &Path) -> Result<(), RunError> {
        for (path, mode) in &self.files {
            let place = copy.join(path.as_str());
            // What was left out of the copy, or is too large, stays as it is.
            let Ok(content) = fs::read_regular_up_to(&place, MAX_FILE) else { continue };
            let broken = match self.kind {
                BrokenFiles::Sources => broken_source(path.as_str(), &content),
                BrokenFiles::Texts => (!content.contains(&0)).then(|| BROKEN_LINE.as_bytes().to_vec()),
                BrokenFiles::None => None,
            };
            let mode = if *mode == FileMode::Executable { 0o755 } else { 0o644 };
            if let Some(broken) = broken {
                fs::write_unflushed(&place, &broken, mode)?;
            }
        }
        Ok(())
    }
}

/// Whether a file keeps its content: a test, or what tells tools what to do.
fn is_kept(path: &RepoPath) -> bool {
    let roles = PathRoles::of(path);
    [
        PathRole::Test,
        PathRole::TestSettings,
        PathRole::Project,
        PathRole::ToolSettings,
        PathRole::Ci,
        PathRole::Lockfile,
        PathRole::GitSetting,
        PathRole::Generated,
    ]
    .into_iter()
    .any(|role| roles.has(role))
}

fn is_source(path: &RepoPath) -> bool {
    let Some((_, extension)) = path.file_name().rsplit_once('.') else { return false };
    let extension = extension.to_ascii_lowercase();
    let is_known =
        FileKind::of(path.as_str()) == Some(FileKind::Source) && !DATA.contains(&extension.as_str());
    is_known || MORE_SOURCES.contains(&extension.as_str())
}

/// A source file with the broken line at its top: behind `#!`, and in PHP behind the tag that begins the program. Nothing where PHP
/// text holds no program.
fn broken_source(path: &str, content: &[u8]) -> Option<Vec<u8>> {
    let line_after = |from: usize| {
        let rest = content.get(from..).unwrap_or_default();
        rest.iter().position(|byte| *byte == b'\n').map_or(content.len(), |at| from + at + 1)
    };
    let at = if path.to_ascii_lowercase().ends_with(".php") {
        const TAG: &[u8] = b"<?php";
        content.windows(TAG.len()).position(|window| window.eq_ignore_ascii_case(TAG))? + TAG.len()
    } else if content.starts_with(b"#!") && !content.starts_with(b"#![") {
        line_after(0)
    } else {
        0
    };
    let (head, rest) = content.split_at_checked(at)?;
    let newline: &[u8] = if head.is_empty() || head.ends_with(b"\n") { b"" } else { b"\n" };
    Some([head, newline, BROKEN_LINE.as_bytes(), rest].concat())
}

/// Runs the gates of `before` once more, on broken sources, and tells which of them count for a change.
///
/// # Errors
///
/// [`RunError::GateUnaffected`] where no gate counts; fails when the copy cannot be made.
pub(crate) async fn run_canary(
    world: &World<'_>,
    git: &Git,
    base: TrialBase<'_>,
    room: &Path,
    gate_files: &[RepoPath],
    before: &Trial,
    witness: &mut dyn Witness,
) -> Result<Canary, RunError> {
    let broken = Broken::choose(&git.tracked_files().await?, gate_files);
    let runs = || before.outcomes.iter().filter_map(ran);
    let mut canary = Canary { broken: broken.kind, files: broken.files.len() as u64, gates: Vec::new() };
    if broken.kind == BrokenFiles::None {
        witness.note("  note: no file but tests, configuration and files of gates; whether the gates test a change cannot be checked");
    } else {
        let mut gates = base.gates.to_vec();
        gates.retain_mut(|gate| {
            let telling = runs().find(|run| run.id == gate.id && is_canary_telling(run));
            let limit = telling.map(|run| run.duration.saturating_mul(2).saturating_add(GRACE));
            gate.timeout = gate.timeout.min(limit.unwrap_or_default());
            telling.is_some()
        });
        if !gates.is_empty() {
            let files = counted(canary.files, "file");
            witness.working(
                "verifier",
                &format!("running the gates with {files} broken on purpose, to see that they test them"),
            );
            let trial = trial::run(
                world,
                git,
                TrialBase { gates: &gates, ..base },
                GateLevel::Lite,
                room,
                Copied::Broken(&broken),
                witness,
            )
            .await?;
            for after in trial.outcomes.iter().filter_map(ran) {
                let Some(run) = runs().find(|run| run.id == after.id) else { continue };
                let outcome = judge_canary(run, after);
                canary.gates.push(CanaryGate { id: run.id.to_string(), outcome });
            }
        }
    }
    for run in runs() {
        if canary.gates.iter().any(|gate| gate.id == run.id.as_str()) {
            continue;
        }
        canary.gates.push(CanaryGate { id: run.id.to_string(), outcome: CanaryOutcome::Unknown });
        if broken.kind != BrokenFiles::None {
            witness.note(&format!(
                "  note: no test of gate {} passes before any change, so broken sources tell nothing about it; it counts",
                run.id
            ));
        }
    }
    canary.gates.sort_by(|a, b| a.id.cmp(&b.id));
    settle(&canary, runs(), witness)?;
    Ok(canary)
}

/// Tells which gates do not count; an error where none does.
fn settle<'r>(
    canary: &Canary,
    mut runs: impl Iterator<Item = &'r GateRun>,
    witness: &mut dyn Witness,
) -> Result<(), RunError> {
    let uncounted = |run: &&GateRun| !canary.outcome(run.id.as_str()).counts();
    if canary.gates.iter().any(|gate| gate.outcome.counts()) {
        for run in runs.filter(uncounted) {
            witness.note(&format!(
                "  note: gate {} ends on deliberately broken sources as it did before; it does not count for a change",
                run.id
            ));
        }
        return Ok(());
    }
    match runs.find(uncounted) {
        Some(run) => Err(RunError::GateUnaffected {
            gate: run.id.to_string(),
            command: run.command_line(),
            remedy: remedy(run),
        }),
        None => Ok(()),
    }
}

/// What makes a gate test the sources.
fn remedy(run: &GateRun) -> String {
    let runners = TestTally::read(run).runners;
    let is_python = run.command.iter().any(|word| word.contains("python") || word.contains("pytest"))
        || [TestRunner::Pytest, TestRunner::Unittest].iter().any(|runner| runners.contains_key(runner));
    let own = format!(
        "or name a command that reads the sources: `[gates.{}] command = [...]` in .crucible/config.toml",
        run.id
    );
    if is_python {
        format!("install the package in place with `pip install -e .`, {own}")
    } else {
        format!("build the package in the gate with `[gates.{}] setup = [...]`, {own}", run.id)
    }
}

fn ran(outcome: &GateOutcome) -> Option<&GateRun> {
    match outcome {
        GateOutcome::Ran(run) => Some(run),
        GateOutcome::Judged { .. } => None,
    }
}

#[cfg(test)]
mod tests;
