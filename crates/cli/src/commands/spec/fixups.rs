//! Fixups on the command line: the flags that limit what they may change, and their output.

use clap::Args;
use crucible_model::{RepoPath, counted, one_line};
use crucible_repo::{EditRecovery, LinkPolicy, RecoveredEdit};
use crucible_spec::session::FixupWish;
use crucible_spec::{
    AppliedFixup, FixupChangeKind, SpecError, SpecProject, fixup_changes, fixup_links,
};

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
    pub(crate) fn wish(&self) -> FixupWish {
        if self.apply_fixups {
            FixupWish::Apply
        } else {
            FixupWish::Preview
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

/// Shows a pending diff: each file with its added and removed lines and its real location, then the diff.
pub(crate) fn show_pending(app: &App, project: &SpecProject, diff: &[u8]) -> Result<(), SpecError> {
    let changes = fixup_changes(diff).map_err(|verdict| SpecError::FixupRefused { verdict })?;
    let links = fixup_links(project, &changes);
    let files = counted(changes.len() as u64, "file");
    app.output.line(&format!("proposed fixups: {files}"));
    for change in &changes {
        let kind = match change.kind {
            FixupChangeKind::Changed => String::new(),
            FixupChangeKind::New | FixupChangeKind::Removed => {
                format!(" ({})", change.kind.as_str())
            }
        };
        let path = one_line(&change.path);
        let led = links.get(&change.path).map_or_else(String::new, |place| {
            format!(", through a link to {}", one_line(place.as_str()))
        });
        app.output.line(&format!(
            "  {path} +{} -{}{kind}{led}",
            change.added, change.removed
        ));
    }
    app.output.diff(diff);
    Ok(())
}

/// Shows an applied diff, with warnings on standard error.
pub(crate) fn show_applied(app: &App, applied: &AppliedFixup) {
    let files = counted(applied.files.len() as u64, "file");
    app.output.line(&format!("applied fixups: {files}"));
    for file in &applied.files {
        let kind = match (file.before, file.after) {
            (None, _) => " (new)",
            (_, None) => " (removed)",
            (Some(_), Some(_)) => "",
        };
        app.output
            .line(&format!("  {}{kind}", one_line(&file.path)));
    }
    for finding in applied.verdict.findings() {
        app.output.remark(&format!(
            "warning: {}: {}",
            one_line(&finding.subject),
            finding.hint
        ));
    }
}

/// Reports, file by file, how a partly applied fixup of a killed process was recovered.
pub(crate) fn show_recovered(app: &App, recovered: &RecoveredEdit) {
    let (others, files): (Vec<_>, Vec<_>) = recovered
        .files
        .iter()
        .partition(|path| recovered.went_on.contains(path));
    let names = |paths: &[&RepoPath]| {
        paths
            .iter()
            .map(|path| one_line(path.as_str()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if recovered.files.is_empty() {
        return;
    }
    let what = match recovered.outcome {
        EditRecovery::Nothing => return,
        EditRecovery::Finished => "finished: the fixup is applied to these files",
        EditRecovery::TakenBack => "rolled back: the fixup is not applied to these files",
    };
    let files = if files.is_empty() {
        "none".to_owned()
    } else {
        names(&files)
    };
    app.output.remark(&format!(
        "warning: a process was killed while it applied a fixup, which is now {what}: {files}"
    ));
    if !others.is_empty() {
        app.output.remark(&format!(
            "warning: these files were changed after that and are left as they are; check them: {}",
            names(&others)
        ));
    }
}
