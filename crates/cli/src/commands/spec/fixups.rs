//! Fixups on the command line: the flags that say what they may touch, and how they are shown.

use clap::Args;
use crucible_host::config::Config;
use crucible_model::{RepoPath, counted};
use crucible_patch::Policy;
use crucible_repo::{EditRecovery, LinkPolicy, RecoveredEdit};
use crucible_spec::{AppliedFixup, FixupChangeKind, SpecError, fixup_changes, fixup_policy};

use crate::app::App;
use crate::commands::patch::patch_limits;
use crate::error::CommandError;
use crate::text::one_line;

/// Where in Crucible's own directory the fixups that are being applied are recorded.
pub(crate) const FIXUPS: &str = "fixups";

/// What a fixup may do.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct FixupFlags {
    /// Apply the fixups that waited when the command began to the project's files: all of them, or none
    #[arg(long)]
    apply_fixups: bool,
    /// A path that a fixup may make new or remove, or change although it is a test, a manifest, a lock file or a setting of CI; several
    /// times for several
    #[arg(long = "allow-path", value_name = "PATH")]
    allow_paths: Vec<RepoPath>,
    /// Follow symbolic links to files inside of the project
    #[arg(long)]
    allow_links: bool,
}

/// What becomes of a fixup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixupWish {
    /// It is shown, and waits.
    Preview,
    /// It is applied.
    Apply,
}

impl FixupFlags {
    /// What is to become of fixups.
    pub(crate) fn wish(&self) -> FixupWish {
        if self.apply_fixups { FixupWish::Apply } else { FixupWish::Preview }
    }

    /// What a link means.
    pub(crate) fn links(&self) -> LinkPolicy {
        if self.allow_links { LinkPolicy::InsideProject } else { LinkPolicy::Refuse }
    }

    /// What may be touched: the configured amounts, and the paths that were named here and nowhere else.
    pub(crate) fn policy(&self, config: &Config) -> Policy {
        let limits = patch_limits(config);
        fixup_policy(limits.max_files, limits.max_added_lines, self.allow_paths.clone())
    }
}

/// Shows a diff that waits: each file with what comes and goes, and the diff. How it is applied is what comes next.
pub(crate) fn show_pending(app: &App, diff: &[u8]) -> Result<(), CommandError> {
    let changes = fixup_changes(diff).map_err(|verdict| SpecError::FixupRefused { verdict })?;
    let files = counted(changes.len() as u64, "file");
    app.output.line(&format!("proposed fixups: {files}"));
    for change in &changes {
        let kind = match change.kind {
            FixupChangeKind::Changed => String::new(),
            FixupChangeKind::New | FixupChangeKind::Removed => format!(" ({})", change.kind.as_str()),
        };
        let path = one_line(&change.path);
        app.output.line(&format!("  {path} +{} -{}{kind}", change.added, change.removed));
    }
    app.output.diff(diff);
    Ok(())
}

/// Shows what was applied; what deserves a look goes beside the result.
pub(crate) fn show_applied(app: &App, applied: &AppliedFixup) {
    let files = counted(applied.files.len() as u64, "file");
    app.output.line(&format!("applied fixups: {files}"));
    for file in &applied.files {
        let kind = match (file.before, file.after) {
            (None, _) => " (new)",
            (_, None) => " (removed)",
            (Some(_), Some(_)) => "",
        };
        app.output.line(&format!("  {}{kind}", one_line(&file.path)));
    }
    for finding in applied.verdict.findings() {
        app.output.remark(&format!("warning: {}: {}", one_line(&finding.subject), finding.hint));
    }
}

/// Says what became of a fixup that a killed process left half applied, file by file.
pub(crate) fn show_recovered(app: &App, recovered: &RecoveredEdit) {
    let files: Vec<String> = recovered.files.iter().map(|path| one_line(path.as_str())).collect();
    if files.is_empty() {
        return;
    }
    let what = match recovered.outcome {
        EditRecovery::Nothing => return,
        EditRecovery::Finished => "finished: these files are as the fixup makes them",
        EditRecovery::TakenBack => "taken back: the fixup is in none of these files",
    };
    app.output.remark(&format!(
        "warning: a process was killed while it applied a fixup, which is now {what}: {}",
        files.join(", ")
    ));
}
