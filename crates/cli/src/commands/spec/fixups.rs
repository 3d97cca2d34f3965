//! Fixups on the command line: the flags that limit what they may change, and their output.

use clap::Args;
use crucible_model::{RepoPath, one_line};
use crucible_repo::{LinkPolicy, RecoveredEdit};
use crucible_spec::session::FixupAction;
use crucible_spec::{AppliedFixup, SpecError, SpecProject, text};

use crate::app::App;

/// The flags of a fixup.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct FixupFlags {
    /// Apply the fixups that were pending when the command began, all or none
    #[arg(long)]
    apply_fixups: bool,
    /// Path that fixups may create, delete or change (repeatable)
    ///
    /// Without it, fixups change only existing files, except tests, manifests, lock files and CI settings.
    #[arg(long = "allow-path", value_name = "PATH")]
    pub(crate) allow_paths: Vec<RepoPath>,
    /// Follow symbolic links to files inside the project
    #[arg(long)]
    allow_links: bool,
}

impl FixupFlags {
    /// Whether to show or to apply fixups.
    pub(crate) fn wish(&self) -> FixupAction {
        if self.apply_fixups {
            FixupAction::Apply
        } else {
            FixupAction::Preview
        }
    }

    /// The name of an option that lets a fixup change more, if one is given.
    pub(crate) fn widening(&self) -> Option<&'static str> {
        match (self.allow_paths.is_empty(), self.allow_links) {
            (false, _) => Some("--allow-path"),
            (true, true) => Some("--allow-links"),
            (true, false) => None,
        }
    }

    /// The policy for symbolic links.
    pub(crate) fn links(&self) -> LinkPolicy {
        if self.allow_links {
            LinkPolicy::InsideProject
        } else {
            LinkPolicy::Refuse
        }
    }
}

/// Shows a pending diff.
pub(crate) fn show_pending(app: &App, project: &SpecProject, diff: &[u8]) -> Result<(), SpecError> {
    let lines = text::proposed_fixup(project, diff)?;
    lines.iter().for_each(|line| app.output.line(line));
    app.output.diff(diff);
    Ok(())
}

/// Shows an applied diff, with warnings on standard error.
pub(crate) fn show_applied(app: &App, applied: &AppliedFixup) {
    let lines = text::applied_fixup(applied);
    lines.iter().for_each(|line| app.output.line(line));
    for finding in applied.verdict.findings() {
        app.output.remark(&format!(
            "warning: {}: {}",
            one_line(&finding.subject),
            finding.hint
        ));
    }
}

/// Reports how a partly applied fixup of a killed process was recovered.
pub(crate) fn show_recovered(app: &App, recovered: &RecoveredEdit) {
    let lines = text::recovered_fixup(recovered);
    lines.iter().for_each(|line| app.output.remark(line));
}
