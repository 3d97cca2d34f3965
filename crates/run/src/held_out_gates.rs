//! Runs the held-out tests of a run before its landing.

use crucible_host::fs::{FsError, read_regular_up_to, temp_dir_in};
use crucible_model::{Digest, EditFormat, RepoPath, Verdict};
use crucible_verify::{
    Baseline, GateLevel, GateRun, HeldOutPlacement, HeldOutReport, compare_held_out, judge_held_out,
};

use crate::analysis::Analysis;
use crate::contract::{Plan, RunRecord};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::gate_workspace::SurveyCache;
use crate::gatekeeper::{self, PatchContext};
use crate::held_out::{HeldOut, MAX_FILE};
use crate::journal::{Journal, NoopObserver};
use crate::layout::{self, RunDir};
use crate::run_context::RunContext;
use crate::trial::{self, TrialContext, TrialInput, TrialSetup, VariantFiles, VerifyContext};
use crate::verification::base_files;

/// Runs the gates of a verified run with its held-out tests, records the numbers, and refuses the landing if one fails.
pub(crate) async fn pass_held_out(
    world: &RunContext<'_>,
    dir: &RunDir,
    record: &RunRecord,
    journal: &mut Journal<'_>,
) -> Result<(), RunError> {
    let held_out = &record.settings.held_out;
    if held_out.is_none() {
        return Ok(());
    }
    let contents = contents(held_out)?;
    journal.working("verifier", "running the gates with the held-out tests")?;
    let report = run(world, dir, record, &contents).await?;
    let verdict = judge_held_out(&report);
    dir.write_json_recorded(layout::HELD_OUT, &report)?;
    let run_before = EventKind::HeldOutRun.name();
    let runs = journal
        .events()?
        .iter()
        .filter(|event| event.event == run_before)
        .count();
    journal.record_file(
        "verifier",
        EventKind::HeldOutRun,
        &format!("held-out-{}", runs + 1),
        layout::HELD_OUT,
    )?;
    refuse(record, &verdict)
}

/// Returns the contents by the places where they belong, if the files are as they were when the run began.
fn contents(held_out: &HeldOut) -> Result<VariantFiles, RunError> {
    let mut contents = VariantFiles::new();
    for file in &held_out.files {
        let bytes = match read_regular_up_to(&file.from, MAX_FILE) {
            Ok(bytes) => bytes,
            Err(error @ FsError::TooLarge { .. }) => return Err(error.into()),
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        if Digest::compute(&bytes) != file.digest {
            return Err(RunError::HeldOutChanged {
                path: file.from.clone(),
            });
        }
        contents.insert(file.at.clone(), bytes);
    }
    Ok(contents)
}

fn refuse(record: &RunRecord, verdict: &Verdict) -> Result<(), RunError> {
    match verdict.errors().next() {
        Some(first) => Err(RunError::HeldOutRefused {
            id: record.run_id.to_string(),
            first: first.to_string(),
        }),
        None => Ok(()),
    }
}

async fn run(
    world: &RunContext<'_>,
    dir: &RunDir,
    record: &RunRecord,
    contents: &VariantFiles,
) -> Result<HeldOutReport, RunError> {
    let temp_dir = temp_dir_in(&dir.scratch(), "held-out-")?;
    let git = world
        .git(&record.repo, &temp_dir.path().join("git"))
        .await?;
    trial::require_base(&git, record).await?;
    let plan = Plan::parse(&dir.read_text(layout::PLAN)?)
        .map_err(|_| dir.malformed(layout::PLAN, "it is not a valid plan"))?;
    let analysis: Analysis = dir.read_document(layout::ANALYSIS)?;
    let context = PatchContext {
        git: &git,
        record,
        format: EditFormat::UnifiedDiff,
        plan: &plan,
        gate_files: &analysis.gate_files,
    };
    let judged = gatekeeper::judge_again(&context, &dir.read(layout::PATCH)?).await?;
    let Some(change) = judged.change.filter(|_| judged.verdict.passes()) else {
        let first = judged.verdict.errors().next().map(ToString::to_string);
        return Err(RunError::NoLongerAccepted {
            id: record.run_id.to_string(),
            first: first.unwrap_or_default(),
        });
    };
    let surveys = SurveyCache::default();
    let by = VerifyContext {
        git: &git,
        surveys: &surveys,
        record,
        dir,
        plan: &plan,
        analysis: &analysis,
        level: GateLevel::Lite,
    };
    let base_files = base_files(by, &change).await?;
    let tried = TrialContext {
        change: &change,
        base_files: &base_files,
        baseline: Baseline::default(),
    };
    let base = TrialSetup {
        python_paths: &analysis.python_paths,
        ..TrialSetup::new(record, &analysis.gates, &surveys)
    };
    let mut runs: Vec<Vec<GateRun>> = Vec::new();
    for copied in [
        TrialInput::Changed(&tried),
        TrialInput::Added(&tried, contents),
    ] {
        let unwatched = &mut NoopObserver;
        let ran = trial::run(
            world,
            &git,
            base,
            by.level,
            temp_dir.path(),
            copied,
            unwatched,
        )
        .await?;
        runs.push(ran.gate_runs().cloned().collect());
    }
    let tracked = git.tracked_files().await?;
    let is_there = |at: &RepoPath| {
        let is_tracked = tracked
            .iter()
            .any(|file| file.path.to_str() == Some(at.as_str()));
        is_tracked || change.tree.files_checked_out().contains_key(at)
    };
    let places = if contents.keys().any(is_there) {
        HeldOutPlacement::Replacing
    } else {
        HeldOutPlacement::New
    };
    let digests = contents
        .values()
        .map(|bytes| Digest::compute(bytes))
        .collect();
    let (without, with) = match runs.as_slice() {
        [without, with] => (without.as_slice(), with.as_slice()),
        _ => (&[][..], &[][..]),
    };
    Ok(compare_held_out(without, with, digests, places))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out directories")]
mod tests {
    use super::*;

    #[test]
    fn changed_held_out_file_is_refused() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (repo, held) = (temp_dir.path().join("repo"), temp_dir.path().join("held"));
        std::fs::create_dir_all(&held).unwrap();
        std::fs::create_dir_all(&repo).unwrap();
        let test = held.join("test_a.py");
        std::fs::write(&test, "x").unwrap();
        let found = HeldOut::read(&[held], &repo).unwrap();
        assert_eq!(contents(&found).unwrap().len(), 1);
        let is_refused = || matches!(contents(&found), Err(RunError::HeldOutChanged { .. }));
        std::fs::write(&test, "y").unwrap();
        assert!(is_refused());
        std::fs::remove_file(&test).unwrap();
        assert!(is_refused());
    }
}
