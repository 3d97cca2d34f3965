//! Objections against a change that passed: what is known of each without a model, and its test on the change.
//!
//! `crucible_patch` reads the test, `crucible_verify` decides what the objection is; this only collects facts and runs the test.
//! Invariant: the test is written into copies only, never into the change.

use std::collections::BTreeSet;
use std::path::Path;

use crucible_model::{ByteLimit, RepoPath};
use crucible_patch::{
    ProposedTest, is_test_path, module_files, new_names, normal_literal, proposed_test, signatures,
};
use crucible_verify::{
    GateRun, GateSpec, ObjectionTest, SecondAuthor, WitnessFacts, WitnessStep, is_quoted,
    lone_test_command, next_witness_step,
};

use crate::error::RunError;
use crate::gatekeeper::{Change, Files};
use crate::journal::RunObserver;
use crate::other_world::OtherWorld;
use crate::role::objector::RaisedObjection;
use crate::run_context::RunContext;
use crate::trial::{self, TrialContext, TrialInput, TrialSetup, VariantFiles, VerifyContext};

/// How much the sources and documents that an objection names may hold.
const MAX_READ: ByteLimit = ByteLimit(8 << 20);
/// Endings of documentation files, whose sentences an objection may quote.
const DOCUMENTS: [&str; 4] = ["md", "rst", "txt", "adoc"];
/// Where specifications are.
const SPECS: &str = ".crucible/specs/";

/// What objections are judged against.
#[derive(Clone, Copy)]
pub(crate) struct ObjectionContext<'g> {
    pub(crate) by: VerifyContext<'g>,
    pub(crate) change: &'g Change,
    /// The changed files as the base commit has them.
    pub(crate) base_files: &'g Files,
    /// The tracked files of the base.
    pub(crate) tracked: &'g BTreeSet<RepoPath>,
}

/// An objection with what is known of it before anything runs.
pub(crate) struct PreparedObjection<'r> {
    pub(crate) raised: &'r RaisedObjection,
    /// Why its test cannot be judged, if it cannot.
    fault: Option<String>,
    /// The expected value in one spelling.
    expected: String,
    /// The test without its expected value.
    pub(crate) blanked: String,
    /// The heads of the public functions that it names.
    pub(crate) signatures: Vec<String>,
    /// The gate that runs it, and the same for the test alone.
    gates: Option<[GateSpec; 2]>,
    run_alone: Option<GateRun>,
    together: Option<GateRun>,
}

impl<'r> PreparedObjection<'r> {
    /// Reads an objection.
    pub(crate) async fn new(
        on: ObjectionContext<'_>,
        raised: &'r RaisedObjection,
    ) -> Result<Self, RunError> {
        let RaisedObjection { test, expected, .. } = raised;
        let mut prepared = Self {
            raised,
            fault: None,
            expected: normal_literal(&test.path, expected).unwrap_or_default(),
            blanked: String::new(),
            signatures: Vec::new(),
            gates: None,
            run_alone: None,
            together: None,
        };
        prepared.fault = prepared.read(on).await?.err();
        Ok(prepared)
    }

    /// Collects what is known without running anything; the inner error is why the test cannot be judged.
    async fn read(&mut self, on: ObjectionContext<'_>) -> Result<Result<(), String>, RunError> {
        let RaisedObjection {
            test,
            rests_on,
            expected,
        } = self.raised;
        let after = on.change.tree.files_checked_out();
        if !is_test_path(&test.path) {
            return Ok(Err("its path is not that of a test".to_owned()));
        }
        if on.tracked.contains(&test.path) || after.contains_key(&test.path) {
            return Ok(Err("there is a file at its path".to_owned()));
        }
        if !is_quoted(
            &rests_on.sentence,
            &source_text(on, &rests_on.source).await?,
        ) {
            return Ok(Err(format!(
                "{} does not contain the sentence",
                rests_on.source
            )));
        }
        let proposed = match proposed_test(&test.path, &test.text, &test.name, expected) {
            Ok(proposed) => proposed,
            Err(fault) => return Ok(Err(fault.to_string())),
        };
        if let Err(fault) = public(on, test, &proposed) {
            return Ok(Err(fault));
        }
        for path in imported(on, test, &proposed) {
            let paths = [path];
            let base = &on.by.record.base_commit;
            let sources = on.by.git.files_at(base, &paths, MAX_READ).await?;
            for (path, source) in sources {
                self.signatures
                    .extend(signatures(&path, &source, &proposed.names));
            }
        }
        self.blanked = proposed.blanked;
        let gates = on.by.analysis.gates.iter();
        self.gates = gates
            .filter_map(|gate| {
                let command = lone_test_command(&gate.command, &test.path)?;
                Some([
                    gate.clone(),
                    GateSpec {
                        command,
                        ..gate.clone()
                    },
                ])
            })
            .next();
        Ok(match self.gates {
            Some(_) => Ok(()),
            None => Err(
                "no gate runs such a test; objections run with unittest, pytest and node --test"
                    .to_owned(),
            ),
        })
    }

    /// Says what to find out next.
    pub(crate) fn next(&self, second: SecondAuthor<'_>) -> WitnessStep {
        next_witness_step(&WitnessFacts {
            test: &self.raised.test,
            fault: self.fault.as_deref(),
            alone: self.run_alone.as_ref(),
            together: self.together.as_ref(),
            expected: &self.expected,
            second,
        })
    }

    /// Runs the test on the change: alone, or among those of its gate in another order.
    pub(crate) async fn run(
        &mut self,
        world: &RunContext<'_>,
        on: ObjectionContext<'_>,
        scratch_dir: &Path,
        step: &WitnessStep,
        observer: &mut dyn RunObserver,
    ) -> Result<(), RunError> {
        let Some([gate, lone]) = &self.gates else {
            return Ok(());
        };
        let by = on.by;
        let is_alone = *step == WitnessStep::RunAlone;
        let tree = on.change.tree.tree.to_string();
        let other = OtherWorld::new(by.record.run_id.as_str(), &tree).settings_only();
        let base = TrialSetup {
            gates: std::slice::from_ref(if is_alone { lone } else { gate }),
            python_paths: &by.analysis.python_paths,
            other: (!is_alone).then_some(&other),
            ..TrialSetup::new(by.record, &by.analysis.gates, by.surveys)
        };
        let tried = TrialContext {
            change: on.change,
            base_files: on.base_files,
            baseline: crucible_verify::Baseline::default(),
        };
        let test = &self.raised.test;
        let files = VariantFiles::from([(test.path.clone(), test.text.clone().into_bytes())]);
        let copied = TrialInput::Added(&tried, &files);
        let ran = trial::run(world, by.git, base, by.level, scratch_dir, copied, observer).await?;
        let run = ran.gate_runs().next().cloned();
        if is_alone {
            self.run_alone = run;
        } else {
            self.together = run;
        }
        if self.run_alone.is_none() || !is_alone && self.together.is_none() {
            self.fault = Some("its gate did not run".to_owned());
        }
        Ok(())
    }

    /// Returns a value in the spelling of the expected one.
    pub(crate) fn normalized(&self, value: &str) -> Option<String> {
        normal_literal(&self.raised.test.path, value)
    }
}

/// The text of a source that an objection quotes, as the base has it; empty for any other text.
async fn source_text(on: ObjectionContext<'_>, source: &str) -> Result<String, RunError> {
    let record = on.by.record;
    if source == "goal" {
        return Ok(record.goal.clone());
    }
    let is_document = |path: &RepoPath| {
        let is_spec = path.as_str().starts_with(SPECS);
        is_spec
            || path
                .extension()
                .is_some_and(|ending| DOCUMENTS.contains(&ending))
    };
    let path = source.parse::<RepoPath>().ok();
    let Some(path) = path.filter(|path| is_document(path) && on.tracked.contains(path)) else {
        return Ok(String::new());
    };
    let paths = [path];
    let files = on
        .by
        .git
        .files_at(&record.base_commit, &paths, MAX_READ)
        .await?;
    let texts = files
        .into_values()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(texts.collect())
}

/// The files of the base that a test imports.
fn imported(
    on: ObjectionContext<'_>,
    test: &ObjectionTest,
    proposed: &ProposedTest,
) -> Vec<RepoPath> {
    let files = proposed
        .modules
        .iter()
        .flat_map(|module| module_files(&test.path, module));
    files.filter(|path| on.tracked.contains(path)).collect()
}

/// Checks that a test uses only names that the base or the goal makes public.
fn public(
    on: ObjectionContext<'_>,
    test: &ObjectionTest,
    proposed: &ProposedTest,
) -> Result<(), String> {
    let goal: BTreeSet<&str> = on
        .by
        .record
        .goal
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for module in &proposed.modules {
        let mut files = module_files(&test.path, module).into_iter();
        let last = module
            .rsplit(['.', '/'])
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        if !files.any(|path| on.tracked.contains(&path)) && !goal.contains(last) {
            return Err(format!(
                "it imports `{module}`, which neither the base nor the goal has"
            ));
        }
    }
    for (path, after) in on.change.tree.files_checked_out() {
        let before = on.base_files.get(&path).map(Vec::as_slice);
        let names = new_names(&path, before, &after);
        let mut used = names.intersection(&proposed.names);
        if let Some(name) = used.find(|name| !goal.contains(name.as_str())) {
            return Err(format!("it uses `{name}`, which only the change has"));
        }
    }
    Ok(())
}
