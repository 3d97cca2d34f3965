//! Claims of runs at the door: which commit a run's change is, in a file of the repository.
//!
//! Refs and notes show a use of a run only when a push is over. Until then another push, or the next ref of the same one,
//! could use the run again. So a run is claimed before its commit is admitted, and the first claim is final: whether a push
//! landed after its door is unknown. The claim names the commit and its tree, so the same change may be pushed again.

use std::os::unix::fs::MetadataExt;

use crucible_attest::{RunUse, judge_run_claim, unreadable_run_claim};
use crucible_host::fs::{FsError, create_dir_all, read_regular_up_to, set_mode, write_new_as};
use crucible_model::{ByteLimit, Finding, Verdict};
use crucible_repo::CommitReader;

use super::commits::CommitsCheck;

/// The directory of the claims, in the repository's own.
const CLAIMS: &str = "crucible/runs";
/// The longest names of a commit and a tree, with a space and the line ending.
const MAX_CLAIM: ByteLimit = ByteLimit(130);

/// Claims the run of each commit that was admitted by its statement. A commit whose run another one has claimed is refused.
///
/// # Errors
///
/// Fails if a claim cannot be written.
pub fn claim_runs(reader: &CommitReader, check: &mut CommitsCheck) -> Result<(), FsError> {
    let mut findings = Vec::new();
    for used in check.admitted_uses() {
        findings.extend(claim(reader, used)?);
    }
    check.verdict.merge(Verdict::new(findings));
    Ok(())
}

fn claim(reader: &CommitReader, used: &RunUse) -> Result<Option<Finding>, FsError> {
    let directory = reader.directory().join(CLAIMS);
    if !directory.is_dir() {
        create_dir_all(&directory)?;
        // Other users of a shared repository push, too.
        if let Ok(shared) = reader.directory().join("objects").metadata() {
            for new_path in [directory.parent().unwrap_or(&directory), &directory] {
                set_mode(new_path, shared.mode() & 0o7777)?;
            }
        }
    }
    let path = directory.join(used.run.as_str());
    let claim = format!("{}\n", used.claim());
    let Err(error) = write_new_as(&path, claim.as_bytes(), 0o644) else {
        return Ok(None);
    };
    match read_regular_up_to(&path, MAX_CLAIM) {
        Ok(claimed) => Ok(judge_run_claim(
            used,
            String::from_utf8_lossy(&claimed).trim_end(),
        )),
        // Nothing is there, so writing failed for another reason.
        Err(unread) if unread.is_not_found() => Err(error),
        Err(unread) => Ok(Some(unreadable_run_claim(used, &unread.to_string()))),
    }
}
