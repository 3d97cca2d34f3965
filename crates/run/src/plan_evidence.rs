//! Checks of a plan that need a run directory or the file system: its signature, the executed gates, and the
//! evidence files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crucible_model::{Code, Digest, Finding, RepoPath, Verdict};
use crucible_verify::VerifyReport;

use crate::contract::{EvidenceFound, Plan, PlanStatus, Signature};
use crate::error::RunError;
use crate::layout::{self, RunDir};
use crate::progress::is_signature_valid;

const UNSIGNED: Code = Code::new("plan-unsigned");
const NOT_VERIFIED: Code = Code::new("plan-not-verified");

/// The texts of a plan and its documents in a run directory.
#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    /// `artifacts/PLAN.md`, byte for byte.
    pub plan: Vec<u8>,
    /// `artifacts/REASONS.md`, if present.
    pub reasons: Option<String>,
    /// `artifacts/EXPECTED_RESULTS.md`, if present.
    pub results: Option<String>,
    /// The run's repository, if the directory names it.
    pub repo: Option<PathBuf>,
}

impl RunPlan {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// Fails when there is no plan, or a document cannot be read as text.
    pub(crate) fn read(dir: &RunDir) -> Result<Self, RunError> {
        let text = |path| {
            dir.read_if_there(path)?
                .map(|_| dir.read_text(path))
                .transpose()
        };
        Ok(Self {
            plan: dir.read(layout::PLAN)?,
            reasons: text(layout::REASONS)?,
            results: text(layout::EXPECTED_RESULTS)?,
            repo: if dir.has(layout::RUN) {
                Some(dir.record()?.repo)
            } else {
                None
            },
        })
    }
}

/// Checks that a plan claims to be approved.
#[must_use]
pub(crate) fn check_status(plan: &Plan) -> Verdict {
    match plan.status {
        PlanStatus::Signed => Verdict::default(),
        PlanStatus::Draft => unsigned(
            "Status",
            "The plan is still a draft; approval changes its status to SIGNED.",
        ),
    }
}

/// Checks that the signature of a run covers these bytes of its plan and its current reviews.
///
/// # Errors
///
/// Fails when a review cannot be read.
pub(crate) fn check_signature(dir: &RunDir, plan: &[u8]) -> Result<Verdict, RunError> {
    if !dir.has(layout::SIGNATURE) {
        let hint = "The plan is not signed. Continue the run with `crucible run advance`.";
        return Ok(unsigned(layout::PLAN, hint));
    }
    // One that cannot be read shows no approval either.
    let is_read = dir.read_document::<Signature>(layout::SIGNATURE).is_ok();
    if is_read && is_signature_valid(dir, Digest::compute(plan))? {
        return Ok(Verdict::default());
    }
    let hint = "The plan or its reviews changed after signing; start a new run.";
    Ok(unsigned(layout::PLAN, hint))
}

fn unsigned(subject: &str, hint: &str) -> Verdict {
    Verdict::new(vec![Finding::error(UNSIGNED, subject, hint)])
}

/// Returns the gates that the verifier of a run executed for this plan, and why that is unknown otherwise.
///
/// # Errors
///
/// Fails when the report cannot be read.
pub fn executed_gates(dir: &RunDir, plan: &[u8]) -> Result<(Vec<String>, Verdict), RunError> {
    let refuse = |hint: &str| {
        let finding = Finding::error(NOT_VERIFIED, layout::VERIFY_REPORT, hint);
        (Vec::new(), Verdict::new(vec![finding]))
    };
    if !dir.has(layout::VERIFY_REPORT) {
        return Ok(refuse(
            "No gate of this run has run yet; continue with `crucible run advance`.",
        ));
    }
    let report: VerifyReport = dir.read_json(layout::VERIFY_REPORT)?;
    if report.plan_digest != Some(Digest::compute(plan)) {
        return Ok(refuse(
            "The report belongs to another plan; verify this one.",
        ));
    }
    let gates = report
        .executed_gates
        .iter()
        .map(|gate| gate.as_str().to_owned())
        .collect();
    Ok((gates, Verdict::default()))
}

/// Returns what is at each of these paths, in the first place that has it. Links are followed within their
/// place.
#[must_use]
pub(crate) fn find_evidence(
    paths: &[RepoPath],
    places: &[&Path],
) -> BTreeMap<RepoPath, EvidenceFound> {
    let look = |path: &RepoPath| {
        let looks = places.iter().map(|place| look_at(place, path));
        looks.fold(EvidenceFound::Nothing, |before, now| match before {
            EvidenceFound::Nothing => now,
            EvidenceFound::File | EvidenceFound::NoFile | EvidenceFound::Outside => before,
        })
    };
    paths
        .iter()
        .map(|path| (path.clone(), look(path)))
        .collect()
}

fn look_at(place: &Path, path: &RepoPath) -> EvidenceFound {
    let file = place.join(path);
    let (Ok(root), real) = (fs::canonicalize(place), fs::canonicalize(&file)) else {
        return EvidenceFound::Nothing;
    };
    let Ok(real) = real else {
        // A link that leads nowhere is there all the same.
        let is_link = file
            .ancestors()
            .take_while(|part| part.starts_with(place))
            .any(Path::is_symlink);
        return if is_link {
            EvidenceFound::Outside
        } else {
            EvidenceFound::Nothing
        };
    };
    let inside = real
        .strip_prefix(&root)
        .ok()
        .and_then(Path::to_str)
        .map(str::parse::<RepoPath>);
    match inside {
        Some(Ok(_)) if fs::metadata(&real).is_ok_and(|meta| meta.is_file()) => EvidenceFound::File,
        Some(Ok(_)) => EvidenceFound::NoFile,
        Some(Err(_)) | None => EvidenceFound::Outside,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes files and links")]
    fn evidence_must_be_an_inside_file() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (run, repo) = (temp_dir.path().join("run"), temp_dir.path().join("repo"));
        for directory in ["run/artifacts", "repo/src", "repo/.git", "run/both"] {
            fs::create_dir_all(temp_dir.path().join(directory)).unwrap();
        }
        for file in [
            "outside",
            "run/artifacts/report.json",
            "repo/src/a.py",
            "repo/.git/config",
            "repo/both",
        ] {
            fs::write(temp_dir.path().join(file), "x").unwrap();
        }
        for (target, link) in [
            ("../outside", "repo/out"),
            ("..", "repo/up"),
            ("src/a.py", "repo/in"),
            ("nowhere", "repo/broken"),
            (".git/config", "repo/git"),
        ] {
            symlink(target, temp_dir.path().join(link)).unwrap();
        }
        rustix::fs::mknodat(
            rustix::fs::CWD,
            repo.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let expected = [
            ("artifacts/report.json", EvidenceFound::File),
            ("src/a.py", EvidenceFound::File),
            ("in", EvidenceFound::File),
            ("both", EvidenceFound::NoFile),
            ("src", EvidenceFound::NoFile),
            ("pipe", EvidenceFound::NoFile),
            ("src/b.py", EvidenceFound::Nothing),
            ("src/a.py/b", EvidenceFound::Nothing),
            ("out", EvidenceFound::Outside),
            ("up/outside", EvidenceFound::Outside),
            ("broken", EvidenceFound::Outside),
            ("broken/x", EvidenceFound::Outside),
            ("git", EvidenceFound::Outside),
        ];
        let paths: Vec<RepoPath> = expected
            .iter()
            .map(|(path, _)| path.parse().unwrap())
            .collect();
        let found = find_evidence(&paths, &[&run, &repo]);
        for (path, what) in expected {
            assert_eq!(found[&path.parse::<RepoPath>().unwrap()], what, "{path}");
        }
        assert_eq!(
            find_evidence(&paths[1..2], &[&run])[&paths[1]],
            EvidenceFound::Nothing
        );
        assert_eq!(
            find_evidence(&paths[1..2], &[&temp_dir.path().join("gone")])[&paths[1]],
            EvidenceFound::Nothing
        );
    }
}
