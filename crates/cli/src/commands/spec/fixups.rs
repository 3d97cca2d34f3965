//! Fixups on the command line: the flags that limit what they may change, and their output.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use crucible_model::{RepoPath, counted};
use crucible_patch::Policy;
use crucible_repo::{EditRecovery, GuardedPlaces, LinkPolicy, RecoveredEdit};
use crucible_sandbox::Sandbox;
use crucible_settings::Settings;
use crucible_spec::{
    AppliedFixup, FixupChangeKind, FixupChoice, SpecError, SpecId, SpecProject, SpecStore,
    fixup_changes, fixup_links, fixup_policy, not_nameable,
};

use crate::app::App;
use crate::commands::patch::patch_limits;
use crate::error::CommandError;
use crate::text::one_line;

/// The directory, in Crucible's own directory, that records fixups while they are applied.
pub(crate) const FIXUPS: &str = "fixups";

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
    allow_paths: Vec<RepoPath>,
    /// Follow symbolic links to files inside the project
    #[arg(long)]
    allow_links: bool,
}

/// What to do with a fixup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixupWish {
    /// Show it and leave it pending.
    Preview,
    /// Apply it.
    Apply,
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

    /// Refuses a path that no fixup may change.
    pub(crate) fn check(&self, root: &Path) -> Result<(), CommandError> {
        match self
            .allow_paths
            .iter()
            .find_map(|path| not_nameable(root, path))
        {
            Some(why) => Err(CommandError::usage(format!("--allow-path: {why}"))),
            None => Ok(()),
        }
    }

    /// The files that fixups may change, as the project is now.
    pub(crate) fn choice(
        &self,
        app: &App,
        config: &Settings,
        sandbox: &Arc<Sandbox>,
        project: &SpecProject,
    ) -> Result<FixupChoice, CommandError> {
        let find =
            async { Ok(GuardedPlaces::find(Arc::clone(sandbox), &app.env, project.root()).await) };
        let guarded = app.block_on(find)?;
        let choice = FixupChoice::unguarded(self.policy(config));
        Ok(FixupChoice {
            links: self.links(),
            guarded,
            ..choice
        })
    }

    /// The policy: the configured limits, and the paths from this command line only.
    pub(crate) fn policy(&self, config: &Settings) -> Policy {
        let limits = patch_limits(config);
        fixup_policy(
            limits.max_files,
            limits.max_added_lines,
            self.allow_paths.clone(),
        )
    }
}

/// Opens a spec for reading, with the record of unfinished work on it. Without Crucible's own directory
/// there is no record.
pub(crate) fn to_look_at(app: &App, project: &SpecProject, spec: SpecId) -> SpecStore {
    let store = SpecStore::new(project, spec);
    match app.env.crucible_home() {
        Ok(home) => store.with_records(home.join(FIXUPS)),
        Err(_) => store,
    }
}

/// Shows a pending diff: each file with its added and removed lines and its real location, then the diff.
pub(crate) fn show_pending(
    app: &App,
    project: &SpecProject,
    diff: &[u8],
) -> Result<(), CommandError> {
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
