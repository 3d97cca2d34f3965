//! `crucible patch apply`.

use clap::Args;
use crucible_host::fs::create_dir_all;
use crucible_host::lock::Lock;
use crucible_model::{Digest, ExitStatus, Finding, Outcome, Verdict};
use crucible_repo::{AppliedFile, ChangeStatus};
use crucible_run::{AppliedPatch, apply_patch};
use serde::Serialize;

use super::input::{Measured, PatchInput};
use crate::app::App;
use crate::error::CommandError;

/// Where a change of a work tree is noted while it is under way, in Crucible's own directory.
const APPLYING: &str = "applying";

/// Check a patch as `patch check` does, and apply it
///
/// All files of the patch are changed or none. Nothing is staged or committed. If one file differs from the
/// last commit, no file is changed. For example: `crucible patch apply --repo . --patch change.patch --plan
/// PLAN.md`
#[derive(Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    input: PatchInput,
}

/// What `--json` prints: the verdict as `patch check` prints it, and the files.
#[derive(Serialize)]
struct ApplyReport<'a> {
    schema_version: &'static str,
    verdict: Outcome,
    findings: &'a [Finding],
    files: Vec<ChangedFile<'a>>,
}

#[derive(Serialize)]
struct ChangedFile<'a> {
    path: &'a str,
    change: &'static str,
    /// What it holds now; nothing where it is gone.
    sha256: Option<String>,
}

impl Apply {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let applied = match self.input.read(app)? {
            Measured::By { patch, policy } => app.block_on(async {
                let git = self.input.open(app).await?;
                let place = app.home()?.join(APPLYING);
                create_dir_all(&place)?;
                let tree = Digest::of(git.top().as_os_str().as_encoded_bytes());
                let _one_at_a_time = Lock::acquire(
                    &place.join(format!("{tree}.lock")),
                    "applying a patch to this work tree",
                )?;
                Ok(apply_patch(&git, &policy, &patch, &place.join(format!("{tree}.json"))).await?)
            })?,
            Measured::Refused(verdict) => AppliedPatch {
                verdict,
                files: Vec::new(),
            },
        };
        print(app, &applied.verdict, &applied.files)
    }
}

fn print(app: &App, verdict: &Verdict, files: &[AppliedFile]) -> Result<ExitStatus, CommandError> {
    let report = verdict.report("crucible-patch-apply-v1");
    if app.output.is_json() {
        app.output.json(&ApplyReport {
            schema_version: "crucible-patch-apply-v1",
            verdict: report.verdict,
            findings: &report.findings,
            files: files.iter().map(changed).collect(),
        })?;
    } else {
        report
            .findings
            .iter()
            .for_each(|finding| app.output.finding(finding));
        for file in files {
            app.output
                .line(&format!("{} {}", word(file.status), file.path));
        }
        if report.verdict == Outcome::Fail {
            app.output.line("nothing was applied");
        }
    }
    Ok(match report.verdict {
        Outcome::Pass => ExitStatus::Success,
        Outcome::Fail => ExitStatus::Refused,
    })
}

fn changed(file: &AppliedFile) -> ChangedFile<'_> {
    ChangedFile {
        path: file.path.as_str(),
        change: word(file.status),
        sha256: file.after.map(|digest| digest.to_string()),
    }
}

fn word(status: ChangeStatus) -> &'static str {
    match status {
        ChangeStatus::Added => "added",
        ChangeStatus::Modified | ChangeStatus::TypeChanged => "changed",
        ChangeStatus::Deleted => "removed",
    }
}
